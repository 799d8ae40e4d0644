"""What a refresh may not do to managed parents (CapacitySchedulerConfigValidator, ManagedParentQueue.reinitialize)."""

from __future__ import annotations

from collections.abc import Callable

from rm.scheduler.capacity.managed_queues import AutoCreatedLeafQueue, ManagedParentQueue
from rm.scheduler.config.managed_configuration import MANAGED_CREATION
from rm.scheduler.config.queue_configuration import QueueConfiguration
from rm.scheduler.config.queue_keys import queue_key
from rm.scheduler.model.queue import CSQueue, ParentQueue
from yarn.configuration import Configuration
from yarn.faults import Fault
from yarn.java.binary32 import f32, shortest


def check_managed(queue: CSQueue, new: QueueConfiguration, configuration: Configuration, faults: list[Fault]) -> None:
    """Faults for a queue that is, or is to be, a managed parent or a leaf of one."""
    key = queue_key(queue.path, MANAGED_CREATION + "enabled")

    def fault(problem: str, remedy: str) -> None:
        faults.append(Fault(key, configuration.get(key), configuration.origin(key), problem, remedy))

    if isinstance(queue, AutoCreatedLeafQueue) and not new.is_auto_created:
        fault(f"{queue.path} was created by its parent, which may not be given it too", "name it otherwise")
    if not isinstance(queue, ManagedParentQueue):
        if isinstance(queue, ParentQueue) and new.managed is not None:
            fault(
                f"Can not convert parent queue: {queue.path} to auto create enabled parent queue since it could have "
                "other pre-configured queues which is not supported",
                "make a new queue of it",
            )
        return
    if new.managed is None:
        fault(
            f"Cannot convert auto create enabled parent queue: {queue.path} to leaf queue. Please check  parent "
            f"queue's configuration {MANAGED_CREATION}enabled is set to true",
            "keep it true",
        )
        return
    configured = [child.name for child in queue.children if not isinstance(child, AutoCreatedLeafQueue)]
    if configured != list(new.children):
        fault(f"{queue.path} makes its leaves, so its configured ones stay as they are", "keep its list of queues")
    _check_sum(queue, new, fault)


def _check_sum(queue: ManagedParentQueue, new: QueueConfiguration, fault: Callable[[str, str], None]) -> None:
    """Guarantees that were given, against the parent's own share as it was before."""
    assert new.managed is not None
    total, own = 0.0, queue.capacities.default.capacity
    for child in queue.children:
        total = f32(total + child.capacities.default.capacity)
    if new.managed.fails_when_full and own < total:
        fault(
            f"Total of Auto Created leaf queues guaranteed capacity : {shortest(total)} exceeds Parent queue's "
            f"{queue.path} guaranteed capacity {shortest(own)}.Cannot enforce policy to auto create queues beyond "
            "parent queue's capacity",
            "set fail-on-exceeding-parent-capacity to false",
        )
