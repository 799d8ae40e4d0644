"""Notices from the scheduler to the core, in the order in which things happened. The core queues each as an event.

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
    """The leaf queue accepted the application (APP_ACCEPTED)."""

    application_id: ApplicationId
    queue: str


class ApplicationRejected(Struct, frozen=True):
    """No queue accepts the application (APP_REJECTED). `diagnostics` is in Hadoop's words."""

    application_id: ApplicationId
    diagnostics: str


class QueueMissing(Struct, frozen=True):
    """The queue of a recovered application no longer exists or is not a leaf: the application is to be killed."""

    application_id: ApplicationId
    diagnostics: str


class AttemptAdded(Struct, frozen=True):
    """The attempt was added to its leaf queue (ATTEMPT_ADDED)."""

    attempt_id: ApplicationAttemptId


class ContainerAllocated(Struct, frozen=True):
    """A container was placed and waits to be acquired (RMContainer START; CONTAINER_ALLOCATED to the attempt)."""

    attempt_id: ApplicationAttemptId
    container_id: ContainerId


class ContainerAcquired(Struct, frozen=True):
    """The AM acquired the container (the RM acquires the AM's own container).

    Its allocation expirer starts, and its application counts as running on the node.
    """

    container_id: ContainerId
    node_id: NodeId


class ContainerReportedRunning(Struct, frozen=True):
    """The NM reported the container for the first time: the allocation expirer stops."""

    container_id: ContainerId


class ContainerRecovered(Struct, frozen=True):
    """A container from before an RM restart is running: its application counts as running on the node."""

    container_id: ContainerId
    node_id: NodeId


class ContainerFinished(Struct, frozen=True):
    """The container has ended, and its expirer stops (CONTAINER_FINISHED to the attempt for which it was placed).

    That attempt may have ended before, if containers are kept. `resource` and `started_ms` (time of placement) are used
    to add up the application's usage; `is_am`: the container ran its attempt's AM.
    """

    attempt_id: ApplicationAttemptId
    node_id: NodeId
    status: ContainerStatus
    resource: Resource
    started_ms: int
    is_am: bool = False


class CleanUpContainer(Struct, frozen=True):
    """The NM must stop the container (RMNode CLEANUP_CONTAINER): it was killed, or released after it was acquired."""

    node_id: NodeId
    container_id: ContainerId


class IncreaseAcquired(Struct, frozen=True):
    """The AM has the token of an increase, which is rolled back unless the NM reports the new size in time."""

    container_id: ContainerId


class IncreaseSettled(Struct, frozen=True):
    """The NM has reported a size that is at least as large: the increase is not rolled back."""

    container_id: ContainerId


class UpdateContainer(Struct, frozen=True):
    """The NM must apply the container's new size or execution type (RMNode UPDATE_CONTAINER).

    Decreases are always sent by the RM; only increases go through the AM.
    """

    node_id: NodeId
    container: Container


class ContainerUntracked(Struct, frozen=True):
    """An NM reported the end of a container that no attempt tracks: the NM may forget it."""

    node_id: NodeId
    container_id: ContainerId


class NodesRemapped(Struct, frozen=True):
    """The resources of partitions changed because nodes or labels were added, removed or changed (NODE_LABELS_UPDATE).

    A separate step moves the nodes to the labels in `changes` and updates the queues.
    """

    changes: LabelChanges


class NodeUtilizationChanged(Struct, frozen=True):
    """The node is being decommissioned: its total becomes what it has `allocated` (RMNode RESOURCE_UPDATE)."""

    node_id: NodeId
    allocated: Resource


class NodeOvercommitted(Struct, frozen=True):
    """A node has less than its containers use: end one of them in a separate step, or if not `kills` ask its AM to."""

    node_id: NodeId
    container_id: ContainerId
    kills: bool


class ReleaseTemporary(Struct, frozen=True):
    """A temporary container is no longer needed for an update: release it in a separate step (RELEASE_CONTAINER)."""

    container_id: ContainerId


class PreemptionDecided(Struct, frozen=True):
    """A round of preemption acts on a container.

    `step`: "requested" (from its AM), "killed", or "killable" (with lazy preemption). `reason`: the name of a
    PreemptionReason. `serves`: the path of the queue that is to get the resources, "" if there is no single one.
    `clock_ms`: the time of the round, by the policy's clock.
    """

    container_id: ContainerId
    node_id: NodeId
    step: str
    reason: str
    serves: str
    clock_ms: int


class PreemptionFailed(Struct, frozen=True):
    """A round of preemption failed and was abandoned."""

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
    | NodeOvercommitted
    | PreemptionDecided
    | PreemptionFailed
)
