"""The ApplicationMaster of the lessons: it requests containers as it is told, and finishes when all have ended."""

from __future__ import annotations

from msgspec import Struct

from am.core.actions import Action, Finish, Launch, ReleaseContainer, RequestContainer
from am.core.application import ApplicationCore
from am.core.events import ContainersAllocated, ContainersCompleted, ContainerStartFailed, Event, Registered
from am.core.requests import ContainerRequest
from yarn.containers import ContainerLaunchContext
from yarn.ids import ApplicationAttemptId
from yarn.resource import Resource
from yarn.states import ContainerExitStatus, FinalApplicationStatus
from yarnling.simulation.recorder import HistoryWriter
from yarnling.simulation.workload import RunningWork

FOREVER = "forever"
"""The command of a container that runs until it is stopped."""
LENGTHS_S = (2, 4, 8, 15, 30, 60, 120)
"""The time the other containers run. Each length is a rule of the emulation table."""
REPEATED = frozenset({ContainerExitStatus.ABORTED, ContainerExitStatus.PREEMPTED})
"""Exit statuses of containers that are requested again: lost with their node or released, and preempted."""


class Wanted(Struct, frozen=True):
    """A request for `count` equal containers.

    `hosts`: where they should run. `seconds`: how long, one of LENGTHS_S; None: until stopped. `label`: of the
    partition in which they should run; None: the queue's default.
    """

    count: int
    resource: Resource
    hosts: tuple[str, ...] = ()
    seconds: int | None = None
    relax_locality: bool = True
    label: str | None = None

    @property
    def command(self) -> str:
        return FOREVER if self.seconds is None else f"s{self.seconds}"


class LessonApplication(ApplicationCore[Event, Action]):
    """Requests everything when it is registered. The position of a `Wanted` is the priority of its requests."""

    def __init__(self, wanted: tuple[Wanted, ...]) -> None:
        super().__init__(check_invariants=False)
        self._wanted = wanted
        self._requests = [
            ContainerRequest(
                each.resource,
                number,
                each.hosts,
                relax_locality=each.relax_locality,
                allocation_request_id=number,
                label=each.label,
            )
            for number, each in enumerate(wanted, 1)
        ]
        self._left = sum(each.count for each in wanted)
        self._count = self._left
        on = self._dispatcher.on
        on(Registered, self._request_all)
        on(ContainersAllocated, self._launch)
        on(ContainersCompleted, self._completed)
        on(ContainerStartFailed, lambda event: self._dispatcher.emit(ReleaseContainer(event.container_id)))

    def progress(self) -> float:
        return 1 - self._left / self._count if self._count else 0.0

    def _request_all(self, _: Registered) -> None:
        for wanted, request in zip(self._wanted, self._requests, strict=True):
            for _again in range(wanted.count):
                self._dispatcher.emit(RequestContainer(request))

    def _launch(self, event: ContainersAllocated) -> None:
        for allocation in event.allocations:
            container = allocation.container
            if allocation.request is None:
                self._dispatcher.emit(ReleaseContainer(container.id))
            else:
                command = self._wanted[allocation.request.priority - 1].command
                self._dispatcher.emit(Launch(container, ContainerLaunchContext((command,))))

    def _completed(self, event: ContainersCompleted) -> None:
        for status in event.statuses:
            if status.exit_status in REPEATED:
                self._dispatcher.emit(RequestContainer(self._requests[0]))
            else:
                self._left -= 1
        if self._left <= 0:
            self._end(Finish(FinalApplicationStatus.SUCCEEDED))


class LessonWork(RunningWork, frozen=True):
    """The requests of an application of a lesson."""

    wanted: tuple[Wanted, ...] = ()

    def application(
        self, attempt_id: ApplicationAttemptId, recorder: HistoryWriter, *, check_invariants: bool
    ) -> LessonApplication:
        return LessonApplication(self.wanted)
