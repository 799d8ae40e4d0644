"""Lazy preemption: containers that end as soon as somebody needs their room (PreemptionManager, PreemptableQueue).

Each queue keeps what of it is killable, with all that is below. The books are Hadoop's to their gaps: what is marked
twice is counted twice, and what was counted in a leaf or on a partition is taken off where it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rm.scheduler.model.rm_container import RMContainer
from yarn.ids import ApplicationId, ContainerId
from yarn.resource import Resource

if TYPE_CHECKING:
    from rm.scheduler.model.application import FiCaSchedulerApp, SchedulerApplication
    from rm.scheduler.model.queue import CSQueue


class KillableOfQueue:
    """{partition: ...} of one queue. `resource` stays at what was booked, even where no container is left."""

    __slots__ = ("containers", "parent", "resource")

    def __init__(self, parent: KillableOfQueue | None) -> None:
        self.parent = parent
        self.resource: dict[str, Resource] = {}
        self.containers: dict[str, dict[ContainerId, RMContainer]] = {}


class KillableContainers:
    """All queues' killable containers. `is_used`: something was killable once; until then nobody need ask."""

    __slots__ = ("_applications", "_none", "_queues", "is_used")

    def __init__(self, applications: Mapping[ApplicationId, SchedulerApplication], none: Resource) -> None:
        self._applications = applications
        self._none = none
        self._queues: dict[str, KillableOfQueue] = {}
        self.is_used = False

    def refresh_queues(self, queues: Iterable[CSQueue]) -> None:
        """Know these queues too, parents first. A queue that appears later is unknown until the next refresh."""
        for queue in queues:
            if queue.path not in self._queues:
                parent = self._queues[queue.parent.path] if queue.parent is not None else None
                self._queues[queue.path] = KillableOfQueue(parent)

    def add(self, container: RMContainer, partition: str, path: str) -> None:
        """The container of the leaf at `path` is killable."""
        self.is_used = True
        queue = self._queues.get(path)
        while queue is not None:
            queue.resource[partition] = queue.resource.get(partition, self._none) + container.resource
            queue.containers.setdefault(partition, {})[container.id] = container
            queue = queue.parent

    def remove(self, container: RMContainer, partition: str, path: str) -> None:
        """The container is over, or spared."""
        queue = self._queues.get(path)
        while queue is not None:
            if queue.containers.get(partition, {}).pop(container.id, None) is not None:
                queue.resource[partition] = queue.resource[partition] - container.resource
            queue = queue.parent

    def resource(self, path: str, partition: str) -> Resource:
        """What of the queue is killable on the partition."""
        queue = self._queues.get(path)
        return queue.resource.get(partition, self._none) if queue is not None else self._none

    def containers(self, path: str, partition: str) -> list[RMContainer]:
        """The queue's killable containers on the partition, by id."""
        queue = self._queues.get(path)
        found = queue.containers.get(partition, {}) if queue is not None else {}
        return [found[container_id] for container_id in sorted(found)]

    def by_queue(self) -> dict[str, dict[str, Resource]]:
        """{path: {partition: killable}}, a copy."""
        return {path: dict(queue.resource) for path, queue in self._queues.items() if queue.resource}

    def ids(self) -> frozenset[ContainerId]:
        """All that is killable."""
        return frozenset(
            container_id
            for queue in self._queues.values()
            for containers in queue.containers.values()
            for container_id in containers
        )

    def attempt_of(self, container: RMContainer) -> FiCaSchedulerApp | None:
        """The present attempt of the container's application; None if the scheduler knows the application no more."""
        application = self._applications.get(container.id.application_id)
        return application.current_attempt if application is not None else None
