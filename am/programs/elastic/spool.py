"""The spool of an elastic application: a directory of tasks that workers take from, in the staging directory.

    waiting/000007            task 7, in the order of numbers
    running/000007.WORKER     the container that took it
    ended/000007.0            the exit status of its command

Each step is one rename, so that a task is in one place and two workers cannot take it. All nodes share one file system.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from am.programs.elastic.core import BacklogSeen
from yarn.ids import ContainerId


class Spool:
    """The tasks below `directory`, as the AM and each worker see them."""

    def __init__(self, directory: Path) -> None:
        self._waiting = directory / "waiting"
        self._running = directory / "running"
        self._ended = directory / "ended"

    def make(self) -> None:
        for part in (self._waiting, self._running, self._ended):
            part.mkdir(parents=True, exist_ok=True)

    # The AM's side

    def put(self, first: int, last: int) -> None:
        """Let tasks wait, but for those that are here already."""
        there = {_task(path) for part in (self._waiting, self._running, self._ended) for path in part.iterdir()}
        for task in range(first, last + 1):
            if task not in there:
                (self._waiting / f"{task:06}").touch()

    def put_back(self, worker: ContainerId) -> None:
        """Let what a worker ran wait again; what it says of it from now on counts no more."""
        self._put_back(self._running.glob(f"*.{worker}"))

    def put_back_all(self) -> None:
        """The same for all workers: those of an attempt that is no more."""
        self._put_back(self._running.iterdir())

    def seen(self) -> BacklogSeen:
        # In the order that tasks go: one that is moved meanwhile may be seen twice, which is put right at the next
        # look, but none is missed.
        waiting = sum(1 for _ in self._waiting.iterdir())
        busy: dict[ContainerId, int] = {}
        for path in sorted(self._running.iterdir()):
            worker = ContainerId.parse(path.name.partition(".")[2])
            busy[worker] = busy.get(worker, 0) + 1
        ended = sorted(path.name for path in self._ended.iterdir())
        failed = [name for name in ended if not name.endswith(".0")]
        failure = f"task {int(failed[0][:6])} ended with {failed[0].partition('.')[2]}" if failed else ""
        return BacklogSeen(waiting, busy, len(ended), failure)

    def count(self) -> int:
        """All tasks, wherever they are."""
        return sum(1 for part in (self._waiting, self._running, self._ended) for _ in part.iterdir())

    # A worker's side

    def take(self, worker: ContainerId) -> int | None:
        """The first task that waits, now this worker's; None if none does."""
        for path in sorted(self._waiting.iterdir()):
            try:
                path.rename(self._running / f"{path.name}.{worker}")
            except FileNotFoundError:
                continue
            return _task(path)
        return None

    def end(self, task: int, worker: ContainerId, exit_status: int) -> bool:
        """Tell how a task ended; False if it is not this worker's any more."""
        try:
            (self._running / f"{task:06}.{worker}").rename(self._ended / f"{task:06}.{exit_status}")
        except FileNotFoundError:
            return False
        return True

    def _put_back(self, paths: Iterable[Path]) -> None:
        for path in paths:
            try:
                path.rename(self._waiting / path.name[:6])
            except FileNotFoundError:
                continue


def _task(path: Path) -> int:
    return int(path.name[:6])
