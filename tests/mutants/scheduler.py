"""Planted bugs of the scheduler: its books, its limits, reservations, preemption, and recovery."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from rm.scheduler.capacity import activation, booking, limits
from rm.scheduler.capacity.parallel_applications import ParallelApplications
from rm.scheduler.events import applications, recovery
from rm.scheduler.events.applications import Applications
from rm.scheduler.events.cluster_nodes import ClusterNodes
from rm.scheduler.events.recovery import ContainerRecovery
from rm.scheduler.heartbeat import NodeHeartbeats
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.model.usage import ResourceLimits
from rm.scheduler.placement import commit, container_updates
from rm.scheduler.placement.allocator import Proposal, _Visit
from rm.scheduler.placement.commit import Commit
from rm.scheduler.placement.visit import Placement
from rm.scheduler.preemption.policy import ProportionalCapacityPreemptionPolicy
from rm.scheduler.preemption.preemptable_resource_calculator import PreemptableResourceCalculator
from rm.scheduler.preemption.preemption_round import PreemptionRound
from rm.scheduler.preemption.temp_queue_per_partition import TempQueuePerPartition
from tests.mutants.bug import always, bug, drop, instead, never, skip_all
from yarn.ids import ContainerId
from yarn.resource import Resource

BUSY = ("contention",)
AFTER_RESTARTS = ("kill-rm", "random")
UNUSUAL = ("unusual-requests", "random")
ADMINISTRATION = ("administration", "random")
DECOMMISSION = ("contention", "decommission", "random")

Original = Callable[..., Any]


def _of_another_partition(
    original: Original, leaf: Any, application: Any, container: Any, partition: str, amount: Resource
) -> None:
    original(leaf, application, container, "other", amount)


def _not_at_the_root(original: Original, queue: CSQueue, partition: str, amount: Resource) -> None:
    original(queue, partition, amount)
    root = list(queue.and_above())[-1]
    root.usage.booked(partition).change_pending(-amount)


def _and_what_is_used(original: Original, leaf: CSQueue, user: Any, user_limit: Resource, partition: str) -> Resource:
    left: Resource = original(leaf, user, user_limit, partition)
    return left + leaf.context.partition_resource(partition)


def _number_of_the_first(original: Original, application: FiCaSchedulerApp) -> ContainerId:
    return next(iter(application.live_containers), None) or original(application)


BOOKS = (
    bug(
        "queue-usage-not-released",
        "A queue's usage does not fall when a container ends.",
        drop(CSQueue.unbook_container, "used"),
    ),
    bug(
        "parent-usage-not-released",
        "The usage of the queues above a leaf does not fall when a container ends.",
        drop(booking.unbook, "parent", "unbook_container", "amount"),
    ),
    bug(
        "user-usage-not-released",
        "A user's usage does not fall when a container ends.",
        drop(booking.unbook, "change_used"),
    ),
    bug(
        "reserved-amount-not-released",
        "A queue's reserved amount does not fall when a reservation ends.",
        drop(booking.unreserve, "change_reserved"),
        plans=BUSY,
    ),
    bug(
        "node-room-not-released",
        "A node's free resources do not grow when a container ends.",
        drop(SchedulerNode.release_container, "unallocated"),
    ),
    bug(
        "room-free-before-the-node-reports",
        "The resources of a running container count as free before its NodeManager has reported its end.",
        never(SchedulerNode.release_container, "_launched"),
        plans=BUSY,
    ),
    bug(
        "partition-usage-swapped",
        "A container of an ended application is not subtracted from the partition of its node.",
        instead(booking.unbook, _of_another_partition),
    ),
    bug(
        "pending-not-reduced",
        "An allocated container stays in what its application has pending.",
        instead(CSQueue.change_pending, _not_at_the_root),
    ),
    bug(
        "headroom-of-the-whole-queue",
        "An AM's headroom is what its queue may use, without what is used already.",
        instead(limits._headroom_on, _and_what_is_used),
        plans=("random", "contention"),
    ),
    bug(
        "lost-node-keeps-its-containers",
        "The containers of a lost node stay with their applications.",
        drop(ClusterNodes.remove, "_complete", "container"),
    ),
    bug(
        "one-container-number-for-two",
        "A container's number is used again by the next container.",
        instead(FiCaSchedulerApp.next_container_id, _number_of_the_first),
    ),
)


def _below_any_limit(original: Original, queue: CSQueue, partition: str, limits: ResourceLimits, *rest: Any) -> bool:
    original(queue, partition, limits, *rest)
    limits.headroom = queue.context.cluster_resource
    return True


def _of_double_size(original: Original, commit: Commit, proposal: Proposal) -> RMContainer:
    made: RMContainer = original(commit, proposal)
    made.container = replace(made.container, resource=proposal.resource + proposal.resource)
    return made


LIMITS = (
    bug(
        "queue-maximum-ignored",
        "A queue gets more than its maximum.",
        never(commit.refusal_at_commit, "fits_in"),
        instead(limits.can_assign, _below_any_limit),
        plans=BUSY,
    ),
    bug(
        "user-limit-ignored",
        "A user who is above the user limit gets more containers.",
        always(limits.can_assign_to_user, "greater"),
        never(commit.refusal_at_commit, "greater"),
        plans=BUSY,
    ),
    bug(
        "am-limit-ignored",
        "Applications start although the ApplicationMasters of their queue hold more than their share.",
        always(activation._refusal, "fits_in"),
        plans=BUSY,
    ),
    bug(
        "max-parallel-apps-ignored",
        "More applications of a queue run at a time than its max-parallel-apps.",
        instead(ParallelApplications._may_run, lambda *_: True),
        plans=BUSY,
    ),
    bug(
        "container-larger-than-requested",
        "A container is larger than the maximum allocation.",
        instead(Commit._new_container, _of_double_size),
    ),
)

RESERVATIONS = (
    bug(
        "place-beside-a-reservation",
        "A node with a reservation is offered to other applications, too.",
        never(NodeHeartbeats.run, "reserved_container"),
        plans=BUSY,
    ),
    bug(
        "reservation-outlives-its-attempt",
        "The reservations of an attempt stay when it ends.",
        skip_all(Applications.remove_attempt, "reserved_containers"),
        plans=BUSY,
    ),
    bug(
        "reservation-filled-without-room",
        "A reservation becomes a container although the node has not enough free resources.",
        always(_Visit._place, "fitting", ">", when="self._reserved is not None"),
        plans=BUSY,
    ),
    bug(
        "reservation-never-filled",
        "A reservation stays although its container fits now.",
        always(Placement.serve_reservation, "application"),
        plans=BUSY,
    ),
    bug(
        "container-without-room",
        "A container is placed on a node that has not enough free resources.",
        always(_Visit._place, "fitting", ">"),
        instead(Placement._is_full, lambda *_: False),
        plans=BUSY,
    ),
    bug(
        "decommissioning-node-gets-containers",
        "A node that is being decommissioned gets more containers: the scheduler takes it to be running.",
        instead(
            ClusterNodes.note_state,
            lambda original, nodes, node_id, *, is_running: original(nodes, node_id, is_running=True),
        ),
        plans=DECOMMISSION,
    ),
    bug(
        "decommissioning-node-keeps-its-size",
        "A node that is being decommissioned does not shrink to what it runs.",
        never(ClusterNodes.adapt_size, "is_running"),
        plans=DECOMMISSION,
    ),
)


def _take_all(original: Original, round_: PreemptionRound, *given: Any, **named: Any) -> None:
    original(round_, *given, **named)
    round_.allowed = round_.cluster


def _keep_nothing(original: Original, queue: TempQueuePerPartition, scale: float, *_: Any) -> None:
    queue.to_be_preempted = queue.used - queue.killable


PREEMPTION = (
    bug(
        "preempt-too-early",
        "A container is preempted before its AM had the configured time to release it.",
        always(ProportionalCapacityPreemptionPolicy._requests_and_kills, "wait_ms"),
        plans=BUSY,
    ),
    bug(
        "preempt-too-much",
        "A round of preemption takes more than the configured share of the cluster.",
        instead(PreemptionRound.__init__, _take_all),
        plans=BUSY,
    ),
    bug(
        "preempt-a-guaranteed-queue",
        "A queue that uses less than its guarantee loses containers to others.",
        instead(TempQueuePerPartition.assign_preemption, _keep_nothing),
        never(PreemptableResourceCalculator._amount_to_obtain, "greater"),
        plans=BUSY,
    ),
)


def _without_waiting(original: Original, recovery: ContainerRecovery, **named: Any) -> None:
    original(recovery, **{**named, "waits": False})


def _with_the_first_epoch(original: Original, recovery: ContainerRecovery, **named: Any) -> None:
    original(recovery, **{**named, "epoch": 0})


SCHEDULER_RECOVERY = (
    bug(
        "settle-window-ignored",
        "A restarted ResourceManager places containers before nodes and AMs had time to register again.",
        instead(ContainerRecovery.begin, _without_waiting),
        plans=AFTER_RESTARTS,
    ),
    bug(
        "epoch-not-raised",
        "A restarted ResourceManager gives containers the ids of containers of the one before it.",
        instead(ContainerRecovery.begin, _with_the_first_epoch),
        plans=AFTER_RESTARTS,
    ),
    bug(
        "orphan-not-stopped-at-registration",
        "A node is not told to stop a container of no running attempt, neither when it registers nor later.",
        drop(ContainerRecovery.take_up, "CleanUpContainer", places=2),
        drop(ClusterNodes._container_launched, "CleanUpContainer"),
        plans=("random", "kill-rm", "kill-node-with-rm"),
    ),
    bug(
        "unknown-container-not-stopped",
        "A node that reports a container that the scheduler does not have is not told to stop it.",
        drop(ClusterNodes._container_launched, "CleanUpContainer"),
    ),
    bug(
        "recovered-container-not-charged",
        "The resources of a recovered container count as free.",
        drop(recovery._charge, "book"),
        plans=AFTER_RESTARTS,
    ),
    bug(
        "recovered-container-charged-to-the-node-only",
        "A recovered container is not in the list of its application.",
        drop(recovery._charge, "note_recovered"),
        plans=AFTER_RESTARTS,
    ),
    bug(
        "new-size-of-a-node-ignored",
        "A node that gets another size keeps its room, and the cluster gets the new size.",
        drop(ClusterNodes._resize, "update_total"),
        plans=ADMINISTRATION,
    ),
    bug(
        "reported-increase-ignored",
        "An increase that a node has reported is taken back as if its AM had never passed it on.",
        drop(ClusterNodes._container_increased, "handle"),
        plans=UNUSUAL,
    ),
    bug(
        "new-size-without-a-new-version",
        "A container that has grown keeps its version, so its node takes its new token for an old one.",
        drop(container_updates._swap, "version"),
        plans=UNUSUAL,
    ),
    bug(
        "blacklist-removal-ignored",
        "A host that an AM has taken off its blacklist gets none of its containers.",
        drop(FiCaSchedulerApp.update_blacklist, "difference_update"),
        plans=UNUSUAL,
    ),
    bug(
        "moved-container-keeps-its-queue",
        "The containers of a moved application are in its old queue, from which preemption takes them.",
        drop(applications._hand_over, "queue", "path"),
        plans=ADMINISTRATION,
    ),
    bug(
        "containers-of-an-ended-attempt-kept",
        "The running containers of an ended attempt are not killed.",
        always(Applications.remove_attempt, "keep_containers"),
    ),
)

SCHEDULER_BUGS = (*BOOKS, *LIMITS, *RESERVATIONS, *PREEMPTION, *SCHEDULER_RECOVERY)
