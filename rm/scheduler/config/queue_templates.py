"""Templates: keys of a parent that configure the queues which the parent creates.

There are two kinds. With `auto-queue-creation-v2` (AutoCreatedQueueTemplate):

    root.users.auto-queue-creation-v2.template.capacity = 5w          every queue created below root.users
    root.users.auto-queue-creation-v2.leaf-template.priority = 3      leaves only; parent-template.: parents only
    root.*.auto-queue-creation-v2.template.capacity = 1w              below every child of root

A name takes precedence over a wildcard, a template for leaves or parents over the common one, and keys of the queue's
own path over both. With `auto-create-child-queue`, the older way, the parent is a managed parent (ManagedParentQueue):

    root.users.auto-create-child-queue.enabled = true
    root.users.leaf-queue-template.capacity = 25                  of root.users, while the leaf is active
    root.users.leaf-queue-template.user-limit-factor = 2          any key of a leaf; overrides the leaf's own key

Hadoop writes the values into its configuration, under the queue's path. Here they become an overlay, which is used to
read only this queue.
"""

from __future__ import annotations

from rm.scheduler.config.reader import Reader
from yarn.configuration import Configuration, Entry
from yarn.faults import OVERRIDE
from yarn.settings import scheduler
from yarn.settings.scheduler import PREFIX, ROOT, queue_key

QUEUE_CREATION = "auto-queue-creation-v2."
_COMMON = QUEUE_CREATION + "template."
_LEAF = QUEUE_CREATION + "leaf-template."
_PARENT = QUEUE_CREATION + "parent-template."

TEMPLATES = (_LEAF, _PARENT, _COMMON)

MANAGED_CREATION = "auto-create-child-queue."
LEAF_TEMPLATE = "leaf-queue-template."

_SNAPSHOT_ONLY = "user-settings."
"""Properties that templates cannot set: Hadoop's UserWeights reads the configuration as it was loaded."""

_OF_LEAVES = {"user-limit-factor": "-1", "maximum-am-resource-percent": "1.0"}
"""Values that override the leaf's own keys and that templates can change (parseAndSetDynamicTemplates)."""

_LABELS = "accessible-node-labels."


class QueueTemplate:
    """The templates of the parent at `path`, with auto-queue-creation-v2."""

    __slots__ = ("_common", "_configuration", "_found_at", "_leaf", "_parent", "_path")

    def __init__(self, configuration: Configuration, path: str) -> None:
        self._configuration = configuration
        self._path = path
        self._common: dict[str, Entry] = {}
        self._leaf: dict[str, Entry] = {}
        self._parent: dict[str, Entry] = {}
        self._found_at = _patterns(path, queue_depth_max(Reader(configuration), path))
        for pattern in self._found_at:
            for prefix, found in ((_COMMON, self._common), (_LEAF, self._leaf), (_PARENT, self._parent)):
                for name, entry in _entries_below(configuration, queue_key(pattern, prefix)).items():
                    found.setdefault(name, entry)

    @property
    def parts(self) -> tuple[dict[str, Entry], dict[str, Entry], dict[str, Entry]]:
        """{key without a path: entry} of the templates for all queues, for parents and for leaves."""
        return self._common, self._parent, self._leaf

    def properties(self, *, is_leaf: bool) -> dict[str, Entry]:
        """{key without a path: entry} for a leaf, or for a parent."""
        return {**self._common, **(self._leaf if is_leaf else self._parent)}

    def source(self, name: str, *, is_leaf: bool) -> str:
        """The key of the template that sets this property of a leaf, or of a parent; "" if none does."""
        own, entry = _LEAF if is_leaf else _PARENT, self.properties(is_leaf=is_leaf).get(name)
        keys = (queue_key(pattern, prefix + name) for prefix in (own, _COMMON) for pattern in self._found_at)
        return next((key for key in keys if entry is not None and self._configuration.entry(key) is entry), "")

    def configuration_of(self, path: str, *, is_leaf: bool) -> Configuration:
        """The configuration from which the child at `path` is read."""
        entries: dict[str, Entry] = {}
        if is_leaf:
            entries = {queue_key(path, name): Entry(value, OVERRIDE) for name, value in _OF_LEAVES.items()}
        for name, entry in self.properties(is_leaf=is_leaf).items():
            key = queue_key(path, name)
            if key not in self._configuration and not name.startswith(_SNAPSHOT_ONLY):
                entries[key] = entry
        return self._configuration.with_entries(entries)

    def labels_of(self, path: str) -> tuple[str, ...]:
        """The labels on which the child at `path` has a capacity (AbstractCSQueue.parseAndSetDynamicTemplates).

        These are the labels in the parent's own common template, or else those in the child's own keys.
        """
        reader = Reader(self._configuration)
        return configured_labels(reader, f"{self._path}.{_COMMON[:-1]}") or configured_labels(reader, path)


def queue_depth_max(reader: Reader, path: str) -> int:
    """The number of levels of queues that may be created below the configured parent at `path`."""
    own = queue_key(path, QUEUE_CREATION + "maximum-queue-depth")
    return reader.integer(own, reader.value(scheduler.QUEUE_DEPTH_MAX))


def is_managed(reader: Reader, path: str) -> bool:
    """True if the queue is a managed parent."""
    return reader.flag(queue_key(path, MANAGED_CREATION + "enabled"), False)


def template_entries(configuration: Configuration, parent: str) -> dict[str, Entry]:
    """{key without a path: entry} of the leaf template of the managed parent at that path."""
    return _entries_below(configuration, queue_key(parent, LEAF_TEMPLATE))


def configuration_of_leaf(configuration: Configuration, path: str) -> Configuration:
    """The configuration from which a leaf of a managed parent is read (setLeafQueueConfigs)."""
    entries = template_entries(configuration, path.rpartition(".")[0])
    own = {queue_key(path, name): entry for name, entry in entries.items() if not name.startswith(_SNAPSHOT_ONLY)}
    return configuration.with_entries(own)


def configured_labels(reader: Reader, path: str) -> tuple[str, ...]:
    """The labels on which the queue has a capacity, in the order of the file; for root, those of all queues.

    Source: QueueNodeLabelsSettings.
    """
    prefix = PREFIX if path == ROOT else queue_key(path, _LABELS)
    labels: dict[str, None] = {}
    for key in reader.configuration.keys(prefix):
        _, found, rest = key.partition(_LABELS)
        label, dot, _ = rest.partition(".")
        if found and dot:
            labels[label] = None
    return tuple(labels)


def _entries_below(configuration: Configuration, prefix: str) -> dict[str, Entry]:
    """The entries whose keys start with the prefix: {rest of the key: entry}."""
    found = ((key[len(prefix) :], configuration.entry(key)) for key in configuration.keys(prefix))
    return {name: entry for name, entry in found if entry is not None}


def _patterns(path: str, depth_max: int) -> list[str]:
    """The path, then the path with its last one, two, ... parts as wildcards: as many as levels may be created."""
    parts = path.split(".")
    found = [path]
    if path == ROOT:
        return found
    for level in range(min(len(parts) - 1, depth_max)):
        parts[len(parts) - 1 - level] = "*"
        found.append(".".join(parts))
    return found
