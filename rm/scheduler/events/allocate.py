"""An AM's allocate call: apply its requests and releases, and return what was placed since its last call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rm.scheduler.capacity.booking import EXPIRED, RELEASED_BY_AM, aborted_status, complete, update_requests
from rm.scheduler.capacity.limits import headroom
from rm.scheduler.events.request_checks import ContainerSizes, check_blacklist, check_remembered, check_requests
from rm.scheduler.events.request_correction import correct_requests
from rm.scheduler.model.allocation import Allocation
from rm.scheduler.model.application import ApplicationTable, FiCaSchedulerApp
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.rm_container import RMContainer
from rm.scheduler.model.rm_container_events import RMContainerExpire, RMContainerReleased
from rm.scheduler.placement.container_updates import apply_updates, check_updates, pull_refused, pull_updated
from yarn.containers import Container, ResourceRequest, UpdateContainerError, UpdateContainerRequest
from yarn.ids import ApplicationAttemptId, ContainerId
from yarn.resource import Resource


class AllocateCalls:
    """Handles allocate calls (CapacityScheduler.allocate), and the checks before them."""

    __slots__ = ("_applications", "_context", "_sizes")

    def __init__(self, context: SchedulerContext, applications: ApplicationTable, sizes: ContainerSizes) -> None:
        self._context = context
        self._applications = applications
        self._sizes = sizes

    def allocate(
        self,
        attempt_id: ApplicationAttemptId,
        requests: Sequence[ResourceRequest],
        releases: Sequence[ContainerId],
        blacklist_additions: Sequence[str],
        blacklist_removals: Sequence[str],
        updates: Sequence[UpdateContainerRequest],
    ) -> Allocation:
        """Carry out one call of an AM: apply its requests, and return the containers placed since its last call.

        Nothing is placed here: the next heartbeats of nodes do that. An ended attempt gets an empty Allocation.
        """
        context, find = self._context, self._applications.container
        attempt = self._applications.attempt_of(attempt_id.application_id)
        if attempt is None or attempt.attempt_id != attempt_id:
            return Allocation(headroom=context.none)

        # 1. Count the change, so that nodes are visited again. Outside the leaf new requests change only pending
        #    amounts of the queues above, on which no offer to a leaf depends.
        if releases or updates:
            context.note_change()
        elif requests or blacklist_additions or blacklist_removals:
            attempt.leaf.note_change()

        # 2. Apply updates of containers: less is freed at once, more becomes a request.
        if updates:
            found = ((update, find(update.container_id)) for update in updates)
            apply_updates(attempt, [(update, container) for update, container in found if container is not None])

        # 3. Release containers. After a restart of the RM, remember those that their nodes have not reported yet.
        for container_id in releases:
            container = find(container_id)
            if container is not None:
                self.release(container)
            elif context.now_ms < context.releases_remembered_until_ms:
                attempt.pending_release[container_id] = None

        # 4. Round the requested sizes, and note where an AM gets fewer vcores than it requested.
        normalized = [self._sizes.normalized(request) for request in requests]
        for request, size in zip(requests, normalized, strict=True):
            if request.capability.vcores > max(size.capability.vcores, attempt.vcores_cut):
                attempt.vcores_cut = request.capability.vcores
        if attempt.is_stopped:
            return Allocation(headroom=context.none)
        if context.settings.corrects_requests and normalized:
            normalized = correct_requests(attempt, normalized, self._expire)

        # 5. Replace the requests of the same priority, id and place; charge the difference as pending.
        demand_changed = update_requests(attempt, normalized)
        attempt.update_blacklist(blacklist_additions, blacklist_removals)

        # 6. Hand out what was placed since the last call, and what the AM should release: containers are now ACQUIRED.
        containers = attempt.pull_allocated()
        updated = pull_updated(attempt)
        preemption = attempt.pull_preemption()
        if containers or updated:
            context.note_change()

        # 7. Put the application in its new place among those of the leaf, and compute what it could still get.
        if demand_changed and not attempt.is_waiting_for_master:
            LeafQueue.of(attempt).active.demand_changed(attempt)
        return Allocation(containers, headroom(attempt), updated, pull_refused(attempt), preemption)

    def allocate_nothing(self, attempt_id: ApplicationAttemptId) -> Resource | None:
        """The headroom that an allocate call without requests returns; None if it would return more, and do more.

        Looking up the headroom may store the user's limit, as the call would.
        """
        attempt = self.without_news(attempt_id)
        return headroom(attempt) if attempt is not None else None

    def without_news(self, attempt_id: ApplicationAttemptId) -> FiCaSchedulerApp | None:
        """The attempt, if an allocate call without requests would return only its headroom."""
        attempt = self._applications.attempt_of(attempt_id.application_id)
        if attempt is None or attempt.attempt_id != attempt_id or attempt.is_stopped:
            return None
        if attempt.newly_allocated or attempt.to_preempt or attempt.recovered or attempt.updates.are_waiting:
            return None
        return attempt

    def check_limits(
        self,
        attempt_id: ApplicationAttemptId,
        requests: Sequence[ResourceRequest],
        releases: Sequence[ContainerId],
        blacklist_additions: Sequence[str],
        blacklist_removals: Sequence[str],
    ) -> None:
        """Raises YarnException if the application would exceed one of its limits; an ended attempt is not checked."""
        attempt = self._applications.attempt_of(attempt_id.application_id)
        if attempt is None or attempt.attempt_id != attempt_id:
            return
        check_requests(attempt_id, attempt.requests, requests)
        check_blacklist(attempt, blacklist_additions, blacklist_removals)
        if self._context.now_ms < self._context.releases_remembered_until_ms:
            check_remembered(attempt, releases)

    def check_updates(
        self, queue: str, updates: Sequence[UpdateContainerRequest]
    ) -> tuple[list[UpdateContainerRequest], list[UpdateContainerError]]:
        """(accepted updates, errors for the others); raises like container_updates.check_updates."""
        if not updates:
            return [], []
        return check_updates(
            updates,
            find=self._applications.container,
            normalized=partial(self._sizes.updated, queue),
            may_demote=self._context.settings.opportunistic_containers,
        )

    def pull_recovered(self, attempt_id: ApplicationAttemptId) -> tuple[Container, ...]:
        """Containers of earlier attempts, recovered since the last call (pullPreviousAttemptContainers)."""
        attempt = self._applications.attempt_of(attempt_id.application_id)
        if attempt is None or attempt.attempt_id != attempt_id:
            return ()
        return attempt.pull_recovered()

    def _expire(self, container: RMContainer) -> None:
        """End a container that its AM has not fetched and does not need."""
        self._context.note_change()
        complete(container, aborted_status(container.id, EXPIRED), RMContainerExpire, self._applications, self._context)

    def release(self, container: RMContainer) -> None:
        """Release a container, because its AM requested it or its update is complete."""
        status = aborted_status(container.id, RELEASED_BY_AM)
        complete(container, status, RMContainerReleased, self._applications, self._context)
