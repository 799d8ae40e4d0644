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
from typing import TypeAlias

from yarn.errors import InternalError
from yarnling.cluster.processes import die_with_parent
from yarnling.whatif.figures import Figures
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.run import HowFar
from yarnling.whatif.sides import SideRun, run_once

Outcome: TypeAlias = tuple[Figures, WhatIfResult | None]
Report: TypeAlias = Callable[[int, HowFar], None]
"""Called with the number of a run, from 0, and how far it is."""
POLL_S = 0.2


def run_all(runs: Sequence[SideRun], report: Report) -> list[Outcome]:
    """The outcomes of the runs, in their order; a single one happens in this process.

    Raises InternalError if a core fails or a process is killed. If this raises, the other runs end first, each within
    a virtual minute.
    """
    if len(runs) == 1:
        return [run_once(runs[0], lambda how_far: _reported(report, how_far))]
    # Not forked: threads of gRPC and of the progress bar may hold locks.
    context = get_context("spawn")
    times: SimpleQueue[tuple[int, HowFar]] = context.SimpleQueue()
    stop = context.Event()
    workers = min(len(runs), len(os.sched_getaffinity(0)))
    with ProcessPoolExecutor(workers, context, _set_up, (os.getpid(), times, stop)) as pool:
        try:
            with _ctrl_c_waits():
                futures = [pool.submit(_run, number, run) for number, run in enumerate(runs)]
                # The pool watches the process that it started last only from the next submit on.
                pool.submit(_nothing)
            return _followed(futures, times, report)
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


def _followed(
    futures: Sequence[Future[Outcome]], times: SimpleQueue[tuple[int, HowFar]], report: Report
) -> list[Outcome]:
    left = set(futures)
    while left:
        done, left = wait(left, POLL_S, FIRST_COMPLETED)
        while not times.empty():
            report(*times.get())
        for future in done:
            future.result()
    return [future.result() for future in futures]


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


def _run(number: int, run: SideRun) -> Outcome:
    def progress(how_far: HowFar) -> bool:
        _Shared.times.put((number, how_far))
        return not _Shared.stop.is_set()

    return run_once(run, progress)
