"""Turns the answers of a ResourceManager into lines of a recording: what is new in each. No I/O.

Releases differ in their fields and a peer may send anything, so each field is looked up by name and taken only if it
has its type; those that no entry had are noted once. Numbers may come as text, as some of Hadoop's answers have them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from yarn.resource import MEMORY_MB, VCORES
from yarnling.workload.recording_lines import (
    AppsSeen,
    ConfSeen,
    ContainersSeen,
    FieldsMissing,
    ManagerSeen,
    MetricsSeen,
    NodesSeen,
    QueuesSeen,
    SchedulerSeen,
    SeenLine,
)
from yarnling.workload.reported_queues import NOT_CONFIGURED, NOT_CONFIGURED_OF_PARTITIONS
from yarnling.workload.rest_cluster import label_of, one_or_list

TEXT_MAX = 255
VALUE_MAX = 65_536
NUMBER_MAX = 1 << 60
ENTRIES_MAX = 1_000_000
"""The most entries of one list that are read."""
DEPTH_MAX = 100
"""The deepest queue that is read."""
ENDED = frozenset({"FINISHED", "FAILED", "KILLED"})
APP_FIELDS: Mapping[str, type] = {
    "user": str,
    "queue": str,
    "state": str,
    "finalStatus": str,
    "applicationType": str,
    "priority": int,
    "startedTime": int,
    "launchTime": int,
    "finishedTime": int,
    "elapsedTime": int,
    "allocatedMB": int,
    "allocatedVCores": int,
    "reservedMB": int,
    "runningContainers": int,
    "memorySeconds": int,
    "vcoreSeconds": int,
    "preemptedMemorySeconds": int,
    "appNodeLabelExpression": str,
    "unmanagedApplication": bool,
}
OPTIONAL = frozenset({"apps.appNodeLabelExpression"})
"""Fields that are left out where there is nothing to say."""
PENDING = "pendingMB"
"""A field of applications that no answer has: the memory that one still waits for, from its `resourceInfo`."""
AT_THE_END = frozenset({"elapsedTime", "memorySeconds", "vcoreSeconds", "preemptedMemorySeconds"})
"""Fields that change in each answer; they are written when an application has ended."""
USED, ELAPSED = "memorySeconds", "elapsedTime"
"""Of these, the fields that are also written when others have changed: what was used between two polls says when."""
UNEXPLAINED_S = 0.5
"""Of memory that is held, use for so long more or less than since the last line is a change, too."""
METRICS = (
    "allocatedMB",
    "reservedMB",
    "pendingMB",
    "availableMB",
    "totalMB",
    "allocatedVirtualCores",
    "pendingVirtualCores",
    "totalVirtualCores",
    "containersAllocated",
    "containersPending",
    "containersReserved",
    "appsPending",
    "appsRunning",
    "activeNodes",
    "lostNodes",
    "unhealthyNodes",
    "decommissioningNodes",
    "decommissionedNodes",
)
SECRET = re.compile(r"password|secret|token|credential|\.key$|access-?key|keytab|principal", re.IGNORECASE)
CONF_PREFIXES = (
    "yarn.scheduler.",
    "yarn.resourcemanager.",
    "yarn.nodemanager.resource",
    "yarn.nodemanager.heartbeat",
    "yarn.nm.liveness-monitor.",
)
OF_USE = frozenset((*NOT_CONFIGURED, *NOT_CONFIGURED_OF_PARTITIONS))
"""Fields of an answer that change without a change of the configuration."""


class ClusterObserver:
    """The state of a cluster as it was written so far, which decides which part of an answer is new.

    Each method returns the lines for an answer. `forget` begins a new file: everything is new then.
    """

    def __init__(self) -> None:
        self._missing: set[str] = set()
        self._unwritten: set[str] = set()
        self.changed_queues = 0
        self._configured = b""
        self.forget()

    def forget(self) -> None:
        """Forget what was written, so that all of it is written once more."""
        self._unwritten = set(self._missing)
        self.apps: dict[str, dict[str, Any]] = {}
        self.nodes: dict[str, dict[str, Any]] = {}
        self._ended: dict[str, int] = {}
        self._used: dict[str, tuple[int, int]] = {}
        self._queues: dict[str, list[int]] = {}
        self._metrics: dict[str, int] = {}
        self._properties: dict[str, str] = {}
        self._manager: ManagerSeen | None = None
        self._has_scheduler = False

    @property
    def missing(self) -> list[str]:
        """Fields that no answer had."""
        return sorted(self._missing)

    def see_info(self, at_ms: int, answer: Mapping[str, Any]) -> Iterator[SeenLine]:
        """The answer to GET /ws/v1/cluster/info. A ResourceManager that has restarted has forgotten its metrics."""
        info = _object(answer, "clusterInfo")
        found = self._fields("info", [info], {"startedOn": int, "resourceManagerVersion": str})[0]
        seen = ManagerSeen(at_ms, found.get("startedOn", 0), found.get("resourceManagerVersion", ""))
        if self._manager is None or (self._manager.started_ms, self._manager.release) != (
            seen.started_ms,
            seen.release,
        ):
            self._manager = seen
            yield seen

    def see_metrics(self, at_ms: int, answer: Mapping[str, Any]) -> Iterator[SeenLine]:
        """The answer to GET /ws/v1/cluster/metrics. There is a line even if nothing changed: each poll has one."""
        metrics = _object(answer, "clusterMetrics")
        (found,) = self._fields("metrics", [metrics], dict.fromkeys(METRICS, int))
        yield MetricsSeen(at_ms, _changes(self._metrics, found))
        self._metrics = found

    def see_applications(self, at_ms: int, entries: Iterable[Any], *, all_live: bool) -> Iterator[SeenLine]:
        """Applications of answers to GET /ws/v1/cluster/apps. `all_live`: all that have not ended are among them."""
        listed = [each for each in entries if isinstance(each, dict) and isinstance(each.get("id"), str)]
        changed: dict[str, dict[str, Any]] = {}
        for entry, found in zip(listed, self._fields("apps", listed, APP_FIELDS), strict=True):
            name, has_ended = entry["id"][:TEXT_MAX], found.get("state") in ENDED
            if (pending_mb := _pending_mb(entry)) is not None:
                found[PENDING] = pending_mb
            if has_ended and name in self._ended:
                continue
            kept = found if has_ended else {key: value for key, value in found.items() if key not in AT_THE_END}
            news = _changes(self.apps.get(name, {}), kept)
            if has_ended:
                self._ended[name] = at_ms
                self.apps.pop(name, None)
                self._used.pop(name, None)
            else:
                self.apps[name] = kept
                news |= self._use(name, found, has_news=bool(news))
            if news:
                changed[name] = news
        here = {entry["id"][:TEXT_MAX] for entry in listed}
        gone = [name for name in self.apps if name not in here] if all_live else []
        for name in gone:
            del self.apps[name]
            self._used.pop(name, None)
        if changed or gone:
            yield AppsSeen(at_ms, changed, gone)

    def _use(self, name: str, found: Mapping[str, Any], *, has_news: bool) -> dict[str, Any]:
        """The use of a live application so far, if it has other news, or if what it held does not explain it."""
        if USED not in found or ELAPSED not in found:
            return {}
        used, elapsed_ms, held_mb = found[USED], found[ELAPSED], found.get("allocatedMB", 0)
        if not has_news and name in self._used:
            used_before, elapsed_before_ms = self._used[name]
            explained = held_mb * (elapsed_ms - elapsed_before_ms) / 1000
            if abs(used - used_before - explained) <= UNEXPLAINED_S * held_mb:
                return {}
        self._used[name] = used, elapsed_ms
        return {USED: used, ELAPSED: elapsed_ms}

    def forget_ended(self, before_ms: int) -> None:
        """Forget applications that ended before a time: they will not be listed again."""
        self._ended = {name: at_ms for name, at_ms in self._ended.items() if at_ms >= before_ms}

    def see_nodes(self, at_ms: int, answer: Mapping[str, Any]) -> Iterator[SeenLine]:
        """The answer to GET /ws/v1/cluster/nodes."""
        entries = [each for each in _entries(_object(answer, "nodes").get("node")) if isinstance(each, dict)]
        found = {str(each.get("id", ""))[:TEXT_MAX]: _node(each) for each in entries if each.get("id")}
        changed = {name: news for name, node in found.items() if (news := _changes(self.nodes.get(name, {}), node))}
        gone = [name for name in self.nodes if name not in found]
        self.nodes = found
        if changed or gone:
            yield NodesSeen(at_ms, changed, gone)

    def see_scheduler(self, at_ms: int, answer: Mapping[str, Any]) -> Iterator[SeenLine]:
        """The answer to GET /ws/v1/cluster/scheduler: use of the queues; all of it if their configuration changed."""
        root = _object(_object(answer, "scheduler"), "schedulerInfo")
        queues = dict(_queue_use(root))
        if changed := {path: use for path, use in queues.items() if self._queues.get(path) != use}:
            self._queues = queues
            yield QueuesSeen(at_ms, changed)
        configured = msgspec.json.encode(_configured(root))
        if configured != self._configured or not self._has_scheduler:
            self.changed_queues += bool(self._configured) and configured != self._configured
            self._configured, self._has_scheduler = configured, True
            yield SchedulerSeen(at_ms, msgspec.Raw(msgspec.json.encode({"scheduler": {"schedulerInfo": root}})))

    def see_configuration(self, at_ms: int, answer: Mapping[str, Any]) -> Iterator[SeenLine]:
        """The answer to GET /conf in JSON."""
        found = dict(_properties(answer))
        changed = {key: value for key, value in found.items() if self._properties.get(key) != value}
        removed = [key for key in self._properties if key not in found]
        self._properties = found
        if changed or removed:
            yield ConfSeen(at_ms, changed, removed)

    def see_containers(self, at_ms: int, name: str, attempt: int, answer: Mapping[str, Any]) -> Iterator[SeenLine]:
        """The answer to GET .../appattempts/{attempt}/containers. Jersey writes one container as an object."""
        kinds = {"allocatedMB": int, "allocatedVCores": int, "priority": int, "startedTime": int, "containerId": str}
        entries = [each for each in _entries(answer.get("container")) if isinstance(each, dict)]
        rows: list[tuple[int, int, int, int, int]] = []
        for each in self._fields("containers", entries, kinds):
            number = each.get("containerId", "").rpartition("_")[2]
            if number.isdecimal() and "allocatedMB" in each:
                others = (each.get(key, 0) for key in ("allocatedMB", "allocatedVCores", "priority", "startedTime"))
                rows.append((int(number), *others))
        if rows:
            yield ContainersSeen(at_ms, name, attempt, sorted(rows))

    def see_missing(self, at_ms: int) -> Iterator[SeenLine]:
        """A line with the fields that turned out to be missing since the last one."""
        if self._unwritten:
            yield FieldsMissing(at_ms, sorted(self._unwritten))
            self._unwritten = set()

    def _fields(self, what: str, entries: list[Any], kinds: Mapping[str, type]) -> list[dict[str, Any]]:
        """The known fields of each entry, and a note of those that none of them has."""
        found = [_taken(entry, kinds) for entry in entries]
        if found:
            lacking = {f"{what}.{key}" for key in kinds if not any(key in each for each in found)}
            lacking -= self._missing | OPTIONAL
            self._missing |= lacking
            self._unwritten |= lacking
        return found


def _taken(entry: Mapping[str, Any], kinds: Mapping[str, type]) -> dict[str, Any]:
    return {key: value for key, kind in kinds.items() if (value := _value(entry.get(key), kind)) is not None}


def _value(value: object, kind: type) -> Any:
    """The value if it has its kind and is not too large; None otherwise."""
    if kind is str:
        return value[:TEXT_MAX] if isinstance(value, str) else None
    if kind is bool:
        return value if isinstance(value, bool) else None
    if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 20:
        value = int(value)
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= NUMBER_MAX:
        return None
    return int(value)


def _object(answer: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under a key; empty if there is none: `apps` is null without applications."""
    found = answer.get(key)
    return found if isinstance(found, dict) else {}


