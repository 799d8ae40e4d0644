"""The spool of an elastic application: a directory in the staging directory, from which workers take tasks.

    spool/waiting/000007            task 7; workers take tasks in the order of their numbers
    spool/running/000007.WORKER     task 7 is run by the container WORKER
    spool/ended/000007.0            task 7 has ended; its command's exit status was 0

Each step is one rename, so a task is always in one place and two workers cannot take it. All nodes share one file
system.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from am.programs.elastic.core import SpoolScanned
from yarn.ids import ContainerId


class Spool:
    """The tasks in a staging directory, as the AM and each worker see them."""

    def __init__(self, staging: Path) -> None:
        self._directory = staging / "spool"
        self._waiting = self._directory / "waiting"
        self._running = self._directory / "running"
        self._ended = self._directory / "ended"

    def make(self) -> None:
        """Create the directories; existing ones are kept."""
        for part in self._parts():
            part.mkdir(parents=True, exist_ok=True)

    def exists(self) -> bool:
        return self._directory.exists()

    def enqueue(self, first: int, last: int) -> None:
        """Add tasks, except those that are in the spool already."""
        known = {_task(path) for part in self._parts() for path in part.iterdir()}
        for task in range(first, last + 1):
            if task not in known:
                (self._waiting / f"{task:06}").touch()

    def requeue(self, worker: ContainerId) -> None:
        """Move the tasks of a worker back to waiting; later reports of the worker about them are ignored."""
        self._requeue(self._running.glob(f"*.{worker}"))

    def requeue_all(self) -> None:
        """Move the tasks of all workers back to waiting."""
        self._requeue(self._running.iterdir())

    def scan(self) -> SpoolScanned:
        # The directories are read in the order in which tasks move. So a task that moves meanwhile may be counted
        # twice, until the next scan, but none is missed.
        waiting = sum(1 for _ in self._waiting.iterdir())
        busy: dict[ContainerId, int] = {}
        for path in sorted(self._running.iterdir()):
            worker = ContainerId.parse(path.name.partition(".")[2])
            busy[worker] = busy.get(worker, 0) + 1
        ended = sorted(path.name for path in self._ended.iterdir())
        failed = [name for name in ended if not name.endswith(".0")]
        failure = f"task {int(failed[0][:6])} ended with {failed[0].partition('.')[2]}" if failed else ""
        return SpoolScanned(waiting, busy, len(ended), failure)

    def count(self) -> int:
        """The number of all tasks."""
        return sum(1 for part in self._parts() for _ in part.iterdir())

    def take(self, worker: ContainerId) -> int | None:
        """Move the first waiting task to this worker and return its number; None if no task waits."""
        for path in sorted(self._waiting.iterdir()):
            try:
                path.rename(self._running / f"{path.name}.{worker}")
            except FileNotFoundError:
                continue
            return _task(path)
        return None

    def end(self, task: int, worker: ContainerId, exit_status: int) -> bool:
        """Record the end of a task. Returns False if the task does not belong to this worker any more."""
        try:
            (self._running / f"{task:06}.{worker}").rename(self._ended / f"{task:06}.{exit_status}")
        except FileNotFoundError:
            return False
        return True

    def _parts(self) -> tuple[Path, Path, Path]:
        return (self._waiting, self._running, self._ended)

    def _requeue(self, paths: Iterable[Path]) -> None:
        for path in paths:
            try:
                path.rename(self._waiting / path.name[:6])
            except FileNotFoundError:
                continue


def _task(path: Path) -> int:
    return int(path.name[:6])
