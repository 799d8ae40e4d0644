"""Single values of a queue, with what it inherits where it says nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rm.scheduler.config.queue_keys import queue_key
from rm.scheduler.config.reading import Reader
from rm.scheduler.preemption.configuration import INTRA_QUEUE_ENABLED
from rm.scheduler.preemption.monitors import MONITORS_ENABLED
from yarn.java.binary32 import f32, shortest
from yarn.resource import Resource
from yarn.states import QueueState

if TYPE_CHECKING:
    from rm.scheduler.config.queue_configuration import QueueConfiguration

FIFO = "fifo"
FAIR = "fair"
FIFO_FOR_PENDING = "fifo-for-pending-apps"
FIFO_WITH_PARTITIONS = "fifo-with-partitions"
UTILIZATION = "utilization"
PRIORITY_UTILIZATION = "priority-utilization"


def read_user_weights(
    reader: Reader, path: str, parent: QueueConfiguration | None, leaf_user_limit: float | None
) -> dict[str, float]:
    """Weights of users, the parent's unless set here; checked in leaves, where they are used."""
    weights = dict(parent.user_weights) if parent is not None else {}
    prefix = queue_key(path, "user-settings.")
    for key in reader.configuration.keys(prefix):
        if key.endswith(".weight"):
            weights[key[len(prefix) : -len(".weight")].strip()] = reader.number(key, 1.0)
    if leaf_user_limit is not None:
        bound = f32(100.0 / min(100.0, leaf_user_limit)) if leaf_user_limit > 0 else float("inf")
        for user, weight in weights.items():
            if weight < 0 or weight > bound:
                reader.fault(
                    prefix + user + ".weight",
                    f'Weight ({shortest(weight)}) for user "{user}" must be between 0 and 100 / '
                    f"{shortest(min(100.0, leaf_user_limit))} (= {shortest(bound)}), the number of concurrent active "
                    f"users in {path}",
                    "lower the weight, or the queue's minimum-user-limit-percent",
                )
    return weights


def read_maximum_allocation(
    reader: Reader, path: str, parent: QueueConfiguration | None, scheduler_maximum: Resource
) -> Resource:
    """The largest container of the queue: the parent's unless set, never above the scheduler's."""
    inherited = parent.maximum_allocation if parent is not None else scheduler_maximum
    key = queue_key(path, "maximum-allocation")
    if reader.text(key):
        own = _resource(reader, key, scheduler_maximum)
    else:
        memory_mb = reader.long(key + "-mb", inherited.memory_mb)
        vcores = reader.integer(key + "-vcores", inherited.vcores)
        if memory_mb == inherited.memory_mb and vcores == inherited.vcores:
            return inherited
        own = Resource(memory_mb, vcores, inherited.extra)
    if not own.fits_in(scheduler_maximum):
        reader.fault(
            key if reader.text(key) else key + "-mb",
            f"Queue maximum allocation cannot be larger than the cluster setting for queue {path} "
            f"max allocation per queue: {own} cluster setting: {scheduler_maximum}",
            "lower it, or raise yarn.scheduler.maximum-allocation-mb and -vcores",
            value=str(own),
        )
        return inherited
    return own


def _resource(reader: Reader, key: str, scheduler_maximum: Resource) -> Resource:
    """`memory-mb=8192,vcores=4`; a type that is not named is 0, as in Hadoop."""
    amounts = dict.fromkeys(scheduler_maximum.amounts(), 0)
    for word in reader.words(key):
        name, _, value = (part.strip() for part in word.partition("="))
        if name == "memory":
            name = "memory-mb"
        if name not in amounts or not value.isdigit():
            reader.fault(key, f"{word!r} is not one of {', '.join(amounts)} = number", "write memory-mb=MB,vcores=N")
            continue
        amounts[name] = int(value)
    return Resource.of(amounts)


def read_preemption_disabled(reader: Reader, path: str, parent: QueueConfiguration | None) -> bool:
    """Everywhere without monitors; else the queue's own word, or its parent's (CSQueuePreemptionSettings)."""
    inherited = parent.preemption_disabled if parent is not None else False
    own = reader.flag(queue_key(path, "disable_preemption"), inherited)
    return own or not reader.flag(MONITORS_ENABLED, False)


def read_intra_queue_preemption_off(reader: Reader, path: str, parent: QueueConfiguration | None) -> bool:
    """Its own word on preemption among its applications, or its parent's; and where the policy has none of it."""
    inherited = parent.intra_queue_preemption_off if parent is not None else False
    own = reader.flag(queue_key(path, "intra-queue-preemption.disable_preemption"), inherited)
    return own or not reader.flag(INTRA_QUEUE_ENABLED, False)


def read_ordering_policy(reader: Reader, path: str, parent: QueueConfiguration | None, *, is_leaf: bool) -> str:
    """A leaf's orders its applications, a parent's its children; a parent inherits its parent's."""
    key = queue_key(path, "ordering-policy")
    inherited = parent.ordering_policy if parent is not None else UTILIZATION
    default, known = (
        (FIFO, (FIFO, FAIR, FIFO_FOR_PENDING, FIFO_WITH_PARTITIONS))
        if is_leaf
        else (inherited, (UTILIZATION, PRIORITY_UTILIZATION))
    )
    name = reader.text(key, default)
    if name in known:
        return name
    reader.fault(key, f"Unable to construct ordering policy for: {name}", f"write one of: {', '.join(known)}")
    return default


def read_state(reader: Reader, path: str) -> QueueState | None:
    """RUNNING or STOPPED as configured; None if nothing is said."""
    key = queue_key(path, "state")
    name = reader.text(key).upper()
    if not name:
        return None
    if name not in ("RUNNING", "STOPPED"):
        reader.fault(
            key, "Invalid queue state configuration. We can only use RUNNING or STOPPED.", "write RUNNING or STOPPED"
        )
        return None
    return QueueState[name]


def read_initial_state(configured: QueueState | None, parent: QueueConfiguration | None) -> QueueState:
    """Configured, else that of the parent in the same file, whatever state an existing parent is in."""
    if configured is not None:
        return configured
    return parent.initial_state if parent is not None else QueueState.RUNNING


def warn_of_user_limit(reader: Reader, key: str) -> None:
    """A minimum-user-limit-percent that is not a percentage: Hadoop takes it, and gives users what is there."""
    limit = reader.configuration.get_trimmed(key)
    percent = reader.number(key, 100.0) if limit else 100.0
    if not 0 <= percent <= 100 and key not in {fault.key for fault in reader.faults}:
        reader.warn(key, f"{limit} is not a percentage of the queue", "write 0 to 100")
