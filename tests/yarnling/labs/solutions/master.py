"""A solution of lab 1: an ApplicationMaster that finishes a job although nodes, the RM and messages fail."""

from __future__ import annotations

from collections.abc import Iterable

from am.programs.custom.core import TaskMaster
from yarn.ids import ContainerId


class Master(TaskMaster):
    """Each missing task has one request or one container; a container that did not do its task is replaced."""

    def __init__(self, tasks: int, confirmed: Iterable[int]) -> None:
        super().__init__(tasks, confirmed)
        self.waiting: list[int] = []
        self.task_of: dict[ContainerId, int] = {}

    def registered(self) -> None:
        for task in self.missing():
            self.wait(task)
        self.finish_if_done()

    def wait(self, task: int) -> None:
        self.waiting.append(task)
        self.request()

    def allocated(self, container: ContainerId) -> None:
        if self.waiting:
            self.task_of[container] = self.waiting.pop(0)
            self.start(container, self.task_of[container])
        else:
            self.release(container)

    def start_failed(self, container: ContainerId, reason: str) -> None:
        self.release(container)
        self.wait(self.task_of.pop(container))

    def ended(self, container: ContainerId, exit_status: int, diagnostics: str) -> None:
        task = self.task_of.pop(container, None)
        if task is None:
            return
        if exit_status == 0:
            self.confirm(task)
            self.finish_if_done()
        else:
            self.wait(task)

    def finish_if_done(self) -> None:
        if not self.missing():
            self.finish()
