"""What the scheduler tells the core, in the order it happened; the core puts each into its own event queue.

In Hadoop these are the events that RMContainerImpl and CapacityScheduler send to the other state machines.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from rm.scheduler.model.node_labels import LabelChanges
from yarn.containers import Container, ContainerStatus
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.resource import Resource


class ApplicationAccepted(Struct, frozen=True):
    """The leaf queue took the application (APP_ACCEPTED)."""

    application_id: ApplicationId
    queue: str


class ApplicationRejected(Struct, frozen=True):
    """No queue takes the application (APP_REJECTED); `diagnostics` as Hadoop words it."""

    application_id: ApplicationId
    diagnostics: str


class QueueMissing(Struct, frozen=True):
    """The queue of an application that is recovered is gone, or no leaf: it is to be killed, for this reason."""

    application_id: ApplicationId
    diagnostics: str


class AttemptAdded(Struct, frozen=True):
    """The leaf queue knows the attempt (ATTEMPT_ADDED)."""

    attempt_id: ApplicationAttemptId


class ContainerAllocated(Struct, frozen=True):
    """A container was placed and waits to be pulled (RMContainer START; CONTAINER_ALLOCATED to the attempt)."""

    attempt_id: ApplicationAttemptId
    container_id: ContainerId


class ContainerAcquired(Struct, frozen=True):
    """The AM (for its master: the RM) has it now: the allocation expirer starts, the application runs on the node."""

    container_id: ContainerId
    node_id: NodeId


class ContainerReportedRunning(Struct, frozen=True):
    """Its NM reported it for the first time: the allocation expirer stops."""

    container_id: ContainerId


class ContainerRecovered(Struct, frozen=True):
    """A container of an earlier ResourceManager runs: its application runs on the node."""

    container_id: ContainerId
    node_id: NodeId


class ContainerFinished(Struct, frozen=True):
    """It is over (CONTAINER_FINISHED to the attempt it was placed for, which with kept containers may be over itself).

    Its expirer stops. `resource` and `started_ms` (its placement) are for the account of what the application used;
    `is_am`: it was its attempt's master.
    """

    attempt_id: ApplicationAttemptId
    node_id: NodeId
    status: ContainerStatus
    resource: Resource
    started_ms: int
    is_am: bool = False


class CleanUpContainer(Struct, frozen=True):
    """The NM must end it (RMNode CLEANUP_CONTAINER): sent for what was killed or released while acquired."""

    node_id: NodeId
    container_id: ContainerId


class IncreaseAcquired(Struct, frozen=True):
    """The AM has the token of a larger size: if its NM does not tell of it in time, the increase is taken back."""

    container_id: ContainerId


class IncreaseSettled(Struct, frozen=True):
    """The NM has told a size that is as large: nothing is taken back."""

    container_id: ContainerId


class UpdateContainer(Struct, frozen=True):
    """The NM must make the container what it is now (RMNode UPDATE_CONTAINER); decreases are never the AM's to tell."""

    node_id: NodeId
    container: Container


class ContainerUntracked(Struct, frozen=True):
    """An NM told an end that nobody will ask for: it may forget the container."""

    node_id: NodeId
    container_id: ContainerId


class NodesRemapped(Struct, frozen=True):
    """What partitions have was changed, by nodes or labels that came, went or changed (NODE_LABELS_UPDATE).

    A step of its own brings the nodes under the labels of `changes` and looks once more.
    """

    changes: LabelChanges


class NodeUtilizationChanged(Struct, frozen=True):
    """The node is on its way out: its size becomes what it has `allocated` (RMNode RESOURCE_UPDATE)."""

    node_id: NodeId
    allocated: Resource


class ReleaseTemporary(Struct, frozen=True):
    """A temporary container has served the update of another: release it in a step of its own (RELEASE_CONTAINER)."""

    container_id: ContainerId


class PreemptionDecided(Struct, frozen=True):
    """A round of preemption acts on a container.

    `step`: "requested" (from its AM), "killed", or "killable" (with lazy preemption). `reason`: a PreemptionReason's
    name; `serves`: the path of the queue that is to have the room, "" if no one stands out. `clock_ms`: when the round
    ran, by the policy's clock.
    """

    container_id: ContainerId
    node_id: NodeId
    step: str
    reason: str
    serves: str
    clock_ms: int


class PreemptionFailed(Struct, frozen=True):
    """A round of preemption broke off."""

    text: str


Notice: TypeAlias = (
    ApplicationAccepted
    | ApplicationRejected
    | AttemptAdded
    | ContainerAllocated
    | ContainerAcquired
    | ContainerReportedRunning
    | ContainerFinished
    | ContainerRecovered
    | QueueMissing
    | CleanUpContainer
    | IncreaseAcquired
    | IncreaseSettled
    | UpdateContainer
    | ContainerUntracked
    | NodesRemapped
    | ReleaseTemporary
    | NodeUtilizationChanged
    | PreemptionDecided
    | PreemptionFailed
)