def _entries(value: Any) -> list[Any]:
    return list(one_or_list(value))[:ENTRIES_MAX]


def applications_of(answer: Mapping[str, Any]) -> list[Any]:
    """The entries of an answer to GET /ws/v1/cluster/apps."""
    return _entries(_object(answer, "apps").get("app"))


def _changes(known: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if known.get(key) != value}


def _pending_mb(entry: Mapping[str, Any]) -> int | None:
    """The memory that an application still waits for, in all partitions; None if the answer does not say it."""
    partitions = _entries(_object(entry, "resourceInfo").get("resourceUsagesByPartition"))
    found = [_value(_object(each, "pending").get("memory"), int) for each in partitions if isinstance(each, dict)]
    known = [each for each in found if each is not None]
    return max(sum(known), 0) if known else None


def _node(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a node that matter. Hadoop before 3.3 reports only what is used and what is free."""
    total = _object(entry, "totalResource")
    amounts = {
        str(each.get("name"))[:TEXT_MAX]: _value(each.get("value"), int) or 0
        for each in _entries(_object(total, "resourceInformations").get("resourceInformation"))
        if isinstance(each, dict)
    }
    for name, key, parts in (
        (MEMORY_MB, "memory", ("usedMemoryMB", "availMemoryMB")),
        (VCORES, "vCores", ("usedVirtualCores", "availableVirtualCores")),
    ):
        whole = _value(total.get(key), int)
        amounts[name] = sum(_value(entry.get(part), int) or 0 for part in parts) if whole is None else whole
    labels = [each for each in _entries(entry.get("nodeLabels")) if isinstance(each, str)]
    texts = _taken(entry, {"state": str, "rack": str, "nodeHostName": str})
    label = {"label": label_of(labels[0])[:TEXT_MAX]} if labels else {}
    return {**texts, **label, "amounts": {name: amount for name, amount in amounts.items() if amount}}


def _queue_use(queue: Mapping[str, Any], path: str = "root", depth: int = 0) -> Iterator[tuple[str, list[int]]]:
    """The use of a queue and of those below it, by path."""
    used = _object(queue, "resourcesUsed")
    counts = ("numActiveApplications", "numPendingApplications")
    numbers = [_value(used.get("memory"), int), _value(used.get("vCores"), int)]
    yield path, [each or 0 for each in (*numbers, *(_value(queue.get(key), int) for key in counts))]
    for child in _entries(_object(queue, "queues").get("queue")):
        if isinstance(child, dict) and isinstance(child.get("queueName"), str) and depth < DEPTH_MAX:
            yield from _queue_use(child, f"{path}.{child['queueName'][:TEXT_MAX]}", depth + 1)


def _configured(value: Any, depth: int = 0) -> Any:
    """An answer without the fields that say how queues are used."""
    if isinstance(value, dict) and depth < 4 * DEPTH_MAX:
        return {key: _configured(each, depth + 1) for key, each in value.items() if key not in OF_USE}
    if isinstance(value, list) and depth < 4 * DEPTH_MAX:
        return [_configured(each, depth + 1) for each in value]
    return value


def _properties(answer: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The properties that decide about scheduling and were set by the operator."""
    for each in _entries(answer.get("properties"))[:ENTRIES_MAX]:
        if not isinstance(each, dict):
            continue
        key, value, source = (each.get(name) for name in ("key", "value", "resource"))
        is_set = not (isinstance(source, str) and source.endswith("-default.xml"))
        is_wanted = isinstance(key, str) and key.startswith(CONF_PREFIXES) and not SECRET.search(key)
        if is_wanted and is_set and isinstance(value, str):
            yield str(key)[:TEXT_MAX], value[:VALUE_MAX]
