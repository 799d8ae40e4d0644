"""Reads Spark's event logs: each application with its executors, their sizes, and how long they ran.

A log is a file for each application, or a directory eventlog_v2_... of files when it rolls. Sizes are those that Spark
requests from YARN (YarnAllocator, ResourceProfile): memory, overhead, off-heap and Python memory together. The log
begins with the SparkContext, so the AM's own start and the seconds before an executor registers are not in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec import Struct

from yarn.resource import Resource
from yarnling.workload.defaults import Defaults
from yarnling.workload.documents import mapping_of, refusal, whole_number
from yarnling.workload.evidence import Basis
from yarnling.workload.limits import AMOUNT_MAX, MEMORY_MB_MAX
from yarnling.workload.line_files import Line
from yarnling.workload.model import Workload
from yarnling.workload.observed import REQUESTED_AT_ONCE, ObservedApplication, ObservedContainer, observed_workload
from yarnling.workload.tally import WorkloadCount

MARK = re.compile(r'"Event":"SparkListenerLogStart"')
EXECUTOR_ABOUT = "executors: starts and ends recorded, sizes from Spark's settings"
AM_ABOUT = "AMs, as long as their SparkContext, in the size of Spark's settings"
OVERHEAD_FACTOR = 0.1
OVERHEAD_MB_MIN = 384
"""Spark's defaults, spark.executor.memoryOverheadFactor and the least overhead."""
OFF_HEAP = "spark.memory.offHeap.enabled"
DRIVER, AM_OF_CLIENT, EXECUTOR = "spark.driver", "spark.yarn.am", "spark.executor"
"""Prefixes of the settings of an AM in cluster mode, of one in client mode, and of executors."""

