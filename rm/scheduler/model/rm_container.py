"""RMContainer: a container as the ResourceManager sees it, from its placement to its end.

The scheduler passes events to it; its notices go to the rest of the ResourceManager (in Hadoop RMContainerImpl sends
events). A reservation is also an RMContainer, in state RESERVED and not yet on the node. When it is filled, a new
RMContainer with the same id replaces it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from msgspec.structs import replace

from rm.scheduler.model.notices import (
    CleanUpContainer,
    ContainerAcquired,
    ContainerAllocated,
    ContainerFinished,
    ContainerRecovered,
    ContainerReportedRunning,
    IncreaseAcquired,
    IncreaseSettled,
    Notice,
    UpdateContainer,
)
from rm.scheduler.model.origin import PlacementOrigin, PreemptionStep
from rm.scheduler.model.requests import RequestTerms, SchedulerKey
from rm.scheduler.model.rm_container_events import (
    AcquireUpdatedContainer,
    NMDoneChangeResource,
    RMContainerAcquired,
    RMContainerEnd,
    RMContainerEvent,
    RMContainerExpire,
    RMContainerFinished,
    RMContainerKill,
    RMContainerLaunched,
    RMContainerRecover,
    RMContainerReleased,
    RMContainerReserved,
    RMContainerStart,
)
from yarn.containers import Container, ContainerStatus
from yarn.ids import ApplicationAttemptId, ContainerId, NodeId
from yarn.machine import Lifecycle, Machine, Row
from yarn.resource import Resource, componentwise_max
from yarn.states import ContainerState, ExecutionType


class RMContainerState(Enum):
    """States of a container in the ResourceManager."""

    NEW = "NEW"
    RESERVED = "RESERVED"
    ALLOCATED = "ALLOCATED"
    ACQUIRED = "ACQUIRED"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    EXPIRED = "EXPIRED"
    RELEASED = "RELEASED"
    KILLED = "KILLED"


FINAL = frozenset(
    {RMContainerState.COMPLETED, RMContainerState.EXPIRED, RMContainerState.RELEASED, RMContainerState.KILLED}
)


class RMContainer:
    """A container that the scheduler placed or reserved.

    `key` and `asks` are the requests that it serves; `asks` is kept until it is ACQUIRED, to restore the requests if it
    is lost before. `is_am`: it runs the AM of its attempt. `last_confirmed`: the size to which it is rolled back if the
    token of an increase is not used in time. `was_moved`: its reservation was moved to another node. For explanations
    only: `origin`, why it was placed or reserved, None if this RM did not place it; `preemption_steps`, the last of
    each kind.
    """

    __slots__ = (
        "_machine",
        "_notify",
        "asks",
        "container",
        "id",
        "is_am",
        "key",
        "last_confirmed",
        "node_id",
        "origin",
        "partition",
        "preemption_steps",
        "queue",
        "started_ms",
        "status",
        "user",
        "was_moved",
    )

    def __init__(
        self,
        container: Container,
        key: SchedulerKey,
        *,
        user: str,
        queue: str,
        partition: str,
        started_ms: int,
        notify: Callable[[Notice], None],
    ) -> None:
        self.container = container
        self.key = key
        self.id: ContainerId = container.id
        self.node_id: NodeId = container.node_id
        self.user = user
        self.queue = queue
        self.partition = partition
        self.started_ms = started_ms
        self.asks: tuple[RequestTerms, ...] | None = None
        self.is_am = False
        self.last_confirmed = container.resource
        self.was_moved = False
        self.origin: PlacementOrigin | None = None
        self.preemption_steps: tuple[PreemptionStep, ...] = ()
        self.status: ContainerStatus | None = None
        self._notify = notify
        self._machine = Machine(RMContainerState.NEW)

    @property
    def attempt_id(self) -> ApplicationAttemptId:
        """The attempt for which the container was placed. If containers are kept, a later attempt may hold it."""
        return self.id.attempt_id

    @property
    def state(self) -> RMContainerState:
        return self._machine.state

    @property
    def is_running(self) -> bool:
        return self._machine.state is RMContainerState.RUNNING

    @property
    def is_opportunistic(self) -> bool:
        """True if the container is charged neither to its node nor to its queue."""
        return self.container.execution_type is ExecutionType.OPPORTUNISTIC

    @property
    def resource(self) -> Resource:
        """The container's size; in state RESERVED the size of the reservation."""
        return self.container.resource

    @property
    def priority(self) -> int:
        """The priority of the container's request; a lower number is more urgent."""
        return self.container.priority

    def move_to(self, node_id: NodeId) -> None:
        """Move the reservation to another node."""
        self.node_id = node_id
        self.container = replace(self.container, node_id=node_id)
        self.was_moved = True

    def note_preemption(self, step: PreemptionStep) -> None:
        """Remember what a round of preemption did; it replaces the last step of the same kind."""
        self.preemption_steps = (*(done for done in self.preemption_steps if done.step != step.step), step)

    def handle(self, event: RMContainerEvent, now_ms: int) -> RMContainerState:
        """Handle an event; raises IllegalTransition if the present state has no row for it."""
        return LIFECYCLE.handle(self, self._machine, event, now_ms)

    def allows(self, event: type[RMContainerEvent]) -> bool:
        """True if the table has a row for the event in the present state."""
        return LIFECYCLE.row(self._machine.state, event) is not None

    def __str__(self) -> str:
        return str(self.id)

    def on_started(self, _: RMContainerStart) -> None:
        self._notify(ContainerAllocated(self.attempt_id, self.id))

    def on_acquired(self, _: RMContainerAcquired) -> None:
        self.asks = None
        self._notify(ContainerAcquired(self.id, self.node_id))

    def on_recovered(self, event: RMContainerRecover) -> RMContainerState:
        """Handle a container that an NM reported after an RM restart (ContainerRecoveredTransition)."""
        report = event.report
        if report.state is ContainerState.COMPLETE:
            self._note_end(
                ContainerStatus(self.id, report.state, exit_status=report.exit_status, diagnostics=report.diagnostics)
            )
            return RMContainerState.COMPLETED
        self._notify(ContainerRecovered(self.id, self.node_id))
        return RMContainerState.RUNNING

    def on_launched(self, _: RMContainerLaunched) -> None:
        self._notify(ContainerReportedRunning(self.id))

    def on_change_acquired(self, event: AcquireUpdatedContainer) -> None:
        """Start the expiry of an increase: the AM has limited time to send it to the NM."""
        if event.is_increase:
            self._notify(IncreaseAcquired(self.id))

    def on_change_done(self, event: NMDoneChangeResource) -> None:
        """Compare the size that the NM reported with the present size; later updates may be pending.

        Source: NMReportedContainerChangeIsDoneTransition.
        """
        reported, size = event.reported, self.resource
        if reported == size:
            self.last_confirmed = reported
            self._notify(IncreaseSettled(self.id))
        elif size.fits_in(reported):
            self.last_confirmed = size
            self._notify(IncreaseSettled(self.id))
            self._notify(UpdateContainer(self.node_id, self.container))
        elif reported.fits_in(size):
            self.last_confirmed = componentwise_max(reported, self.last_confirmed)
        else:
            self._notify(CleanUpContainer(self.node_id, self.id))

    def on_finished(self, event: RMContainerEnd) -> None:
        self._note_end(event.status)

    def on_killed(self, event: RMContainerEnd) -> None:
        self._notify(CleanUpContainer(self.node_id, self.id))
        self._note_end(event.status)

    def _note_end(self, status: ContainerStatus) -> None:
        self.status = status
        size = self.resource
        self._notify(ContainerFinished(self.attempt_id, self.node_id, status, size, self.started_ms, self.is_am))


