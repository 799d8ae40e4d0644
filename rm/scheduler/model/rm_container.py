"""RMContainer: one container as the ResourceManager sees it, from its placement to its end.

The scheduler drives it and says why; the machine tells the rest of the ResourceManager through notices, as Hadoop's
RMContainerImpl does by sending events. A reservation is a container too: RESERVED, not on the node yet, and a new
RMContainer with the same id takes its place when it is filled.
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
    ContainerLaunched,
    ContainerRecovered,
    IncreaseAcquired,
    IncreaseSettled,
    Notice,
    UpdateContainer,
)
from rm.scheduler.model.requests import RequestTerms, SchedulerKey
from yarn.containers import Container, ContainerStatus, NMContainerStatus
from yarn.ids import ApplicationAttemptId, ContainerId, NodeId
from yarn.lifecycle import Lifecycle, Machine, Row
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


class RMContainerEvent(Enum):
    """What can happen to a container."""

    START = "START"
    RESERVED = "RESERVED"
    ACQUIRED = "ACQUIRED"
    LAUNCHED = "LAUNCHED"
    FINISHED = "FINISHED"
    RELEASED = "RELEASED"
    EXPIRE = "EXPIRE"
    KILL = "KILL"
    ACQUIRE_UPDATED_CONTAINER = "ACQUIRE_UPDATED_CONTAINER"
    NM_DONE_CHANGE_RESOURCE = "NM_DONE_CHANGE_RESOURCE"
    RECOVER = "RECOVER"


class RMContainer:
    """A container that the scheduler placed or reserved.

    `key` and `asks` are what it answers; `asks` is kept until it is ACQUIRED, so that it can be asked for again if it
    is lost before. `is_am`: it runs the master of its attempt. `last_confirmed`: the size that it falls back to when
    nobody uses the token of a larger one in time.
    `was_moved`: its reservation is not on its first node.
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
        "partition",
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
        self.status: ContainerStatus | None = None
        self._notify = notify
        self._machine: Machine[RMContainerState, RMContainerEvent] = Machine(LIFECYCLE)

    @property
    def attempt_id(self) -> ApplicationAttemptId:
        """The attempt it was placed for; with kept containers a later one may hold it."""
        return self.id.attempt_id

    @property
    def state(self) -> RMContainerState:
        return self._machine.state

    @property
    def is_running(self) -> bool:
        return self._machine.state is RMContainerState.RUNNING

    @property
    def is_opportunistic(self) -> bool:
        """Neither its node's room nor its queue's count for it."""
        return self.container.execution_type is ExecutionType.OPPORTUNISTIC

    @property
    def resource(self) -> Resource:
        """Its size: while RESERVED, what is held for it."""
        return self.container.resource

    @property
    def priority(self) -> int:
        """The AM's number for it; lower is more urgent."""
        return self.container.priority

    def move_to(self, node_id: NodeId) -> None:
        """It is reserved on another node now."""
        self.node_id = node_id
        self.container = replace(self.container, node_id=node_id)
        self.was_moved = True

    def handle(self, event: RMContainerEvent, detail: object, now_ms: int) -> RMContainerState:
        """Take an event; raises IllegalTransition if there is none from this state."""
        return self._machine.handle(self, event, detail, now_ms)

    def allows(self, event: RMContainerEvent) -> bool:
        """True if the table has a row for the event in the present state."""
        return LIFECYCLE.row(self._machine.state, event) is not None

    def __str__(self) -> str:
        return str(self.id)

    # Actions

    def _started(self, _: object) -> None:
        self._notify(ContainerAllocated(self.attempt_id, self.id))

    def _acquired(self, _: object) -> None:
        self.asks = None
        self._notify(ContainerAcquired(self.id, self.node_id))

    def _recovered(self, report: NMContainerStatus) -> RMContainerState:
        """An NM brings it from before a restart (ContainerRecoveredTransition)."""
        if report.state is ContainerState.COMPLETE:
            self._finished(
                ContainerStatus(self.id, report.state, exit_status=report.exit_status, diagnostics=report.diagnostics)
            )
            return RMContainerState.COMPLETED
        self._notify(ContainerRecovered(self.id, self.node_id))
        return RMContainerState.RUNNING

    def _launched(self, _: object) -> None:
        self._notify(ContainerLaunched(self.id))

    def _change_acquired(self, is_increase: bool) -> None:
        """An increase is the AM's to bring to the NM, and for so long only."""
        if is_increase:
            self._notify(IncreaseAcquired(self.id))

    def _change_done(self, reported: Resource) -> None:
        """The NM tells the size it has; later changes may be under way (NMReportedContainerChangeIsDoneTransition)."""
        size = self.resource
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

    def _finished(self, status: ContainerStatus) -> None:
        self.status = status
        size = self.resource
        self._notify(ContainerFinished(self.attempt_id, self.node_id, status, size, self.started_ms, self.is_am))

    def _killed(self, status: ContainerStatus) -> None:
        self._notify(CleanUpContainer(self.node_id, self.id))
        self._finished(status)


