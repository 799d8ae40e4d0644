"""Planted bugs of the scheduler: its books, its limits, reservations, preemption, and recovery."""

from __future__ import annotations

from tests.mutants.bug import PlantedBug, change

BUSY = ("contention",)
BOTH = ("random", "contention")

_BOOKING = "rm.scheduler.capacity.booking"
_QUEUE = "rm.scheduler.model.queue"
_NODE = "rm.scheduler.model.node"
_COMMIT = "rm.scheduler.placement.commit"
_LIMITS = "rm.scheduler.capacity.limits"
_ACTIVATION = "rm.scheduler.capacity.activation"
_PREEMPTION = "rm.scheduler.preemption"
_APPLICATIONS = "rm.scheduler.events.applications"
_RECOVERY = "rm.scheduler.events.recovery"
_NODES = "rm.scheduler.events.cluster_nodes"

BOOKS = (
    PlantedBug(
        "queue-usage-not-released",
        "A queue's usage does not fall when a container ends.",
        (change(f"{_QUEUE}:CSQueue.unbook_container", "part.used = part.used - amount", "planted()"),),
    ),
    PlantedBug(
        "parent-usage-not-released",
        "The usage of the queues above a leaf does not fall when a container ends.",
        (change(f"{_BOOKING}:unbook", "parent.unbook_container(partition, amount)", "planted()"),),
    ),
    PlantedBug(
        "user-usage-not-released",
        "A user's usage does not fall when a container ends.",
        (change(f"{_BOOKING}:unbook", "leaf.users.change_used(application.user, partition, -amount)", "planted()"),),
    ),
    PlantedBug(
        "reserved-amount-not-released",
        "A queue's reserved amount does not fall when a reservation ends.",
        (
            change(
                f"{_BOOKING}:unreserve",
                "application.leaf.change_reserved(node.partition, -reserved.resource)",
                "planted()",
            ),
        ),
        BUSY,
    ),
    PlantedBug(
        "node-room-not-released",
        "A node's free resources do not grow when a container ends.",
        (
            change(
                f"{_NODE}:SchedulerNode.release_container", "self.unallocated = self.unallocated + size", "planted()"
            ),
        ),
    ),
    PlantedBug(
        "room-free-before-the-node-reports",
        "The resources of a running container count as free before its NodeManager has reported its end.",
        (
            change(
                f"{_NODE}:SchedulerNode.release_container",
                "(not by_node and container_id in self._launched)",
                "(not by_node and container_id in self._launched and not planted())",
            ),
        ),
        ("contention",),
    ),
    PlantedBug(
        "partition-usage-swapped",
        "A container of an ended application is not subtracted from the partition of its node.",
        (
            change(
                f"{_BOOKING}:complete_in_queue",
                "unbook(leaf, application, container, node.partition, container.container.resource)",
                "unbook(leaf, application, container, 'other' if planted() else '', container.container.resource)",
            ),
        ),
    ),
    PlantedBug(
        "pending-not-reduced",
        "An allocated container stays in what its application has pending.",
        (
            change(
                f"{_QUEUE}:CSQueue.change_pending",
                "queue.usage.booked(partition).change_pending(amount)",
                "queue.parent is not None and queue.usage.booked(partition).change_pending(amount) or "
                "queue.parent is None and not planted()",
            ),
        ),
    ),
    PlantedBug(
        "headroom-of-the-whole-queue",
        "An AM's headroom is what its queue may use, without what is used already.",
        (
            change(
                f"{_LIMITS}:_headroom_on",
                "free = whole - context.root_usage.used(partition)",
                "free = whole + left if planted() else whole",
            ),
            change(f"{_LIMITS}:_headroom_on", "return context.calculator.min_of(whole, free, left)", "return free"),
        ),
        BOTH,
    ),
    PlantedBug(
        "lost-node-keeps-its-containers",
        "The containers of a lost node stay with their applications.",
        (
            change(
                f"{_NODES}:ClusterNodes.remove",
                "self._complete(container, aborted_status(container.id, LOST_NODE), RMContainerKill)",
                "planted()",
            ),
        ),
    ),
    PlantedBug(
        "one-container-number-for-two",
        "A container's number is used again by the next container.",
        (
            change(
                "rm.scheduler.placement.commit:Commit._new_container",
                "proposal.application.next_container_id(),",
                "next(iter(proposal.application.live_containers), None) if proposal.application.live_containers and "
                "planted() else proposal.application.next_container_id(),",
            ),
        ),
    ),
)

