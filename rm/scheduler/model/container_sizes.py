"""Which sizes containers may have: the smallest, the largest by queue, and what an ask is rounded up to."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from rm.scheduler.ask_checks import (
    check_capability,
    check_execution_type,
    check_label,
    check_labels_enabled,
    with_queue_label,
    with_trimmed_label,
)
from rm.scheduler.context import SchedulerContext
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import NodeTracker
from rm.scheduler.model.queue_tree import QueueTree
from yarn.asks import ResourceRequest
from yarn.resource import Resource, componentwise_min


class ContainerSizes:
    """The sizes as of now; the largest follows the nodes."""

    __slots__ = ("_context", "_tracker", "_tree")

    def __init__(self, context: SchedulerContext, tracker: NodeTracker, tree: QueueTree) -> None:
        self._context = context
        self._tracker = tracker
        self._tree = tree

    def maximum(self, queue: str | None = None) -> Resource:
        """The largest container that can be had now, in a queue (a leaf's name or path) or anywhere."""
        largest = self._tracker.maximum_allocation(self._context.now_ms, self._context.settings.settle_ms)
        found = self._tree.get(queue) if queue is not None else None
        if isinstance(found, LeafQueue):
            return componentwise_min(found.configuration.maximum_allocation, largest)
        return largest

    def check_asks(self, queue: str, asks: Iterable[ResourceRequest]) -> tuple[ResourceRequest, ...]:
        """The asks with the queue's default label where they name none.

        Raises InvalidResourceRequestException (or its label kind) for the first ask that cannot be.
        """
        settings, labels, found = self._context.settings, self._context.labels, self._tree.get(queue)
        allowed = self.maximum(queue)
        checked = []
        for given in map(with_trimmed_label, asks):
            check_labels_enabled(given, labels)
            check_execution_type(given, opportunistic=settings.opportunistic_containers)
            ask = with_queue_label(given, found)
            check_capability(settings.resource_types.complete(ask.capability), allowed, settings.maximum_allocation)
            check_label(ask, found, labels)
            checked.append(ask)
        return tuple(checked)

    def master_requests(self, queue: str, asks: Iterable[ResourceRequest]) -> tuple[ResourceRequest, ...]:
        """The asks for a master as submitted to `queue`, with sizes rounded up (RMAppManager). Raises as check_asks."""
        complete, allowed = self._context.settings.resource_types.complete, self.maximum(queue)
        return tuple(
            replace(ask, capability=self._normalized(complete(ask.capability), allowed))
            for ask in self.check_asks(queue, asks)
        )

    def ask(self, ask: ResourceRequest) -> ResourceRequest:
        """The ask in whole multiples of the minimum, held under the largest container of the cluster."""
        asked = self._context.settings.resource_types.complete(ask.capability)
        size = self._normalized(asked, self.maximum())
        return ask if size == ask.capability else replace(ask, capability=size)

    def update(self, queue: str, size: Resource) -> Resource | None:
        """The size that a container of the queue is to have, rounded up; None if it is out of range."""
        allowed = self.maximum(queue)
        size = self._context.settings.resource_types.complete(size)
        if not (0 <= size.memory_mb <= allowed.memory_mb and 0 <= size.vcores <= allowed.vcores):
            return None
        return self._normalized(size, allowed)

    def _normalized(self, size: Resource, largest: Resource) -> Resource:
        smallest = self._context.minimum_allocation
        return self._context.calculator.normalize(size, smallest, largest, smallest)
