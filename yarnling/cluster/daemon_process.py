"""A daemon's process before the daemon: its session, signals, files and log."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

from wire.daemon_process import EXIT_REFUSED
from wire.hadoop_xml import load_configuration
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarnling.cluster.processes import die_with_parent
from yarnling.cluster.start_request import StartRequest

LOG_LEVEL = "INFO"
READY_FD = 3
"""Where a forked daemon keeps its ready pipe; everything above is closed, what the parent had open included."""


def run_forked(request: StartRequest, conf: Configuration, ready_fd: int, parent_pid: int) -> NoReturn:
    """Be the daemon, in a process that was just forked. Never returns into the parent's frames."""
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
        # Not sys.exit: the parent's atexit handlers and open objects are not this process's to end.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def start_plain(request: StartRequest, ready_fd: int) -> int:
    """Start a daemon as `python -m rm` or `python -m nm`; the pid. For where forking is not sound."""
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
    # The fork server takes the status itself; Popen must not warn that nobody did.
    process.returncode = 0
    return process.pid


def _serve(request: StartRequest, conf: Configuration) -> int:
    serve = importlib.import_module(f"{request.package}.shell.daemon").serve
    # What is imported stays: collections need not look at it.
    gc.freeze()
    gc.enable()
    try:
        status: int = asyncio.run(serve(conf, _ready_line(READY_FD), **_reload(request)))
    except (YarnException, OSError) as error:
        sys.stderr.write(f"{request.name}: {error}\n")
        return EXIT_REFUSED
    return status


def _reload(request: StartRequest) -> dict[str, object]:
    """The RM alone reads its files again (refreshQueues)."""
    if request.package != "rm":
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
    """Standard input from nowhere, output to the log, the ready pipe at READY_FD, nothing else."""
    nowhere = os.open(os.devnull, os.O_RDONLY)
    log = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for source, target in ((nowhere, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.dup2(ready_fd, READY_FD, inheritable=False)
    os.closerange(READY_FD + 1, os.sysconf("SC_OPEN_MAX"))


def _change_environment(changes: dict[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
