"""Changes of the scheduler's configuration by clients: from a list of changed queues to new values.

The configuration that clients can change is a map {key: value} of what capacity-scheduler.xml has, with `${...}` as
written. A change removes queues, then adds queues, then updates queues, then sets keys of the whole scheduler; an empty
value unsets a key. Whether the result is valid is not checked here: it is applied, or refused, like any configuration
(refreshQueues). Sources: ConfigurationUpdateAssembler, MutableCSConfigurationProvider.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from yarn.configuration import Configuration, Entry
from yarn.errors import YarnException
from yarn.faults import Origin
from yarn.java.values import split_strings
from yarn.settings.scheduler import PREFIX, queue_key

ORIGIN = Origin("scheduler-conf")
"""The origin of values that clients can change."""

QUEUES_MAX = 1000
"""The most queues in one change: to remove one, all keys are looked at."""

Values = Mapping[str, str]
"""{key: value}, `${...}` not replaced."""
Updates = Mapping[str, str | None]
"""{key: new value, or None to unset it}."""


class MutationRefused(YarnException):
    """A change does not fit the present queues; nothing was changed. It is never sent by RPC."""


class QueueConfigInfo(Struct, frozen=True):
    """A queue to add or to update: its path, and {name: value} of its keys; None or an empty text unsets a key."""

    queue: str
    params: Mapping[str, str | None]


class SchedConfUpdateInfo(Struct, frozen=True):
    """A change, carried out in the order of the fields. `removed`: paths; `global_params` {key: value or None}."""

    removed: tuple[str, ...] = ()
    added: tuple[QueueConfigInfo, ...] = ()
    updated: tuple[QueueConfigInfo, ...] = ()
    global_params: Updates = {}

    def queues(self) -> tuple[str, ...]:
        """The paths of the queues that it names."""
        named = (*self.removed, *(info.queue for info in (*self.added, *self.updated)))
        return tuple(dict.fromkeys(named))


def values_of(configuration: Configuration) -> dict[str, str]:
    """The values that clients can change: those of the capacity scheduler's keys."""
    entries = ((key, configuration.entry(key)) for key in configuration.keys(PREFIX))
    return {key: entry.value for key, entry in entries if entry is not None}


def with_values(configuration: Configuration, values: Values) -> Configuration:
    """The configuration with these values instead of its own keys of the capacity scheduler.

    As in Hadoop, another key that is set in the configuration, for example in yarn-site.xml, keeps its value there.
    """
    site = {
        key: entry
        for key in configuration
        if not key.startswith(PREFIX) and (entry := configuration.entry(key)) is not None
    }
    changeable = {key: Entry(value, ORIGIN) for key, value in values.items() if key not in site}
    return Configuration({**site, **changeable}, defaults=configuration.defaults, notes=configuration.notes)


def changed(values: Values, change: SchedConfUpdateInfo) -> dict[str, str]:
    """The values after the change. Raises MutationRefused."""
    if (count := len(change.removed) + len(change.added) + len(change.updated)) > QUEUES_MAX:
        raise MutationRefused(f"{count} queues in one change, must be at most {QUEUES_MAX} (make several changes)")
    proposal = _Proposal(dict(values))
    for path in change.removed:
        proposal.remove(path)
    for info in change.added:
        proposal.add(info)
    for info in change.updated:
        proposal.set_params(info)
    proposal.set_keys(change.global_params)
    return proposal.values


class _Proposal:
    """The values while a change is carried out."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values = values

    def remove(self, path: str) -> None:
        """Remove a queue with all keys of it and of the queues below it.

        A parent without children becomes a leaf, whose ordering policy is not that of a parent.
        """
        parent, dot, name = path.rpartition(".")
        if not dot:
            raise MutationRefused(f"Can't remove queue {path}")
        siblings = self._children(parent)
        if name not in siblings:
            raise MutationRefused(f"Queue {path} not found")
        siblings.remove(name)
        if siblings:
            self.values[queue_key(parent, "queues")] = ",".join(siblings)
        else:
            self.set_keys({queue_key(parent, "queues"): None, queue_key(parent, "ordering-policy"): None})
        self.set_keys({key: None for key in self.values if f"{path}." in key})

    def add(self, info: QueueConfigInfo) -> None:
        """Add a queue. The ordering policy of a leaf that becomes a parent is not that of a leaf."""
        parent, dot, name = info.queue.rpartition(".")
        if not dot:
            raise MutationRefused(f"Can't add invalid queue {info.queue}")
        siblings = self._children(parent)
        if name in siblings:
            raise MutationRefused(f"Can't add existing queue {info.queue}")
        self.values[queue_key(parent, "queues")] = ",".join([*siblings, name])
        self.set_params(info)
        if not siblings:
            self.set_keys({queue_key(parent, "ordering-policy"): None})

    def set_params(self, info: QueueConfigInfo) -> None:
        """Set and unset keys of a queue, which need not exist."""
        self.set_keys({queue_key(info.queue, name): value or None for name, value in info.params.items()})

    def set_keys(self, updates: Updates) -> None:
        """Set and unset keys."""
        for key, value in updates.items():
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = value

    def _children(self, parent: str) -> list[str]:
        text = self.values.get(queue_key(parent, "queues"), "")
        if "${" in text:
            text = Configuration.of(self.values).get(queue_key(parent, "queues"), "") or ""
        return [name for name in split_strings(text) if name]
