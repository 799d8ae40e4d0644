"""The two ways to start a daemon: by a fork of a process that has all it needs, or as a program of its own."""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import grpc
import psutil

from wire.daemon_process import start_logging
from wire.hadoop_xml import load_configuration
from yarn.configuration import Configuration
from yarnling import daemon_process
from yarnling.executed_lists import FUNCTIONS, listed
from yarnling.processes import thread_count
from yarnling.shared_pages import empty_free_lists, fill_holes, forget_types, make_immortal, move_together
from yarnling.start_request import NM, RM, StartRequest

THREAD_END_S_MAX = 1.0
"""How long a thread that was joined may take to be gone; it is microseconds, unless the machine is busy."""
WARM_UP_RUNS = 3 if sys.version_info >= (3, 12) else 10
"""CPython 3.11 specialises a function after eight calls (five rehearsals made NodeManagers 0.15 MB larger), and later
versions at the second one."""
FILLS = 2
"""Of holes, before batches of forks: the first batch is often one NodeManager. Each takes 1.5 ms and 0.8 MB."""
LATE_IMPORTS = ("concurrent.futures.thread", "encodings.idna")
"""What the first to_thread and the first look-up of a host's name bring in."""


Start = Callable[[int], int]
"""Starts a daemon that writes its ready line to a descriptor; its process id. OSError if there can be no process."""


class Starter(Protocol):
    """A way to start daemons."""

    def prepare(self, request: StartRequest) -> Start:
        """Do what can be done before, and raise what can be told then."""
        ...

    def settle(self) -> None:
        """Do what is to be done last before a batch starts that is prepared."""
        ...

    def get_ahead(self) -> None:
        """Prepare for what is likely to be asked for next, while the last daemon starts."""
        ...


def chosen() -> Starter:
    """The way that YARNLING_START names; by fork without it."""
    return Plain() if os.environ.get("YARNLING_START") == "plain" else Forking()


class Forking:
    """Starts daemons by fork.

    What can be done before the fork is done here: a page that a daemon writes to (a reference count is enough) is a
    page of its own. Reading the configuration there instead cost each daemon 2 ms of CPU and 1.5 MB.
    """

    def __init__(self) -> None:
        self._started: set[str] = set()
        self._fills_left = FILLS
        self._imported: set[str] = set()
        # Daemons log where their standard error goes.
        start_logging(daemon_process.LOG_LEVEL)

    def prepare(self, request: StartRequest) -> Start:
        # The ResourceManager is one, and its imports take longest: it makes them itself while those of the
        # NodeManagers are made here. Only if it comes again are they worth having here.
        if request.package != RM or request.package in self._started:
            self._import(request.package)
        self._started.add(request.package)
        conf = load_configuration(Path(request.conf_dir), request.overrides)
        if request.package == NM:
            _read_ahead(conf)
        threads = _threads_left()
        assert threads == 1, f"{threads} threads before a fork: an import started some (YARNLING_START=plain avoids it)"
        return partial(_forked, request, conf, os.getpid())

    def settle(self) -> None:
        """Fill what the first configurations left free; those of later batches use what the first ones did."""
        if NM in self._imported and self._fills_left:
            self._fills_left -= 1
            _fill()

    def get_ahead(self) -> None:
        """After a ResourceManager come NodeManagers: theirs is imported on one core while it starts on another."""
        if self._started == {RM} and not self._imported:
            self._import(NM)

    def _import(self, package: str) -> None:
        """Freezing puts what is imported out of the collector's reach: a collection would copy shared pages."""
        if package in self._imported:
            return
        importlib.import_module(f"{package}.daemon")
        if not self._imported:
            warm_up()
        if package == NM:
            _rehearse()
        self._imported.add(package)
        gc.freeze()


def _forked(request: StartRequest, conf: Configuration, parent: int, ready_fd: int) -> int:
    pid = os.fork()
    if pid == 0:
        daemon_process.run_forked(request, conf, ready_fd, parent)
    return pid


def _read_ahead(conf: Configuration) -> None:
    """A table of emulated containers cost each NodeManager 20 ms of CPU, most of it for the YAML library."""
    if importlib.import_module("nm.rehearsal").read_ahead(conf):
        gc.freeze()


def _rehearse() -> None:
    """Have NodeManagers live and end here, for what they leave behind: see yarnling.shared_pages.

    Without it they start too, only slower and larger.
    """
    rehearse = importlib.import_module("nm.rehearsal").rehearse
    forget_types()
    try:
        with tempfile.TemporaryDirectory(prefix="yarnling-") as directory, unheard():
            first, *others = (partial(rehearse, Path(directory) / str(run)) for run in range(1 + WARM_UP_RUNS))
            first()
            fill_holes()
            moved = move_together(frozenset(listed(FUNCTIONS)))
            for work in others:
                work()
        make_immortal(moved)
    except Exception:
        traceback.print_exc()
    _fill()


def _fill() -> None:
    """Have what daemons make lie together, in 1.5 ms: frozen before, nothing is looked at by the collector."""
    gc.freeze()
    empty_free_lists()
    fill_holes()


@contextmanager
def unheard() -> Iterator[None]:
    """Log to nowhere meanwhile."""
    streams = [handler for handler in logging.getLogger().handlers if isinstance(handler, logging.StreamHandler)]
    with open(os.devnull, "w") as nowhere:
        heard = [(handler, handler.setStream(nowhere)) for handler in streams]
        try:
            yield
        finally:
            for handler, stream in heard:
                handler.setStream(stream)


def _threads_left() -> int:
    """The kernel's count of threads, once those that have ended are out of it.

    Python takes a thread for joined when it has given up its last lock; the kernel counts it until it is gone.
    """
    given_up_s = time.monotonic() + THREAD_END_S_MAX
    while (threads := thread_count()) > 1 and time.monotonic() < given_up_s:
        time.sleep(0.001)
    return threads


class Plain:
    """Starts daemons as programs of their own."""

    def prepare(self, request: StartRequest) -> Start:
        return partial(daemon_process.start_plain, request)

    def settle(self) -> None:
        """Nothing can be shared."""

    def get_ahead(self) -> None:
        """Nothing can be shared."""


def warm_up() -> None:
    """Do what every daemon begins with: its late imports, and code for the interpreter to specialise, once for all.

    An import after the fork costs a megabyte. Nothing here starts a thread, not even for a moment: the kernel still
    counts one that Python has joined. Handlers of methods are no gRPC objects yet.
    """
    for name in LATE_IMPORTS:
        importlib.import_module(name)
    for _ in range(WARM_UP_RUNS):
        asyncio.run(asyncio.sleep(0))
        grpc.unary_unary_rpc_method_handler(bool)
        psutil.virtual_memory()
    psutil.cpu_count(logical=False)