_S = RMContainerState

LIFECYCLE: Lifecycle[RMContainer, RMContainerState] = Lifecycle(
    "RMContainer",
    _S.NEW,
    [
        Row(_S.NEW, RMContainerStart, _S.ALLOCATED, RMContainer.on_started, "placed on a node"),
        Row(_S.NEW, RMContainerReserved, _S.RESERVED, None, "it does not fit on the node yet"),
        Row(
            _S.NEW,
            RMContainerRecover,
            (_S.RUNNING, _S.COMPLETED),
            RMContainer.on_recovered,
            "its NM reported it after a restart of the RM",
        ),
        Row(_S.NEW, RMContainerKill, _S.KILLED, None, "killed before it was placed"),
        Row(_S.RESERVED, RMContainerReserved, _S.RESERVED, None, "checked again, it still does not fit"),
        Row(_S.RESERVED, RMContainerStart, _S.ALLOCATED, RMContainer.on_started, "it fits now"),
        Row(_S.RESERVED, RMContainerKill, _S.KILLED, None, "its node or its attempt is gone"),
        Row(_S.RESERVED, RMContainerReleased, _S.RELEASED, None, "no longer requested, or placed on another node"),
        Row(_S.ALLOCATED, RMContainerAcquired, _S.ACQUIRED, RMContainer.on_acquired, "handed to its AM"),
        Row(_S.ALLOCATED, RMContainerExpire, _S.EXPIRED, RMContainer.on_finished, "never acquired"),
        Row(
            _S.ALLOCATED,
            RMContainerKill,
            _S.KILLED,
            RMContainer.on_finished,
            "its node or attempt is gone before it was acquired",
        ),
        Row(_S.ACQUIRED, RMContainerAcquired, _S.ACQUIRED, None, "fetched again"),
        Row(
            _S.ACQUIRED,
            RMContainerLaunched,
            _S.RUNNING,
            RMContainer.on_launched,
            "its NM reported it for the first time",
        ),
        Row(
            _S.ACQUIRED,
            RMContainerFinished,
            _S.COMPLETED,
            RMContainer.on_finished,
            "it ran and ended between two heartbeats",
        ),
        Row(_S.ACQUIRED, RMContainerReleased, _S.RELEASED, RMContainer.on_killed, "given back by its AM"),
        Row(_S.ACQUIRED, RMContainerExpire, _S.EXPIRED, RMContainer.on_killed, "its AM did not start it in time"),
        Row(_S.ACQUIRED, RMContainerKill, _S.KILLED, RMContainer.on_killed, "node lost, attempt over or preempted"),
        Row(_S.RUNNING, RMContainerAcquired, _S.RUNNING, None, "fetched again"),
        Row(
            _S.RUNNING,
            AcquireUpdatedContainer,
            _S.RUNNING,
            RMContainer.on_change_acquired,
            "its AM received its new size",
        ),
        Row(_S.RUNNING, NMDoneChangeResource, _S.RUNNING, RMContainer.on_change_done, "its NM reported its new size"),
        Row(_S.RUNNING, RMContainerFinished, _S.COMPLETED, RMContainer.on_finished, "its NM reported its end"),
        Row(_S.RUNNING, RMContainerReleased, _S.RELEASED, RMContainer.on_killed, "given back by its AM"),
        Row(_S.RUNNING, RMContainerKill, _S.KILLED, RMContainer.on_killed, "node lost, attempt over or preempted"),
        *(
            Row(state, event, state, None, "ignored: the container is over already")
            for state, events in (
                (_S.COMPLETED, (RMContainerExpire, RMContainerReleased, RMContainerKill)),
                (_S.EXPIRED, (RMContainerReleased, RMContainerKill)),
                (_S.RELEASED, (RMContainerExpire, RMContainerReleased, RMContainerKill, RMContainerFinished)),
                (
                    _S.KILLED,
                    (RMContainerExpire, RMContainerReleased, RMContainerKill, RMContainerAcquired, RMContainerFinished),
                ),
            )
            for event in events
        ),
    ],
)
