"""A program of N equal containers: asked for at once, done when all have ended. The core of DistributedShell.

Its rules are those of Hadoop's DistributedShell ApplicationMaster, also where one would choose otherwise today:
an exit status of -100 (lost node, released) is asked for again; any other failure counts as completed *and* failed and
is not tried again, a preempted container (-102) among them.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from am.core.events import (
    Allocation,
    ContainersAllocated,
    ContainersCompleted,
    ContainersFromPreviousAttempts,
    ContainerStartFailed,
    Event,
    HeartbeatFailed,
    Registered,
    ShutdownOrdered,
)
from am.core.requests import ContainerRequest
from am.programs.core.actions import Action, AskFor, Finish, GiveBack, Launch, Leave, Withdraw
from yarn.containers import Container, ContainerLaunchContext, ContainerStatus
from yarn.ids import ContainerId
from yarn.resource import Resource, componentwise_min
from yarn.states import ContainerExitStatus, ExecutionType, FinalApplicationStatus

EXIT_FAILED = 2
"""The AM's exit code if containers failed, as Hadoop's (1 is a crash)."""

LaunchContextOf = Callable[[int], ContainerLaunchContext]
"""What the n-th container runs; n counts from 1 and is never used twice by one attempt."""


class Width(Struct, frozen=True):
    """How many containers of which size and priority.

    `exact`: one that is larger than the queue allows ends the application, instead of being cut (DistributedShell).
    """

    containers: int
    capability: Resource
    priority: int = 0
    execution_type: ExecutionType = ExecutionType.GUARANTEED
    label: str | None = None
    exact: bool = False


class FixedWidth:
    """The state of one run. `requested` - `completed` containers are asked for or running at any time."""

    def __init__(self, width: Width, launch_context_of: LaunchContextOf) -> None:
        self.width = width
        self.requested = 0
        self.allocated = 0
        self.completed = 0
        self.failed = 0
        self._launch_context_of = launch_context_of
        self._request: ContainerRequest | None = None
        self._running: dict[ContainerId, None] = {}
        self._launches = 0
        self._is_over = False

    def handle(self, event: Event, now_ms: int) -> list[Action]:
        """Actions for one event; after Finish or Leave there are no more."""
        if self._is_over:
            return []
        actions = self._handle(event)
        self._is_over = any(isinstance(action, Finish | Leave) for action in actions)
        return actions

    def progress(self) -> float:
        return self.completed / self.width.containers if self.width.containers else 1.0

    def _handle(self, event: Event) -> list[Action]:
        match event:
            case Registered(maximum_capability) if self.width.exact and not self._fits(maximum_capability):
                return [
                    Finish(FinalApplicationStatus.FAILED, self._too_large(maximum_capability, event.queue), EXIT_FAILED)
                ]
            case Registered(maximum_capability):
                self._request = self._make_request(maximum_capability)
                return [*self._ask_for_missing(), *self._maybe_finish()]
            case ContainersFromPreviousAttempts(containers):
                return self._adopt(containers)
            case ContainersAllocated(allocations):
                return [self._take(allocation) for allocation in allocations]
            case ContainersCompleted(statuses):
                for status in statuses:
                    self._count_end(status)
                return [*self._ask_for_missing(), *self._maybe_finish()]
            case ContainerStartFailed(container_id, _) if container_id in self._running:
                del self._running[container_id]
                self.completed += 1
                self.failed += 1
                return [GiveBack(container_id), *self._maybe_finish()]
            case ShutdownOrdered(reason):
                return [Leave(reason)]
            case HeartbeatFailed(error):
                return [Leave(str(error))]
            case _:
                return []

    def _make_request(self, maximum: Resource) -> ContainerRequest:
        """Sizes above the queue's maximum are cut to it, as DistributedShell does, rather than refused."""
        width = self.width
        return ContainerRequest(
            componentwise_min(width.capability, maximum),
            width.priority,
            label=width.label,
            execution_type=width.execution_type,
        )

    def _fits(self, maximum: Resource) -> bool:
        return self.width.capability.fits_in(maximum)

    def _too_large(self, maximum: Resource, queue: str) -> str:
        return f"containers of {self.width.capability} are larger than {queue} allows, {maximum} (ask for less)"

    def _ask_for_missing(self) -> list[Action]:
        if self._request is None:
            return []
        missing = self.width.containers - self.requested
        self.requested += max(missing, 0)
        return [AskFor(self._request)] * missing

    def _adopt(self, containers: tuple[Container, ...]) -> list[Action]:
        """Containers of an earlier attempt take the place of as many asks; `requested` counts them already."""
        assert self._request is not None, "containers are told after the registration"
        new = [container for container in containers if container.id not in self._running]
        self._running.update(dict.fromkeys(container.id for container in new))
        self.allocated += len(new)
        return [Withdraw(self._request)] * len(new)

    def _take(self, allocation: Allocation) -> Action:
        container = allocation.container
        if self.allocated >= self.width.containers:
            return GiveBack(container.id)
        self.allocated += 1
        self._launches += 1
        self._running[container.id] = None
        return Launch(container, self._launch_context_of(self._launches))

    def _count_end(self, status: ContainerStatus) -> None:
        """Containers we know nothing about (surplus given back, earlier attempts) do not count."""
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

    def _maybe_finish(self) -> list[Action]:
        if self.completed < self.width.containers:
            return []
        if self.failed == 0:
            return [Finish(FinalApplicationStatus.SUCCEEDED)]
        diagnostics = (
            f"Application Failure: desired = {self.width.containers}, completed = {self.completed}, "
            f"allocated = {self.allocated}, failed = {self.failed}"
        )
        return [Finish(FinalApplicationStatus.FAILED, diagnostics, EXIT_FAILED)]
