"""What a queue that nobody configured is made from: keys under its parent's templates (AutoCreatedQueueTemplate).

    root.users.auto-queue-creation-v2.template.capacity = 5w          every queue made below root.users
    root.users.auto-queue-creation-v2.leaf-template.priority = 3      leaves only; parent-template.: parents only
    root.*.auto-queue-creation-v2.template.capacity = 1w              below every child of root

Names win over wildcards, a template of the queue's kind over the common one, and keys of the queue's own path over
both. Hadoop writes what it finds into its configuration, under the queue's path; here it becomes an overlay that only
this queue is read with.
"""

from __future__ import annotations

from rm.scheduler.config.queue_configuration import queue_depth_max
from rm.scheduler.config.queue_keys import ROOT, queue_key
from rm.scheduler.config.queue_labels import configured_labels
from rm.scheduler.config.reading import Reader
from yarn.configuration import Configuration, Entry
from yarn.faults import OVERRIDE

_PREFIX = "auto-queue-creation-v2."
_COMMON = _PREFIX + "template."
_LEAF = _PREFIX + "leaf-template."
_PARENT = _PREFIX + "parent-template."

_SNAPSHOT_ONLY = "user-settings."
"""UserWeights reads the configuration as it was loaded, so what Hadoop writes into it later has no effect."""

_OF_LEAVES = {"user-limit-factor": "-1", "maximum-am-resource-percent": "1.0"}
"""Written first, over the queue's own keys (AbstractLeafQueue.parseAndSetDynamicTemplates)."""


class QueueTemplate:
    """The templates of the parent at `path`."""

    __slots__ = ("_common", "_configuration", "_leaf", "_parent", "_path")

    def __init__(self, configuration: Configuration, path: str) -> None:
        self._configuration = configuration
        self._path = path
        self._common: dict[str, Entry] = {}
        self._leaf: dict[str, Entry] = {}
        self._parent: dict[str, Entry] = {}
        for pattern in _patterns(path, queue_depth_max(Reader(configuration), path)):
            for prefix, found in ((_COMMON, self._common), (_LEAF, self._leaf), (_PARENT, self._parent)):
                self._collect(queue_key(pattern, prefix), found)

    def properties(self, *, is_leaf: bool) -> dict[str, Entry]:
        """{key without a path: entry} of a child of that kind."""
        return {**self._common, **(self._leaf if is_leaf else self._parent)}

    def configuration_of(self, path: str, *, is_leaf: bool) -> Configuration:
        """The configuration with which the child at `path` is to be read."""
        entries: dict[str, Entry] = {}
        if is_leaf:
            entries = {queue_key(path, name): Entry(value, OVERRIDE) for name, value in _OF_LEAVES.items()}
        for name, entry in self.properties(is_leaf=is_leaf).items():
            key = queue_key(path, name)
            if key not in self._configuration and not name.startswith(_SNAPSHOT_ONLY):
                entries[key] = entry
        return self._configuration.with_entries(entries)

    def labels_of(self, path: str) -> tuple[str, ...]:
        """The labels that the child at `path` has capacities of (AbstractCSQueue.parseAndSetDynamicTemplates).

        Those of the parent's own common template, else those of keys of its own path.
        """
        reader = Reader(self._configuration)
        return configured_labels(reader, f"{self._path}.{_COMMON[:-1]}") or configured_labels(reader, path)

    def _collect(self, prefix: str, found: dict[str, Entry]) -> None:
        for key in self._configuration.keys(prefix):
            entry = self._configuration.entry(key)
            assert entry is not None
            found.setdefault(key[len(prefix) :], entry)


def _patterns(path: str, depth_max: int) -> list[str]:
    """The path, then with one part more at the end a wildcard, as many as queues may be made levels; never for root."""
    parts = path.split(".")
    found = [path]
    if path == ROOT:
        return found
    for level in range(min(len(parts) - 1, depth_max)):
        parts[len(parts) - 1 - level] = "*"
        found.append(".".join(parts))
    return found
