"""What Hadoop's scheduler can do and this one cannot yet: refused by name when a configuration asks for it."""

from __future__ import annotations

from rm.scheduler.monitors import note_unknown_policies
from rm.scheduler.queue_keys import PREFIX, queue_key
from rm.scheduler.reading import Reader

_FLAGS = {
    PREFIX + "schedule-asynchronously.enable": "asynchronous scheduling is not supported: nodes' heartbeats drive it",
    PREFIX + "multi-node-placement-enabled": "placement over several nodes is not supported",
}
_TEXTS = {
    PREFIX + "workflow-priority-mappings": "workflow priorities are not supported yet",
}
_WORDS = {
    "yarn.node-labels.configuration-type": ("centralized", "labels are given to nodes by an administrator only"),
}
"""{key: (the one value that it may have, what is missing)}."""
_QUEUE_FLAGS = {
    "auto-create-child-queue.enabled": "managed parents are not supported: see auto-queue-creation-v2.enabled",
}


def names() -> tuple[str, ...]:
    """The keys that are looked at only to be refused; a queue's without its path."""
    return (*_FLAGS, *_TEXTS, *_WORDS, *_QUEUE_FLAGS)


def note_unsupported(reader: Reader, paths: tuple[str, ...]) -> None:
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
    for path in paths:
        _note_queue(reader, path)


def _note_queue(reader: Reader, path: str) -> None:
    for name, problem in _QUEUE_FLAGS.items():
        if reader.flag(queue_key(path, name), False):
            reader.fault(queue_key(path, name), problem, "set it to false")
