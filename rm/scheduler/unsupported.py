"""What Hadoop's scheduler can do and this one cannot yet: refused by name when a configuration asks for it."""

from __future__ import annotations

from rm.scheduler.queue_configuration import PREFIX, ROOT, queue_key
from rm.scheduler.reading import Reader

_FLAGS = {
    PREFIX + "schedule-asynchronously.enable": "asynchronous scheduling is not supported: nodes' heartbeats drive it",
    PREFIX + "multi-node-placement-enabled": "placement over several nodes is not supported",
    PREFIX + "lazy-preemption-enabled": "lazy preemption is not supported yet",
    "yarn.resourcemanager.scheduler.monitor.enable": "preemption is not supported yet",
    "yarn.node-labels.enabled": "node labels are not supported yet",
}
_TEXTS = {
    PREFIX + "queue-mappings": "queue mappings are not supported yet",
    PREFIX + "mapping-rule-json": "queue mappings are not supported yet",
    PREFIX + "mapping-rule-json-file": "queue mappings are not supported yet",
    PREFIX + "workflow-priority-mappings": "workflow priorities are not supported yet",
    PREFIX + "max-parallel-apps": "limits on parallel applications are not supported yet",
    PREFIX + "user.max-parallel-apps": "limits on parallel applications are not supported yet",
}
_QUEUE_TEXTS = {
    "max-parallel-apps": "limits on parallel applications are not supported yet",
    "default-node-label-expression": "node labels are not supported yet",
    "acl_application_max_priority": "priority ACLs are not supported yet",
    "maximum-application-lifetime": "application lifetimes are not supported yet",
    "default-application-lifetime": "application lifetimes are not supported yet",
}
_QUEUE_FLAGS = {
    "auto-create-child-queue.enabled": "queues created on demand are not supported yet",
    "auto-queue-creation-v2.enabled": "queues created on demand are not supported yet",
    "reservable": "the reservation system is not supported",
}


def note_unsupported(reader: Reader, paths: tuple[str, ...]) -> None:
    """One fault for each thing asked for that cannot be done."""
    for key, problem in _FLAGS.items():
        if reader.flag(key, False):
            reader.fault(key, problem, "set it to false")
    for key, problem in _TEXTS.items():
        if reader.text(key):
            reader.fault(key, problem, "remove it")
    if not reader.flag(PREFIX + "legacy-queue-mode.enabled", True):
        key = PREFIX + "legacy-queue-mode.enabled"
        reader.fault(key, "capacities with a unit for each resource are not supported yet", "set it to true")
    for key in reader.configuration.keys(PREFIX + "user."):
        if key.endswith(".max-parallel-apps") and key not in _TEXTS:
            reader.fault(key, _TEXTS[PREFIX + "user.max-parallel-apps"], "remove it")
    for path in paths:
        _note_queue(reader, path)


def _note_queue(reader: Reader, path: str) -> None:
    for name, problem in _QUEUE_FLAGS.items():
        if reader.flag(queue_key(path, name), False):
            reader.fault(queue_key(path, name), problem, "set it to false")
    for name, problem in _QUEUE_TEXTS.items():
        if reader.text(queue_key(path, name)):
            reader.fault(queue_key(path, name), problem, "remove it")
    labels = queue_key(path, "accessible-node-labels")
    for key in reader.configuration.keys(labels):
        if key.startswith(labels + ".") or (path != ROOT and reader.text(key) not in ("", "*")):
            reader.fault(key, "node labels are not supported yet", "remove it")
