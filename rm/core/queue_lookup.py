"""The scheduler's queues as the placement rules see them: those that are, or those that a configuration names."""

from __future__ import annotations

from collections.abc import Mapping

from rm.core.placement_rules.queues import FoundQueue
from rm.scheduler.capacity_scheduler import CapacityScheduler
from rm.scheduler.config.queue_configuration import QueueConfiguration


class SchedulerQueues:
    """The tree as it is at each call."""

    def __init__(self, scheduler: CapacityScheduler) -> None:
        self._scheduler = scheduler

    def find(self, name: str) -> FoundQueue | None:
        """By path or unambiguous short name."""
        queue = self._scheduler.queue(name)
        return _found(queue.configuration) if queue is not None else None

    def is_ambiguous(self, name: str) -> bool:
        """True for a short name that several queues have."""
        return self._scheduler.is_ambiguous(name)


class ConfiguredQueues:
    """The queues {path: its configuration} of a configuration that is looked at before it is taken."""

    def __init__(self, queues: Mapping[str, QueueConfiguration]) -> None:
        self._queues = queues
        self._paths: dict[str, list[str]] = {}
        for path, queue in queues.items():
            self._paths.setdefault(queue.name, []).append(path)

    def find(self, name: str) -> FoundQueue | None:
        """By path or unambiguous short name."""
        paths = [name] if name in self._queues else self._paths.get(name, [])
        return _found(self._queues[paths[0]]) if len(paths) == 1 else None

    def is_ambiguous(self, name: str) -> bool:
        """True for a short name that several queues have."""
        return name not in self._queues and len(self._paths.get(name, [])) > 1


def _found(queue: QueueConfiguration) -> FoundQueue:
    creates_queues = not queue.is_leaf and (queue.creation.enabled or queue.managed is not None)
    return FoundQueue(queue.path, queue.is_leaf, creates_queues=creates_queues, is_managed=queue.managed is not None)
