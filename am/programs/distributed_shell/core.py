"""The core of the distributed shell: it requests N equal containers at once and finishes when all have ended.

The rules are those of Hadoop's DistributedShell ApplicationMaster, even where they are questionable: a container that
ends with -100 (lost node, released) is requested again. Any other failure, also preemption (-102), counts as completed
*and* as failed, and is not retried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from am.core.actions import Action, Finish, Launch, ReleaseContainer, RequestContainer, WithdrawRequest
from am.core.application import ApplicationCore
from am.core.events import (
    AllocatedContainer,
    ContainersAllocated,
    ContainersCompleted,
    ContainersFromPreviousAttempts,
    ContainerStartFailed,
    Event,
    Registered,
)
from am.core.requests import ContainerRequest
from yarn.containers import ContainerLaunchContext, ContainerStatus
from yarn.ids import ContainerId
from yarn.resource import Resource, componentwise_min
from yarn.states import ContainerExitStatus, ExecutionType, FinalApplicationStatus

EXIT_FAILED = 2
"""The AM's exit code if containers failed, as in Hadoop (1 means a crash)."""

LaunchContextOf = Callable[[int], ContainerLaunchContext]
"""A function that returns what the n-th container runs. n counts from 1, and an attempt never uses it twice."""


class Width(Struct, frozen=True):
    """The number, size and priority of the containers.

    If `exact`, a size above the queue's maximum fails the application. If not `exact`, a size above the maximum is cut
    to the maximum.
    """

    containers: int
    capability: Resource
    priority: int = 0
    execution_type: ExecutionType = ExecutionType.GUARANTEED
    label: str | None = None
    exact: bool = False


class DistributedShellCore(ApplicationCore[Event, Action]):
    """A run of the application. `requested` - `completed` containers are requested or running at any time."""

    def __init__(self, width: Width, launch_context_of: LaunchContextOf, *, check_invariants: bool = False) -> None:
        super().__init__(check_invariants=check_invariants)
        self.width = width
        self.requested = 0
        self.allocated = 0
        self.completed = 0
        self.failed = 0
        self._launch_context_of = launch_context_of
        self._request: ContainerRequest | None = None
        self._running: dict[ContainerId, None] = {}
        self._launches = 0
        self._dispatcher.on(Registered, self._registered)
        self._dispatcher.on(ContainersFromPreviousAttempts, self._adopt)
        self._dispatcher.on(ContainersAllocated, self._launch_all)
        self._dispatcher.on(ContainersCompleted, self._count_completed)
        self._dispatcher.on(ContainerStartFailed, self._start_failed)

    def progress(self) -> float:
        return self.completed / self.width.containers if self.width.containers else 1.0

    def violations(self) -> Iterator[str]:
        """Check A-15: the counts agree with one another, and do not exceed the wanted number of containers."""
        wanted = self.width.containers
        if not 0 <= self.failed <= self.completed <= self.allocated <= wanted or self.requested > wanted:
            yield (
                f"A-15: wanted {wanted}, requested {self.requested}, allocated {self.allocated}, "
                f"completed {self.completed}, failed {self.failed}"
            )
        if len(self._running) != self.allocated - self.completed:
            yield f"A-15: {len(self._running)} run, allocated {self.allocated}, completed {self.completed}"

    def _registered(self, event: Registered) -> None:
        """Request the containers. A size above the queue's maximum is cut to the maximum, unless it is exact."""
        width, maximum = self.width, event.maximum_capability
        if width.exact and not width.capability.fits_in(maximum):
            diagnostics = f"containers of {width.capability} are larger than {event.queue} allows, {maximum}"
            self._end(Finish(FinalApplicationStatus.FAILED, f"{diagnostics} (request less)", EXIT_FAILED))
            return
        self._request = ContainerRequest(
            componentwise_min(width.capability, maximum),
            width.priority,
            label=width.label,
            execution_type=width.execution_type,
        )
        self._request_missing()
        self._maybe_finish()

    def _request_missing(self) -> None:
        if self._request is not None:
            while self.requested < self.width.containers:
                self.requested += 1
                self._dispatcher.emit(RequestContainer(self._request))

    def _adopt(self, event: ContainersFromPreviousAttempts) -> None:
        """Adopt containers of an earlier attempt, which replace as many requests; `requested` counts them already.

        After a restart of the RM they are reported with their nodes, perhaps once others have replaced them all.
        """
        assert self._request is not None, "containers are reported after the registration"
        for container in event.containers:
            if container.id in self._running:
                continue
            if self.allocated >= self.width.containers:
                self._dispatcher.emit(ReleaseContainer(container.id))
            else:
                self._running[container.id] = None
                self.allocated += 1
                self._dispatcher.emit(WithdrawRequest(self._request))

    def _launch_all(self, event: ContainersAllocated) -> None:
        for allocation in event.allocations:
            self._dispatcher.emit(self._launch(allocation))

    def _launch(self, allocation: AllocatedContainer) -> Launch | ReleaseContainer:
        container = allocation.container
        if self.allocated >= self.width.containers:
            return ReleaseContainer(container.id)
        self.allocated += 1
        self._launches += 1
        self._running[container.id] = None
        return Launch(container, self._launch_context_of(self._launches))

    def _start_failed(self, event: ContainerStartFailed) -> None:
        if event.container_id in self._running:
            del self._running[event.container_id]
            self.completed += 1
            self.failed += 1
            self._dispatcher.emit(ReleaseContainer(event.container_id))
            self._maybe_finish()

    def _count_completed(self, event: ContainersCompleted) -> None:
        for status in event.statuses:
            self._count(status)
        self._request_missing()
        self._maybe_finish()

    def _count(self, status: ContainerStatus) -> None:
        """Count the end of a container of this run. Released containers and those of earlier attempts do not count."""
        if status.container_id not in self._running:
            return
        del self._running[status.container_id]
        if status.exit_status == ContainerExitStatus.ABORTED:
            self.allocated -= 1
            self.requested -= 1
            return
        self.completed += 1
        if status.exit_status != ContainerExitStatus.SUCCESS:
            self.failed += 1

    def _maybe_finish(self) -> None:
        if self.completed < self.width.containers:
            return
        if self.failed == 0:
            self._end(Finish(FinalApplicationStatus.SUCCEEDED))
            return
        diagnostics = (
            f"Application Failure: desired = {self.width.containers}, completed = {self.completed}, "
            f"allocated = {self.allocated}, failed = {self.failed}"
        )
        self._end(Finish(FinalApplicationStatus.FAILED, diagnostics, EXIT_FAILED))
