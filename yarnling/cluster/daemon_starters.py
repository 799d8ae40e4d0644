"""The two ways to start a daemon: fork a process that has already imported all modules, or run a program."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import logging
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

from wire.daemon_process import EXIT_REFUSED, start_logging
from wire.files.hadoop_xml import load_configuration
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.settings.nodemanager import AUX_SERVICES, MAPREDUCE_SHUFFLE
from yarn.settings.yarnling import WEB_ENABLED
from yarnling.cluster.fork_messages import NM, RM, DaemonRequest
from yarnling.cluster.processes import die_with_parent, thread_count

LOG_LEVEL = "INFO"
READY_FD = 3
"""The file descriptor of the ready pipe in a forked daemon. All higher descriptors are closed."""
THREAD_EXIT_S_MAX = 1.0
"""The time, in seconds, a joined thread may take to exit. A thread normally exits within microseconds, unless the
machine is busy."""
LATE_IMPORTS = ("concurrent.futures.thread", "encodings.idna")
"""Modules that are only imported by the first to_thread and by the first look-up of a host name."""

Start = Callable[[int], int]
"""Starts a daemon that writes its ready line to the given file descriptor, and returns its process id. Raises OSError
if no process can be created."""


def chosen() -> ForkStarter | ProgramStarter:
    """The starter that the variable YARNLING_START names; fork by default."""
    return ProgramStarter() if os.environ.get("YARNLING_START") == "plain" else ForkStarter()


class ForkStarter:
    """Starts daemons by fork, after importing their modules and freezing the garbage collector.

    The configuration is read before the fork, so that its faults are reported without starting a process.
    """

    def __init__(self) -> None:
        self._started: set[str] = set()
        self._imported: set[str] = set()
        # Daemons log to their standard error.
        start_logging(LOG_LEVEL)

    def prepare(self, request: DaemonRequest) -> Start:
        # There is one ResourceManager, and its imports take longest. So it imports its modules itself, while this
        # process imports those of the NodeManager. Importing them here is only worth it when the ResourceManager is
        # started again.
        if request.package != RM or request.package in self._started:
            self._import(request.package)
        self._started.add(request.package)
        conf = load_configuration(Path(request.conf_dir), request.overrides)
        if request.package == NM:
            _prepare_nodes(conf)
            if WEB_ENABLED.of(conf):
                self._import_module("nm.shell.web.server")
        threads = _threads_left()
        assert threads == 1, f"{threads} threads before a fork: an import started some (YARNLING_START=plain avoids it)"
        return partial(_forked, request, conf, os.getpid())

    def import_ahead(self) -> None:
        """Import the NodeManager's modules on one core, while the ResourceManager starts on another."""
        if self._started == {RM} and not self._imported:
            self._import(NM)

    def _import(self, package: str) -> None:
        """Import the modules of a daemon and freeze them, so that garbage collection in a daemon copies no shared
        pages.
        """
        if package in self._imported:
            return
        for name in (f"{package}.daemon", *LATE_IMPORTS):
            importlib.import_module(name)
        self._imported.add(package)
        gc.freeze()

    def _import_module(self, name: str) -> None:
        """Import and freeze what only some clusters use."""
        if name not in sys.modules:
            importlib.import_module(name)
            gc.freeze()


class ProgramStarter:
    """Starts daemons as `python -m rm` and `python -m nm`, for systems where forking is not safe."""

    def prepare(self, request: DaemonRequest) -> Start:
        return partial(start_program, request)

    def import_ahead(self) -> None:
        """Do nothing: programs share no imports."""


def start_program(request: DaemonRequest, ready_fd: int) -> int:
    """Start a daemon as a program and return its process id."""
    parent = os.getpid()
    options = [part for key, value in request.overrides.items() for part in ("-D", f"{key}={value}")]
    command = [sys.executable, "-P", "-m", request.package, "--conf", request.conf_dir, *options]
    environment = {**os.environ, **request.environment}
    with Path(request.log_file).open("ab") as log:
        process = subprocess.Popen(
            [*command, "--ready-fd", str(ready_fd)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[ready_fd],
            env={name: value for name, value in environment.items() if value is not None},
            start_new_session=True,
            preexec_fn=lambda: die_with_parent(parent),  # noqa: PLW1509  the fork server has one thread
        )
    # The fork server waits for the process; Popen must not warn that nobody waited.
    process.returncode = 0
    return process.pid


def run_forked(request: DaemonRequest, conf: Configuration, ready_fd: int, parent_pid: int) -> NoReturn:
    """Run the daemon in a process that was just forked. Never returns to the code of the parent process."""
    status = 1
    try:
        os.setsid()
        die_with_parent(parent_pid)
        _default_signals()
        _take_files(request.log_file, ready_fd)
        _change_environment(request.environment)
        status = _serve(request, conf)
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        # Not sys.exit: it would run the parent's atexit handlers.
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _forked(request: DaemonRequest, conf: Configuration, parent: int, ready_fd: int) -> int:
    pid = os.fork()
    if pid == 0:
        run_forked(request, conf, ready_fd, parent)
    return pid


def _prepare_nodes(conf: Configuration) -> None:
    """Read and import once what every NodeManager of this configuration needs; each would need 20 ms of CPU for it.

    Raises ConfigurationException with every fault of the table of emulated containers.
    """
    emulates = importlib.import_module("nm.shell.node_manager").emulation_of(conf) is not None
    shuffles = MAPREDUCE_SHUFFLE in AUX_SERVICES.of(conf)
    if shuffles:
        importlib.import_module("nm.shuffle.server")
    if emulates or shuffles:
        gc.freeze()


def _threads_left() -> int:
    """The kernel's count of threads, after threads that were joined have exited.

    Python considers a thread joined when it releases its last lock; the kernel still counts it for a moment.
    """
    deadline_s = time.monotonic() + THREAD_EXIT_S_MAX
    while (threads := thread_count()) > 1 and time.monotonic() < deadline_s:
        time.sleep(0.001)
    return threads


def _serve(request: DaemonRequest, conf: Configuration) -> int:
    serve = importlib.import_module(f"{request.package}.daemon").serve
    # Imported modules are never freed, so the garbage collector need not look at them.
    gc.freeze()
    gc.enable()
    try:
        status: int = asyncio.run(serve(conf, _ready_line(READY_FD), **_reload(request)))
    except (YarnException, OSError) as error:
        sys.stderr.write(f"{request.name}: {error}\n")
        return EXIT_REFUSED
    return status


def _reload(request: DaemonRequest) -> dict[str, object]:
    """The argument `reload` for the ResourceManager, the only daemon that reads its files again (refreshQueues)."""
    if request.package != RM:
        return {}
    return {"reload": partial(load_configuration, Path(request.conf_dir), request.overrides)}


def _ready_line(ready_fd: int) -> Callable[[dict[str, object]], None]:
    def ready(facts: dict[str, object]) -> None:
        os.write(ready_fd, json.dumps(facts).encode() + b"\n")
        os.close(ready_fd)

    return ready


def _default_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def _take_files(log_file: str, ready_fd: int) -> None:
    """Redirect standard input to /dev/null and output to the log, move the ready pipe, and close all other files."""
    null = os.open(os.devnull, os.O_RDONLY)
    log = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.dup2(ready_fd, READY_FD, inheritable=False)
    os.closerange(READY_FD + 1, os.sysconf("SC_OPEN_MAX"))


def _change_environment(changes: dict[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
