"""What a managed parent makes its leaves from (`auto-create-child-queue.enabled`, the older way of queues on demand).

    root.users.auto-create-child-queue.enabled = true
    root.users.leaf-queue-template.capacity = 25                  what a leaf gets while it is active, of root.users
    root.users.leaf-queue-template.user-limit-factor = 2          any key of a leaf

The template's keys are copied to the leaf's own path, over what stands there (ManagedParentQueue.setLeafQueueConfigs).
"""

from __future__ import annotations

from msgspec import Struct

from rm.scheduler.config.configured_capacity import CapacityReader, ConfiguredCapacity
from rm.scheduler.config.queue_keys import queue_key
from rm.scheduler.config.queue_labels import configured_labels
from rm.scheduler.config.reading import Reader
from rm.scheduler.model.usage import NO_LABEL
from yarn.configuration import Configuration, Entry
from yarn.resource import ResourceTypes

MANAGED_CREATION = "auto-create-child-queue."
LEAF_TEMPLATE = "leaf-queue-template."
DEFAULT_POLICY = (
    "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.queuemanagement."
    "GuaranteedOrZeroCapacityOverTimePolicy"
)

_SNAPSHOT_ONLY = "user-settings."
"""Read from the configuration as it was loaded, which the copied keys never reach (UserWeights)."""


class ManagedCreation(Struct, frozen=True):
    """`queues_max`: leaves at most; `fails_when_full`: none is made that the parent has no guarantee left for.

    `capacity`: the template's, of the parent.
    """

    queues_max: int
    fails_when_full: bool
    capacity: ConfiguredCapacity


def is_managed(reader: Reader, path: str) -> bool:
    """True if the queue makes leaves in the older way."""
    return reader.flag(queue_key(path, MANAGED_CREATION + "enabled"), False)


def read_managed(
    reader: Reader, path: str, types: ResourceTypes, own: ConfiguredCapacity, *, legacy: bool, is_flexible: bool
) -> ManagedCreation:
    """`own`: the parent's capacity; `is_flexible`: it is told to make queues in the newer way, too."""
    prefix = queue_key(path, LEAF_TEMPLATE)
    template = CapacityReader(reader, path + "." + LEAF_TEMPLATE[:-1], prefix, types, label=NO_LABEL, legacy=legacy)
    capacity = template.read(is_root=False, above=None, maximum_am_percent=0.0)
    _note_unsupported(reader, path, legacy=legacy, is_flexible=is_flexible)
    if not own.is_absolute and not capacity.minimum.is_none():
        reader.fault(
            prefix + "capacity",
            f"Managed Parent Queue {path} config type is different from leaf queue template config type",
            "write a percentage, or give the parent amounts too",
        )
    return ManagedCreation(
        queues_max=reader.integer(queue_key(path, MANAGED_CREATION + "max-queues"), 1000),
        fails_when_full=reader.flag(queue_key(path, MANAGED_CREATION + "fail-on-exceeding-parent-capacity"), False),
        capacity=capacity,
    )


def _note_unsupported(reader: Reader, path: str, *, legacy: bool, is_flexible: bool) -> None:
    key = queue_key(path, MANAGED_CREATION + "enabled")
    if not legacy:
        reader.fault(key, "managed parents are not supported without legacy queue mode", "set it to false")
    if is_flexible:
        reader.fault(key, "a parent makes queues in one way", "set it to false, or auto-queue-creation-v2.enabled")
    for name in (path, path + "." + LEAF_TEMPLATE[:-1]):
        for label in configured_labels(reader, name):
            labelled = queue_key(name, f"accessible-node-labels.{label}.capacity")
            reader.fault(labelled, "a managed parent has no capacities of labels here", "remove it")
    policy = queue_key(path, MANAGED_CREATION + "management-policy")
    if reader.text(policy, DEFAULT_POLICY) != DEFAULT_POLICY:
        reader.fault(policy, "no such policy of managed parents", f"write {DEFAULT_POLICY}, or nothing")


def template_entries(configuration: Configuration, parent: str) -> dict[str, Entry]:
    """{key without a path: entry} of what the parent at that path gives its leaves."""
    prefix = queue_key(parent, LEAF_TEMPLATE)
    found = ((key[len(prefix) :], configuration.entry(key)) for key in configuration.keys(prefix))
    return {name: entry for name, entry in found if entry is not None}


def configuration_of_leaf(configuration: Configuration, path: str) -> Configuration:
    """The configuration with which a leaf of a managed parent is read."""
    entries = template_entries(configuration, path.rpartition(".")[0])
    own = {queue_key(path, name): entry for name, entry in entries.items() if not name.startswith(_SNAPSHOT_ONLY)}
    return configuration.with_entries(own)