_EVENT = re.compile(
    r'\{"Event":"SparkListener(ApplicationStart|ApplicationEnd|ExecutorAdded|ExecutorRemoved|EnvironmentUpdate|'
    r'ResourceProfileAdded)"'
)
_TIME = re.compile(r'"(?:Timestamp|Completion Time|Submission Time)":(\d{13})\b')
_MEMORY = re.compile(r"(\d{1,12})([kmgt]?)b?", re.IGNORECASE)
_UNITS_MB = {"": 1.0, "k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0 * 1024}


class _Executor(Struct):
    """An executor. `ended_ms`: 0 if its end is not in the log."""

    added_ms: int
    cores: int
    profile: int
    ended_ms: int = 0


class _Application(Struct):
    """An application in its log. `last_ms`: the last time in it. `profiles`: {id: {kind of resource: amount}}."""

    name: str = ""
    user: str = ""
    started_ms: int = 0
    ended_ms: int = 0
    last_ms: int = 0
    settings: dict[str, str] = msgspec.field(default_factory=dict)
    profiles: dict[int, dict[str, int]] = msgspec.field(default_factory=dict)
    executors: dict[str, _Executor] = msgspec.field(default_factory=dict)


def read_spark_events(lines: Iterable[Line], source: str, defaults: Defaults) -> Workload:
    """The workload of the applications in event logs. Raises ConfigurationException if there is none."""
    found: dict[str, _Application] = {}
    for line in lines:
        _take(found.setdefault(_log_of(line.source), _Application()), line.text)
    applications = [each for each in found.values() if each.name and each.started_ms]
    if not applications:
        raise refusal(source, "has no application of Spark", "name event logs (spark.eventLog.dir)")
    tally = WorkloadCount(source)
    observed = [_observed(each, defaults) for each in applications]
    for each in observed:
        tally.add(len(each.containers))
    return observed_workload(observed, _assumptions(applications))


def _log_of(source: str) -> str:
    """The log that a file belongs to: a rolling log is a directory."""
    path = PurePath(source)
    return str(path.parent) if path.parent.name.startswith("eventlog_v2_") else source


def _take(application: _Application, text: str) -> None:
    """Take over a line. Lines of jobs, stages and tasks only say that the application still ran."""
    if found := _TIME.search(text):
        application.last_ms = max(application.last_ms, int(found[1]))
    kind = _EVENT.match(text)
    if kind is None:
        return
    try:
        event = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return
    match kind[1]:
        case "ApplicationStart":
            application.name = str(event.get("App ID") or "")
            application.user = str(event.get("User") or "")
            application.started_ms = whole_number(event.get("Timestamp"))
        case "ApplicationEnd":
            application.ended_ms = whole_number(event.get("Timestamp"))
        case "EnvironmentUpdate":
            settings = event.get("Spark Properties")
            application.settings |= {str(key): str(value) for key, value in mapping_of(settings).items()}
        case "ResourceProfileAdded":
            requests = mapping_of(event.get("Executor Resource Requests"))
            amounts = {name: whole_number(mapping_of(each).get("Amount")) for name, each in requests.items()}
            application.profiles[whole_number(event.get("Resource Profile Id"))] = amounts
        case _:
            _take_executor(application, kind[1], event)


def _take_executor(application: _Application, kind: str, event: Mapping[str, Any]) -> None:
    name, at_ms = str(event.get("Executor ID") or ""), whole_number(event.get("Timestamp"))
    if kind == "ExecutorAdded" and name != "driver" and at_ms:
        info = mapping_of(event.get("Executor Info"))
        cores, profile = whole_number(info.get("Total Cores")), whole_number(info.get("Resource Profile Id"))
        application.executors[name] = _Executor(at_ms, max(cores, 1), profile)
    elif kind == "ExecutorRemoved" and name in application.executors:
        application.executors[name].ended_ms = at_ms


def _observed(application: _Application, defaults: Defaults) -> ObservedApplication:
    settings, ended_ms = application.settings, application.ended_ms or application.last_ms
    submitted_ms = whole_number(settings.get("spark.app.submitTime")) or application.started_ms
    started_ms = max(application.started_ms, submitted_ms)
    am_prefix = DRIVER if settings.get("spark.submit.deployMode") == "cluster" else AM_OF_CLIENT
    am_cores = whole_number(settings.get(f"{am_prefix}.cores")) or 1
    am = _size(settings, am_prefix, am_cores, {"memory": _memory_mb(settings.get(f"{am_prefix}.memory")) or 0})
    containers = [
        _container(each, each.ended_ms or ended_ms, _executor_size(application, each))
        for each in application.executors.values()
    ]
    return ObservedApplication(
        name=application.name,
        submit_ms=min(submitted_ms, started_ms),
        user=application.user or defaults.user,
        queue=settings.get("spark.yarn.queue") or "default",
        kind="SPARK",
        am=ObservedContainer(started_ms, started_ms, max(ended_ms, started_ms), am, "", Basis.DETERMINED, AM_ABOUT),
        containers=containers,
    )


def _container(executor: _Executor, ended_ms: int, resource: Resource) -> ObservedContainer:
    start_ms = executor.added_ms
    return ObservedContainer(
        start_ms, start_ms, max(ended_ms, start_ms + 1), resource, "", Basis.DETERMINED, EXECUTOR_ABOUT
    )


def _executor_size(application: _Application, executor: _Executor) -> Resource:
    """The container of an executor, by the settings and its resource profile."""
    settings = application.settings
    python_mb = _memory_mb(settings.get("spark.executor.pyspark.memory")) or 0
    off_heap = settings.get("spark.memory.offHeap.size") if settings.get(OFF_HEAP) == "true" else None
    off_heap_mb = whole_number(off_heap) >> 20 if off_heap and off_heap.isdecimal() else _memory_mb(off_heap) or 0
    memory_mb = _memory_mb(settings.get("spark.executor.memory")) or 0
    base = {"memory": memory_mb, "pyspark.memory": python_mb, "offHeap": off_heap_mb}
    return _size(settings, EXECUTOR, executor.cores, base | application.profiles.get(executor.profile, {}))


def _size(settings: Mapping[str, str], prefix: str, cores: int, amounts: Mapping[str, int]) -> Resource:
    """The resource that Spark requests for a container whose heap and other memory are given in MB."""
    heap_mb = amounts.get("memory") or (512 if prefix == AM_OF_CLIENT else 1024)
    factor = _fraction(settings.get(f"{prefix}.memoryOverheadFactor"), OVERHEAD_FACTOR)
    least_mb = _memory_mb(settings.get(f"{prefix}.minMemoryOverhead")) or OVERHEAD_MB_MIN
    overhead_mb = amounts.get("memoryOverhead") or _memory_mb(settings.get(f"{prefix}.memoryOverhead"))
    if overhead_mb is None:
        overhead_mb = max(int(heap_mb * factor), least_mb)
    whole_mb = heap_mb + overhead_mb + amounts.get("offHeap", 0) + amounts.get("pyspark.memory", 0)
    gpus = (("yarn.io/gpu", amounts["gpu"]),) if amounts.get("gpu") else ()
    return Resource(min(max(whole_mb, 1), MEMORY_MB_MAX), min(max(cores, 1), AMOUNT_MAX), gpus)


def _memory_mb(text: str | None) -> int | None:
    """MB of a text such as 4g or 512; None if it is not one. Numbers without a unit are MB, as in Spark's settings."""
    found = _MEMORY.fullmatch((text or "").strip())
    return round(int(found[1]) * _UNITS_MB[found[2].lower()]) if found else None


def _fraction(text: str | None, default: float) -> float:
    try:
        value = float(text) if text else default
    except ValueError:
        return default
    return value if 0 <= value <= 100 else default


def _assumptions(applications: list[_Application]) -> Iterator[str]:
    yield REQUESTED_AT_ONCE
    yield "An executor runs from its registration; the time that its JVM takes to start is not in the log."
    if unended := sum(not each.ended_ms for each in applications):
        yield f"{unended} logs have no end of their application: it ran until the last time in its log."