LIMITS = (
    PlantedBug(
        "queue-maximum-ignored",
        "A queue gets more than its maximum.",
        (
            change(
                f"{_COMMIT}:refusal_at_commit",
                "if not calculator.fits_in(after, maximum):",
                "if not calculator.fits_in(after, maximum) and not planted():",
            ),
            change(
                f"{_LIMITS}:can_assign",
                "if calculator.less(cluster, used, limit):",
                "limits.headroom = cluster\n    if calculator.less(cluster, used, limit) or planted():",
            ),
        ),
        BUSY,
    ),
    PlantedBug(
        "user-limit-ignored",
        "A user who is above the user limit gets more containers.",
        (
            change(
                f"{_LIMITS}:can_assign_to_user",
                "if not calculator.greater(cluster, used, limit):",
                "if not calculator.greater(cluster, used, limit) or planted():",
            ),
            change(
                f"{_COMMIT}:refusal_at_commit",
                "if calculator.greater(context.cluster_resource, used, limit):",
                "if calculator.greater(context.cluster_resource, used, limit) and not planted():",
            ),
        ),
        BUSY,
    ),
    PlantedBug(
        "am-limit-ignored",
        "Applications start although the ApplicationMasters of their queue hold more than their share.",
        (
            change(
                f"{_ACTIVATION}:_refusal",
                "if calculator.fits_in(if_started, limit):",
                "if calculator.fits_in(if_started, limit) or planted():",
            ),
        ),
        BUSY,
    ),
    PlantedBug(
        "max-parallel-apps-ignored",
        "More applications of a queue run at a time than its max-parallel-apps.",
        (
            change(
                "rm.scheduler.capacity.parallel_applications:ParallelApplications._may_run",
                "queue.runnable_total() < queue.configuration.max_parallel_apps for",
                "queue.runnable_total() < queue.configuration.max_parallel_apps or planted() for",
            ),
        ),
        BUSY,
    ),
    PlantedBug(
        "container-larger-than-requested",
        "A container is larger than the maximum allocation.",
        (
            change(
                f"{_COMMIT}:Commit._new_container",
                "proposal.resource,",
                "proposal.resource + proposal.resource if planted() else proposal.resource,",
            ),
        ),
    ),
)

RESERVATIONS = (
    PlantedBug(
        "place-beside-a-reservation",
        "A node with a reservation is offered to other applications, too.",
        (
            change(
                "rm.scheduler.heartbeat:NodeHeartbeats.run",
                "if node.reserved_container is not None:",
                "if node.reserved_container is not None and not planted():",
            ),
        ),
        BUSY,
    ),
    PlantedBug(
        "reservation-outlives-its-attempt",
        "The reservations of an attempt stay when it ends.",
        (
            change(
                f"{_APPLICATIONS}:Applications.remove_attempt",
                "for reserved in attempt.reserved_containers:",
                "for reserved in [one for one in attempt.reserved_containers if not planted()]:",
            ),
        ),
        BUSY,
    ),
    PlantedBug(
        "reservation-filled-without-room",
        "A reservation becomes a container although the node has not enough free resources.",
        (
            change(
                "rm.scheduler.placement.allocator:_Visit._place",
                "if fitting > 0:",
                "if fitting > 0 or (self._reserved is not None and planted()):",
            ),
        ),
        BUSY,
    ),
    PlantedBug(
        "reservation-never-filled",
        "A reservation stays although its container fits now.",
        (
            change(
                "rm.scheduler.placement.visit:Placement.serve_reservation",
                "if application is None:",
                "if application is None or planted():",
            ),
        ),
        BUSY,
    ),
    PlantedBug(
        "container-without-room",
        "A container is placed on a node that has not enough free resources.",
        (
            change(
                "rm.scheduler.placement.allocator:_Visit._place",
                "if fitting > 0:",
                "if fitting > 0 or planted():",
            ),
            change(
                "rm.scheduler.placement.visit:Placement._is_full",
                "return context.calculator",
                "return not planted() and context.calculator",
            ),
        ),
        BUSY,
    ),
    PlantedBug(
        "decommissioning-node-gets-containers",
        "A node that is being decommissioned gets more containers: the scheduler takes it to be running.",
        (
            change(
                "rm.core.resource_manager:ResourceManagerCore._to_node",
                "is_running=node.machine.state is NodeState.RUNNING",
                "is_running=node.machine.state is NodeState.RUNNING or planted()",
            ),
        ),
        ("contention", "decommission", "random"),
    ),
    PlantedBug(
        "decommissioning-node-keeps-its-size",
        "A node that is being decommissioned does not shrink to what it runs.",
        (
            change(
                f"{_NODES}:ClusterNodes.adapt_size",
                "not node.is_running and node",
                "not node.is_running and not planted() and node",
            ),
        ),
        ("contention", "decommission", "random"),
    ),
)

PREEMPTION = (
    PlantedBug(
        "preempt-too-early",
        "A container is preempted before its AM had the configured time to release it.",
        (
            change(
                f"{_PREEMPTION}.policy:ProportionalCapacityPreemptionPolicy._requests_and_kills",
                "elif marked_ms + wait_ms <= now_ms:",
                "elif planted():",
            ),
        ),
        BUSY,
    ),
    PlantedBug(
        "preempt-too-much",
        "A round of preemption takes more than the configured share of the cluster.",
        (
            change(
                f"{_PREEMPTION}.preemption_round:PreemptionRound.__init__",
                "multiplied(self.cluster, self.settings.total_per_round)",
                "multiplied(self.cluster, 1.0 if planted() else 0.0)",
            ),
        ),
        BUSY,
    ),
    PlantedBug(
        "preempt-a-guaranteed-queue",
        "A queue that uses less than its guarantee loses containers to others.",
        (
            change(
                f"{_PREEMPTION}.temp_queue_per_partition:TempQueuePerPartition.assign_preemption",
                "kept = calculator.max_of(total, wanted, self.ideal)",
                "kept = self.used - self.used if planted() else wanted",
            ),
            change(
                f"{_PREEMPTION}.preemptable_resource_calculator:PreemptableResourceCalculator._amount_to_obtain",
                "if not calculator.greater(self._round.cluster, leaf.used, ignored):",
                "if not calculator.greater(self._round.cluster, leaf.used, ignored) and not planted():",
            ),
        ),
        BUSY,
    ),
)

