"""Lab 1: an ApplicationMaster. It finishes its job as long as nothing fails; make it finish although things do.

    yarnling lab master master.py

judges it by 200 runs in virtual time, and `--processes` by one on real processes, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from am.programs.custom.core import TaskMaster
from yarn.ids import ContainerId


class Master(TaskMaster):
    """Runs each task of a job in a container. Each attempt of the job has a new Master."""

    def __init__(self, tasks: int, confirmed: Iterable[int]) -> None:
        super().__init__(tasks, confirmed)
        self.waiting = list(self.tasks)
        self.task_of: dict[ContainerId, int] = {}

    def registered(self) -> None:
        """The ResourceManager knows this attempt now: request a container for each task."""
        for _ in self.tasks:
            self.request()

    def allocated(self, container: ContainerId) -> None:
        """Start the next task in the container."""
        task = self.waiting.pop(0)
        self.task_of[container] = task
        self.start(container, task)

    def start_failed(self, container: ContainerId, reason: str) -> None:
        """The container could not be started."""

    def ended(self, container: ContainerId, exit_status: int, diagnostics: str) -> None:
        """The container has ended: its task is done."""
        self.confirm(self.task_of[container])
        if not self.missing():
            self.finish()
