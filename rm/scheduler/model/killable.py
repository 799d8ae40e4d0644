"""Lazy preemption: containers to kill as soon as another queue needs their resources (PreemptionManager,
PreemptableQueue).

Each queue counts its killable containers, including those below it. Two inaccuracies are Hadoop's: a container that is
marked twice is counted twice, and it is subtracted in the leaf and partition where it ends, not where it was added.
"""

from __future__ import annotations

from collections.abc import Iterable

from rm.scheduler.model.rm_container import RMContainer
from yarn.ids import ContainerId
from yarn.resource import Resource


class KillableOfQueue:
    """The killable containers of one queue, by partition. `resource` keeps its sum even if no container is left."""

    __slots__ = ("containers", "parent", "resource")

    def __init__(self, parent: KillableOfQueue | None) -> None:
        self.parent = parent
        self.resource: dict[str, Resource] = {}
        self.containers: dict[str, dict[ContainerId, RMContainer]] = {}


class KillableContainers:
    """The killable containers of all queues.

    `is_used`: True once any container was killable; until then all checks are skipped.
    """

    __slots__ = ("_none", "_queues", "is_used")

    def __init__(self, none: Resource) -> None:
        self._none = none
        self._queues: dict[str, KillableOfQueue] = {}
        self.is_used = False

    def refresh_queues(self, parents: Iterable[tuple[str, str | None]]) -> None:
        """Add these queues as (path, parent's path), parents first.

        A queue created later is unknown until the next refresh.
        """
        for path, above in parents:
            if path not in self._queues:
                self._queues[path] = KillableOfQueue(self._queues[above] if above is not None else None)

    def add(self, container: RMContainer, partition: str, path: str) -> None:
        """Add a killable container of the leaf at `path`."""
        self.is_used = True
        queue = self._queues.get(path)
        while queue is not None:
            queue.resource[partition] = queue.resource.get(partition, self._none) + container.resource
            queue.containers.setdefault(partition, {})[container.id] = container
            queue = queue.parent

    def remove(self, container: RMContainer, partition: str, path: str) -> None:
        """Remove a container that has ended or is no longer to be killed."""
        queue = self._queues.get(path)
        while queue is not None:
            if queue.containers.get(partition, {}).pop(container.id, None) is not None:
                queue.resource[partition] = queue.resource[partition] - container.resource
            queue = queue.parent

    def resource(self, path: str, partition: str) -> Resource:
        """The queue's killable resources on the partition."""
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
        """The ids of all killable containers."""
        return frozenset(
            container_id
            for queue in self._queues.values()
            for containers in queue.containers.values()
            for container_id in containers
        )