_S = RMContainerState
_E = RMContainerEvent

LIFECYCLE: Lifecycle[RMContainerState, RMContainerEvent] = Lifecycle(
    "RMContainer",
    initial=_S.NEW,
    rows=[
        Row(_S.NEW, _E.START, _S.ALLOCATED, RMContainer._started, "placed on a node with room"),
        Row(_S.NEW, _E.RESERVED, _S.RESERVED, None, "the node has too little room yet"),
        Row(
            _S.NEW,
            _E.RECOVER,
            (_S.RUNNING, _S.COMPLETED),
            RMContainer._recovered,
            "its NM brings it from before a restart of the RM",
        ),
        Row(_S.NEW, _E.KILL, _S.KILLED, None, "given up before it was placed"),
        Row(_S.RESERVED, _E.RESERVED, _S.RESERVED, None, "looked at again, still no room"),
        Row(_S.RESERVED, _E.START, _S.ALLOCATED, RMContainer._started, "the room came free"),
        Row(_S.RESERVED, _E.KILL, _S.KILLED, None, "its node or its attempt is gone"),
        Row(_S.RESERVED, _E.RELEASED, _S.RELEASED, None, "not asked for any more, or served elsewhere"),
        Row(_S.ALLOCATED, _E.ACQUIRED, _S.ACQUIRED, RMContainer._acquired, "handed to its AM"),
        Row(_S.ALLOCATED, _E.EXPIRE, _S.EXPIRED, RMContainer._finished, "never fetched"),
        Row(_S.ALLOCATED, _E.KILL, _S.KILLED, RMContainer._finished, "node or attempt gone before it was fetched"),
        Row(_S.ACQUIRED, _E.ACQUIRED, _S.ACQUIRED, None, "fetched again"),
        Row(_S.ACQUIRED, _E.LAUNCHED, _S.RUNNING, RMContainer._launched, "its NM reported it for the first time"),
        Row(_S.ACQUIRED, _E.FINISHED, _S.COMPLETED, RMContainer._finished, "ran and ended between two heartbeats"),
        Row(_S.ACQUIRED, _E.RELEASED, _S.RELEASED, RMContainer._killed, "given back by its AM"),
        Row(_S.ACQUIRED, _E.EXPIRE, _S.EXPIRED, RMContainer._killed, "not started by its AM in time"),
        Row(_S.ACQUIRED, _E.KILL, _S.KILLED, RMContainer._killed, "node lost, attempt over or preempted"),
        Row(_S.RUNNING, _E.ACQUIRED, _S.RUNNING, None, "fetched again"),
        Row(
            _S.RUNNING,
            _E.ACQUIRE_UPDATED_CONTAINER,
            _S.RUNNING,
            RMContainer._change_acquired,
            "its AM has its new size",
        ),
        Row(_S.RUNNING, _E.NM_DONE_CHANGE_RESOURCE, _S.RUNNING, RMContainer._change_done, "its NM has its new size"),
        Row(_S.RUNNING, _E.FINISHED, _S.COMPLETED, RMContainer._finished, "its NM told its end"),
        Row(_S.RUNNING, _E.RELEASED, _S.RELEASED, RMContainer._killed, "given back by its AM"),
        Row(_S.RUNNING, _E.KILL, _S.KILLED, RMContainer._killed, "node lost, attempt over or preempted"),
        *(
            Row(state, event, state, None, "late: it is over already")
            for state, events in (
                (_S.COMPLETED, (_E.EXPIRE, _E.RELEASED, _E.KILL)),
                (_S.EXPIRED, (_E.RELEASED, _E.KILL)),
                (_S.RELEASED, (_E.EXPIRE, _E.RELEASED, _E.KILL, _E.FINISHED)),
                (_S.KILLED, (_E.EXPIRE, _E.RELEASED, _E.KILL, _E.ACQUIRED, _E.FINISHED)),
            )
            for event in events
        ),
    ],
)