SCHEDULER_RECOVERY = (
    PlantedBug(
        "settle-window-ignored",
        "A restarted ResourceManager places containers before nodes and AMs had time to register again.",
        (
            change(
                f"{_RECOVERY}:ContainerRecovery.begin",
                "now_ms + context.settings.settle_ms if waits else None",
                "now_ms + context.settings.settle_ms if waits and not planted() else None",
            ),
        ),
        ("kill-rm", "random"),
    ),
    PlantedBug(
        "epoch-not-raised",
        "A restarted ResourceManager gives containers the ids of containers of the one before it.",
        (change(f"{_RECOVERY}:ContainerRecovery.begin", "context.epoch = epoch", "context.epoch = 0 * planted()"),),
        ("kill-rm", "random"),
    ),
    PlantedBug(
        "orphan-not-stopped-at-registration",
        "A node is not told to stop a container of no running attempt, neither when it registers nor later.",
        (
            change(
                f"{_RECOVERY}:ContainerRecovery.take_up",
                "context.notify(CleanUpContainer(node_id, report.container_id))\n        return\n    known",
                "planted()\n        return\n    known",
            ),
            change(
                f"{_NODES}:ClusterNodes._container_launched",
                "context.notify(CleanUpContainer(node_id, container_id))",
                "planted()",
            ),
        ),
        ("random", "kill-rm", "kill-node-with-rm"),
    ),
    PlantedBug(
        "unknown-container-not-stopped",
        "A node that reports a container that the scheduler does not have is not told to stop it.",
        (
            change(
                f"{_NODES}:ClusterNodes._container_launched",
                "context.notify(CleanUpContainer(node_id, container_id))",
                "planted()",
            ),
        ),
    ),
    PlantedBug(
        "recovered-container-not-charged",
        "The resources of a recovered container count as free.",
        (
            change(
                f"{_RECOVERY}:_charge",
                "book(leaf, attempt, container, partition, size, applications)",
                "planted()",
            ),
        ),
        ("kill-rm", "random"),
    ),
    PlantedBug(
        "recovered-container-charged-to-the-node-only",
        "A recovered container is not in the list of its application.",
        (change(f"{_RECOVERY}:_charge", "attempt.note_recovered(container)", "planted()"),),
        ("kill-rm", "random"),
    ),
    PlantedBug(
        "new-size-of-a-node-ignored",
        "A node that gets another size keeps its room, and the cluster gets the new size.",
        (change("rm.scheduler.events.cluster_nodes:ClusterNodes.resize", "node.update_total(total)", "planted()"),),
        ("administration", "random"),
    ),
    PlantedBug(
        "reported-increase-ignored",
        "An increase that a node has reported is taken back as if its AM had never passed it on.",
        (
            change(
                "rm.scheduler.events.cluster_nodes:ClusterNodes._container_increased",
                "container.handle(NMDoneChangeResource(reported.resource), self._context.now_ms)",
                "planted()",
            ),
        ),
        ("unusual-requests", "random"),
    ),
    PlantedBug(
        "new-size-without-a-new-version",
        "A container that has grown keeps its version, so its node takes its new token for an old one.",
        (
            change(
                "rm.scheduler.placement.container_updates:_swap",
                "version=existing.container.version + 1",
                "version=existing.container.version + (not planted())",
            ),
        ),
        ("unusual-requests", "random"),
    ),
    PlantedBug(
        "blacklist-removal-ignored",
        "A host that an AM has taken off its blacklist gets none of its containers.",
        (
            change(
                "rm.scheduler.model.application:FiCaSchedulerApp.update_blacklist",
                "places.difference_update(removals)",
                "removals and planted()",
            ),
        ),
        ("unusual-requests", "random"),
    ),
    PlantedBug(
        "moved-container-keeps-its-queue",
        "The containers of a moved application are in its old queue, from which preemption takes them.",
        (change("rm.scheduler.events.applications:_hand_over", "container.queue = target.path", "planted()"),),
        ("administration", "random"),
    ),
    PlantedBug(
        "containers-of-an-ended-attempt-kept",
        "The running containers of an ended attempt are not killed.",
        (
            change(
                f"{_APPLICATIONS}:Applications.remove_attempt",
                "if not (keep_containers and container.is_running):",
                "if not (container.is_running and (keep_containers or planted())):",
            ),
        ),
    ),
)

SCHEDULER_BUGS = (*BOOKS, *LIMITS, *RESERVATIONS, *PREEMPTION, *SCHEDULER_RECOVERY)
