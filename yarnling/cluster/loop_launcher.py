"""Loopback mode: the daemons of a cluster run as tasks in the event loop of the calling process, for quick tests.

Shells, servers and protocols are the same as those of separate processes, and containers are still processes. The
daemons cannot be killed or paused.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import os
import shutil
import traceback
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import NoReturn, TextIO

from wire.daemon_process import EXIT_REFUSED, LOG_FORMAT
from wire.files.hadoop_xml import load_configuration
from yarn.errors import InvalidArgumentException, YarnException
from yarnling.cluster.fork_messages import RM, DaemonRequest
from yarnling.cluster.launcher import STOP_S, Daemon, environment_of_daemons

LOGGED = "yarnling"
"""The parent of all loggers. Each daemon's records go to its own log file, at INFO unless the program has set another
level, as with separate processes."""

_log: contextvars.ContextVar[TextIO | None] = contextvars.ContextVar("yarnling_daemon_log", default=None)


class LoopLauncher:
    """Does what yarnling.cluster.launcher.Launcher does, with tasks of the running event loop instead of processes."""

    def __init__(self, directory: Path, *, temporary: bool) -> None:
        self._directory = directory
        self._temporary = temporary
        self._stops: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._closed = asyncio.Event()
        self.daemons: dict[str, Daemon] = {}

    @property
    def pid(self) -> int:
        """The process id of the ancestor of all containers, which is this process."""
        return os.getpid()

    def open(self) -> None:
        _log_by_daemon()

    async def start(self, request: DaemonRequest) -> Daemon:
        """Start a daemon and wait until it is ready. Raises DaemonFailed if the daemon ends before that."""
        daemon = Daemon(request.name, Path(request.log_file), pid=os.getpid())
        daemon.spawned.set()
        self.daemons[request.name] = daemon
        stop = self._stops[request.name] = asyncio.Event()
        # A task group is not used, because the task that opened it would have to close it. `close` awaits all tasks.
        task = asyncio.get_running_loop().create_task(
            self._run(request, daemon, stop), context=contextvars.copy_context()
        )
        self._tasks[request.name] = task
        await daemon.ready
        return daemon

    async def close(self) -> None:
        """End all daemons. NodeManagers come first, because they unregister from the ResourceManager."""
        for names in ([name for name in self._tasks if name != "rm"], list(self._tasks)):
            await self._end(names)
        self._closed.set()
        if self._temporary:
            await asyncio.to_thread(shutil.rmtree, self._directory, ignore_errors=True)

    async def wait_gone(self) -> str:
        await self._closed.wait()
        return "the cluster was closed"

    def terminate(self, daemon: Daemon) -> None:
        """End a daemon as SIGTERM would end its process."""
        self._stops[daemon.name].set()

    def kill(self, daemon: Daemon, *, descendants: bool) -> NoReturn:
        raise _no_process(daemon, "be killed")

    def discard(self, daemon: Daemon) -> None:
        """Cancel a daemon that is not ready."""
        self._tasks[daemon.name].cancel()

    def pause(self, daemon: Daemon) -> NoReturn:
        raise _no_process(daemon, "be paused")

    def resume(self, daemon: Daemon) -> NoReturn:
        raise _no_process(daemon, "be resumed")

    async def _end(self, names: Iterable[str]) -> None:
        tasks = [self._tasks[name] for name in names if not self._tasks[name].done()]
        for name in names:
            self._stops[name].set()
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=STOP_S)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    async def _run(self, request: DaemonRequest, daemon: Daemon, stop: asyncio.Event) -> None:
        """Run a daemon. The daemon's errors are logged and set its exit status; they are not raised."""
        status, problem = 1, "cancelled"
        with daemon.log_file.open("a", buffering=1) as log:
            _log.set(log)
            try:
                status = await _serve(request, daemon, stop)
                problem = f"exit status {status}"
            except (YarnException, OSError) as error:
                log.write(f"{request.name}: {error}\n")
                status, problem = EXIT_REFUSED, f"exit status {EXIT_REFUSED}"
            except Exception:
                log.write(traceback.format_exc())
                problem = "exit status 1"
            finally:
                _log.set(None)
                daemon.note_exit(status, problem)


async def _serve(request: DaemonRequest, daemon: Daemon, stop: asyncio.Event) -> int:
    load = partial(load_configuration, Path(request.conf_dir), request.overrides)

    if request.package == RM:
        from rm.daemon import serve as serve_rm

        return await serve_rm(load(), daemon.note_ready, reload=load, stop=stop)
    from nm.daemon import serve as serve_nm

    variables = {**environment_of_daemons(), **request.environment}
    environ = {name: value for name, value in variables.items() if value is not None}
    return await serve_nm(load(), daemon.note_ready, stop=stop, environ=environ)


def _no_process(daemon: Daemon, verb: str) -> InvalidArgumentException:
    return InvalidArgumentException(
        f"{daemon.name} is not a process in loopback mode and cannot {verb} (start the cluster without loopback=True)"
    )


class _ByDaemon(logging.Handler):
    """Writes the log records of one daemon's tasks to that daemon's file."""

    def emit(self, record: logging.LogRecord) -> None:
        log = _log.get()
        if log is not None:
            with contextlib.suppress(ValueError, OSError):
                log.write(f"{self.format(record)}\n")


_HANDLER = _ByDaemon()
_HANDLER.setFormatter(logging.Formatter(LOG_FORMAT))


def _log_by_daemon() -> None:
    logger = logging.getLogger(LOGGED)
    if _HANDLER not in logger.handlers:
        logger.addHandler(_HANDLER)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.INFO)
