"""What Hadoop's scheduler can do and this one cannot yet: refused by name when a configuration asks for it."""

from __future__ import annotations

from rm.scheduler.config.queue_keys import PREFIX
from rm.scheduler.config.reading import Reader
from rm.scheduler.preemption.monitors import note_unknown_policies

_FLAGS = {
    PREFIX + "schedule-asynchronously.enable": "asynchronous scheduling is not supported: nodes' heartbeats drive it",
    PREFIX + "multi-node-placement-enabled": "placement over several nodes is not supported",
    "yarn.resourcemanager.resource-profiles.enabled": "resource profiles are not supported",
}
_TEXTS = {
    PREFIX + "workflow-priority-mappings": "workflow priorities are not supported yet",
}
_WORDS = {
    "yarn.node-labels.configuration-type": ("centralized", "labels are given to nodes by an administrator only"),
}
"""{key: (the one value that it may have, what is missing)}."""


def names() -> tuple[str, ...]:
    """The keys that are looked at only to be refused."""
    return (*_FLAGS, *_TEXTS, *_WORDS)


def note_unsupported(reader: Reader) -> None:
    """One fault for each thing asked for that cannot be done."""
    for key, problem in _FLAGS.items():
        if reader.flag(key, False):
            reader.fault(key, problem, "set it to false")
    note_unknown_policies(reader)
    for key, problem in _TEXTS.items():
        if reader.text(key):
            reader.fault(key, problem, "remove it")
    for key, (only, problem) in _WORDS.items():
        if reader.text(key, only) != only:
            reader.fault(key, problem, f"set it to {only}")
