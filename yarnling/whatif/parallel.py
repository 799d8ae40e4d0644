"""Runs simulations in processes of their own, as many at a time as there are cores, and follows their progress."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from typing import TypeAlias, TypeVar

from yarn.errors import InternalError
from yarnling.cluster.processes import die_with_parent
from yarnling.whatif.figures import Figures
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.run import HowFar, Progress
from yarnling.whatif.sides import SideRun, run_once

R = TypeVar("R")
T = TypeVar("T")
Outcome: TypeAlias = tuple[Figures, WhatIfResult | None]
Report: TypeAlias = Callable[[int, HowFar], None]
"""Called with the number of a run, from 0, and how far it is."""
Work: TypeAlias = Callable[[R, Progress], T]
"""Simulates a run: a function of a module, which another process can import. It ends early if its progress returns
False."""
POLL_S = 0.2


def run_all(runs: Sequence[SideRun], report: Report) -> list[Outcome]:
    """The outcomes of the runs, in their order; a single one happens in this process.

    Raises InternalError if a core fails or a process is killed. If this raises, the other runs end first, each within
    a virtual minute.
    """
    if len(runs) == 1:
        return [run_once(runs[0], lambda how_far: _reported(report, how_far))]
    with processes(min(len(runs), cores())) as pool:
        outcomes = dict(pool.outcomes(run_once, runs, report))
    return [outcomes[number] for number in range(len(runs))]


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


class ProcessesOfRuns:
    """Processes that wait for simulations."""

    def __init__(self, executor: ProcessPoolExecutor, times: SimpleQueue[tuple[int, HowFar]]) -> None:
        self._executor = executor
        self._times = times

    def outcomes(self, work: Work[R, T], runs: Sequence[R], report: Report) -> Iterator[tuple[int, T]]:
        """The number of each run, from 0, with the outcome of its work, in the order in which they end."""
        with _ctrl_c_waits():
            numbers = {self._executor.submit(_run, work, number, run): number for number, run in enumerate(runs)}
            # The pool watches the process that it started last only from the next submit on.
            self._executor.submit(_nothing)
        left: set[Future[T]] = set(numbers)
        while left:
            done, left = wait(left, POLL_S, FIRST_COMPLETED)
            while not self._times.empty():
                report(*self._times.get())
            for future in done:
                yield numbers[future], future.result()


@contextmanager
def processes(workers: int) -> Iterator[ProcessesOfRuns]:
    """Start so many processes; they end with the context, those that still simulate within a virtual minute.

    Raises InternalError if one of them is killed.
    """
    # Not forked: threads of gRPC and of the progress bar may hold locks.
    context = get_context("spawn")
    times: SimpleQueue[tuple[int, HowFar]] = context.SimpleQueue()
    stop = context.Event()
    with ProcessPoolExecutor(workers, context, _set_up, (os.getpid(), times, stop)) as pool:
        try:
            yield ProcessesOfRuns(pool, times)
        except BrokenProcessPool:
            raise InternalError("the process of a simulation was killed (it may need more memory)") from None
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Deliver Ctrl-C after the block. Processes that start in it inherit this until `_set_up`."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _reported(report: Report, how_far: HowFar) -> bool:
    report(0, how_far)
    return True


class _Shared:
    """State that the processes of a pool share with the one that started them."""

    times: SimpleQueue[tuple[int, HowFar]]
    stop: Event


def _set_up(parent_pid: int, times: SimpleQueue[tuple[int, HowFar]], stop: Event) -> None:
    """Ctrl-C goes to all processes of a terminal; the one that started them decides. They end with it.

    The thread that started them waits for them, so the kernel does not take its end for the parent's.
    """
    die_with_parent(parent_pid)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    _Shared.times, _Shared.stop = times, stop


def _nothing() -> None: ...


def _run(work: Work[R, T], number: int, run: R) -> T:
    def progress(how_far: HowFar) -> bool:
        _Shared.times.put((number, how_far))
        return not _Shared.stop.is_set()

    return work(run, progress)
