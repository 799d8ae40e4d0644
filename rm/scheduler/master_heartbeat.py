"""A master's call: what it wants is noted, what was placed for it since its last one is handed over."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rm.scheduler.completion import RELEASED_BY_AM, aborted_status
from rm.scheduler.container_updates import apply_updates
from rm.scheduler.context import SchedulerContext
from rm.scheduler.model.allocation import Allocation
from rm.scheduler.model.applications import Applications
from rm.scheduler.model.container_sizes import ContainerSizes
from rm.scheduler.model.rm_container import RMContainer, RMContainerReleased
from rm.scheduler.request_limits import check_blacklist, check_remembered, check_requests
from rm.scheduler.update_checks import check_updates
from yarn.asks import ResourceRequest, UpdateContainerError, UpdateContainerRequest
from yarn.ids import ApplicationAttemptId, ContainerId


class MasterHeartbeat:
    """CapacityScheduler.allocate, and what goes with it."""

    __slots__ = ("_applications", "_context", "_sizes")

    def __init__(self, context: SchedulerContext, applications: Applications, sizes: ContainerSizes) -> None:
        self._context = context
        self._applications = applications
        self._sizes = sizes

    def allocate(
        self,
        attempt_id: ApplicationAttemptId,
        asks: Sequence[ResourceRequest],
        releases: Sequence[ContainerId],
        blacklist_additions: Sequence[str],
        blacklist_removals: Sequence[str],
        updates: Sequence[UpdateContainerRequest],
    ) -> Allocation:
        """Changes of containers come first, then what is given back, then asks; nothing of an attempt that is over."""
        context = self._context
        if asks or releases or blacklist_additions or blacklist_removals or updates:
            context.revision += 1
        attempt = self._applications.attempt_of(attempt_id.application_id)
        if attempt is None or attempt.attempt_id != attempt_id:
            return Allocation(headroom=context.none)
        find = self._applications.container
        found = ((update, find(update.container_id)) for update in updates)
        apply_updates(attempt, [(update, container) for update, container in found if container is not None])
        for container_id in releases:
            container = find(container_id)
            if container is not None:
                self.release(container)
            elif context.now_ms < context.releases_remembered_until_ms:
                attempt.pending_release[container_id] = None
        normalized = [self._sizes.ask(ask) for ask in asks]
        if attempt.is_stopped:
            return Allocation(headroom=context.none)
        demand_changed = attempt.asks.update(normalized)
        attempt.update_blacklist(blacklist_additions, blacklist_removals)
        containers = attempt.pull_allocated()
        updated = attempt.updates.pull()
        preemption = attempt.pull_preemption()
        if containers or updated:
            context.revision += 1
        if demand_changed and not attempt.is_waiting_for_master:
            attempt.leaf.active.demand_changed(attempt)
        refused = attempt.updates.pull_refused()
        return Allocation(containers, attempt.headroom(), updated, refused, preemption)

    def check_limits(
        self,
        attempt_id: ApplicationAttemptId,
        asks: Sequence[ResourceRequest],
        releases: Sequence[ContainerId],
        blacklist_additions: Sequence[str],
        blacklist_removals: Sequence[str],
    ) -> None:
        """Raises the first refusal of rm.scheduler.request_limits; nothing is checked for an attempt that is over."""
        attempt = self._applications.attempt_of(attempt_id.application_id)
        if attempt is None or attempt.attempt_id != attempt_id:
            return
        check_requests(attempt_id, attempt.asks, asks)
        check_blacklist(attempt, blacklist_additions, blacklist_removals)
        if self._context.now_ms < self._context.releases_remembered_until_ms:
            check_remembered(attempt, releases)

    def check_updates(
        self, queue: str, updates: Sequence[UpdateContainerRequest]
    ) -> tuple[list[UpdateContainerRequest], list[UpdateContainerError]]:
        """Which changes of containers may go on, and why the others may not; raises as the check does."""
        return check_updates(
            updates,
            find=self._applications.container,
            normalized=partial(self._sizes.update, queue),
            may_demote=self._context.settings.opportunistic_containers,
        )

    def release(self, container: RMContainer) -> None:
        """The master, or the end of its change, gives a container back."""
        status = aborted_status(container.id, RELEASED_BY_AM)
        self._applications.complete(container, status, RMContainerReleased)
