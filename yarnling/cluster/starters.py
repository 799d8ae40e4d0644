"""The two ways to start a daemon: fork a process that has imported everything, or run a program of its own."""

from __future__ import annotations

import gc
import importlib
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from wire.daemon_process import start_logging
from wire.hadoop_xml import load_configuration
from yarn.configuration import Configuration
from yarnling.cluster import daemon_process
from yarnling.cluster.processes import thread_count
from yarnling.cluster.start_request import NM, RM, StartRequest

THREAD_EXIT_S_MAX = 1.0
"""How long a joined thread may take to exit; microseconds, unless the machine is busy."""
LATE_IMPORTS = ("concurrent.futures.thread", "encodings.idna")
"""Modules that the first to_thread and the first look-up of a host name import."""

Start = Callable[[int], int]
"""Start a daemon that writes its ready line to a descriptor; returns its pid. OSError if no process can be made."""


class Starter(Protocol):
    """A way to start daemons."""

    def prepare(self, request: StartRequest) -> Start:
        """Do everything that can be done before the start. Raises what can be reported at that time."""
        ...

    def import_ahead(self) -> None:
        """Import what the next requests are likely to need, while the daemons just started run."""
        ...


def chosen() -> Starter:
    """The way that YARNLING_START names; fork by default."""
    return Plain() if os.environ.get("YARNLING_START") == "plain" else Forking()


class Forking:
    """Start daemons by fork: import, freeze, fork.

    The configuration is read before the fork, so that its faults are reported without one.
    """

    def __init__(self) -> None:
        self._started: set[str] = set()
        self._imported: set[str] = set()
        # Daemons log to their standard error.
        start_logging(daemon_process.LOG_LEVEL)

    def prepare(self, request: StartRequest) -> Start:
        # There is one ResourceManager and its imports take longest: it imports by itself, while this process imports
        # the NodeManager. Only when it is started again is it worth importing here.
        if request.package != RM or request.package in self._started:
            self._import(request.package)
        self._started.add(request.package)
        conf = load_configuration(Path(request.conf_dir), request.overrides)
        if request.package == NM:
            _read_emulation_table(conf)
        threads = _threads_left()
        assert threads == 1, f"{threads} threads before a fork: an import started some (YARNLING_START=plain avoids it)"
        return partial(_forked, request, conf, os.getpid())

    def import_ahead(self) -> None:
        """After a ResourceManager come NodeManagers: import theirs on one core while it starts on another."""
        if self._started == {RM} and not self._imported:
            self._import(NM)

    def _import(self, package: str) -> None:
        """Freeze what was imported: a garbage collection in a daemon would otherwise copy every shared page."""
        if package in self._imported:
            return
        for name in (f"{package}.shell.daemon", *LATE_IMPORTS):
            importlib.import_module(name)
        self._imported.add(package)
        gc.freeze()


def _forked(request: StartRequest, conf: Configuration, parent: int, ready_fd: int) -> int:
    pid = os.fork()
    if pid == 0:
        daemon_process.run_forked(request, conf, ready_fd, parent)
    return pid


def _read_emulation_table(conf: Configuration) -> None:
    """Read the table that all NodeManagers of this configuration need; each would spend 20 ms of CPU on it.

    Raises ConfigurationException with every fault of the table.
    """
    if importlib.import_module("nm.shell.node_manager").emulation_of(conf) is not None:
        gc.freeze()


def _threads_left() -> int:
    """The kernel's count of threads, once those that were joined have exited.

    Python considers a thread joined when it releases its last lock; the kernel counts it until it is gone.
    """
    deadline_s = time.monotonic() + THREAD_EXIT_S_MAX
    while (threads := thread_count()) > 1 and time.monotonic() < deadline_s:
        time.sleep(0.001)
    return threads


class Plain:
    """Start daemons as programs of their own."""

    def prepare(self, request: StartRequest) -> Start:
        return partial(daemon_process.start_plain, request)

    def import_ahead(self) -> None:
        """Nothing is shared."""
