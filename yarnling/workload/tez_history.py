"""Reads the history that Tez's AMs write: each application with its containers and how long they ran.

The files are those of SimpleHistoryLoggingService, one for each attempt of an AM: a JSON record for each event. Records
of applications, attempts and containers are read. Containers are used again for other tasks, so their times, not those
of tasks, are what the cluster gave. Their size is that of the configuration, which vertices may override.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
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

MARK = re.compile(r'"entitytype":"TEZ_')
CONTAINERS_ABOUT = "containers: starts and ends recorded, sizes from Tez's configuration"
AM_ABOUT = "AMs: times recorded, sizes from Tez's configuration"
TASK_SIZE = ("tez.task.resource", Resource(1024, 1))
AM_SIZE = ("tez.am.resource", Resource(1024, 1))
"""Prefixes of the sizes in the configuration, and Tez's defaults."""

_READ = re.compile(r'"entitytype":"TEZ_(APPLICATION|APPLICATION_ATTEMPT|CONTAINER_ID)"')
_ID = re.compile(r"tez_(?:application|appattempt|container)_(?:e\d+_)?(\d{1,20}_\d{1,20})(?:_\d+)*")
_TIME = re.compile(r'"ts":(\d{13})\b')


class _Application(Struct):
    """An application in its history. `containers`: {id: (launched, stopped)}, 0 for what is not in it."""

    user: str = ""
    settings: dict[str, str] = msgspec.field(default_factory=dict)
    submitted_ms: int = 0
    launched_ms: int = 0
    started_ms: int = 0
    last_ms: int = 0
    containers: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)

    @property
    def begins_ms(self) -> int:
        return self.launched_ms or self.started_ms


def read_tez_history(lines: Iterable[Line], source: str, defaults: Defaults) -> Workload:
    """The workload of the applications in history files. Raises ConfigurationException if there is none."""
    found: dict[str, _Application] = {}
    latest: dict[str, _Application] = {}
    for line in lines:
        text = line.text.strip("\x01")
        if _READ.search(text):
            latest[line.source] = _take(found, text) or latest.get(line.source, _Application())
        if (at := _TIME.search(text)) and line.source in latest:
            latest[line.source].last_ms = max(latest[line.source].last_ms, int(at[1]))
    applications = {name: each for name, each in found.items() if each.begins_ms}
    if not applications:
        raise refusal(source, "has no application of Tez", "name files of SimpleHistoryLoggingService")
    tally = WorkloadCount(source)
    observed = [_observed(name, each, defaults) for name, each in sorted(applications.items())]
    for each in observed:
        tally.add(len(each.containers))
    return observed_workload(observed, _assumptions(applications))


def _take(found: dict[str, _Application], text: str) -> _Application | None:
    """Take over a record, and return its application; None for a record that is not whole."""
    try:
        record = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return None
    identity = _ID.fullmatch(str(record.get("entity")))
    if identity is None:
        return None
    application = found.setdefault(f"application_{identity[1]}", _Application())
    others = mapping_of(record.get("otherinfo"))
    if "config" in others:
        application.user = str(others.get("user") or "")
        application.settings = {str(key): str(value) for key, value in mapping_of(others["config"]).items()}
    application.submitted_ms = application.submitted_ms or whole_number(others.get("appSubmitTime"))
    events = record.get("events")
    for event in events if isinstance(events, list) else []:
        _take_event(application, str(record["entity"]), mapping_of(event))
    return application


def _take_event(application: _Application, entity: str, event: Mapping[str, Any]) -> None:
    at_ms = whole_number(event.get("ts"))
    launched_ms, stopped_ms = application.containers.get(entity, (0, 0))
    match event.get("eventtype"):
        case "AM_LAUNCHED":
            application.launched_ms = application.launched_ms or at_ms
        case "AM_STARTED":
            application.started_ms = application.started_ms or at_ms
        case "CONTAINER_LAUNCHED":
            application.containers[entity] = (at_ms, stopped_ms)
        case "CONTAINER_STOPPED":
            application.containers[entity] = (launched_ms, at_ms)
        case _:
            pass


def _observed(name: str, application: _Application, defaults: Defaults) -> ObservedApplication:
    begins_ms, last_ms = application.begins_ms, max(application.last_ms, application.begins_ms)
    size = _size(application.settings, *TASK_SIZE)
    containers = [
        ObservedContainer(
            launched, launched, max(stopped or last_ms, launched), size, "", Basis.DETERMINED, CONTAINERS_ABOUT
        )
        for launched, stopped in application.containers.values()
        if launched
    ]
    am = _size(application.settings, *AM_SIZE)
    took_ms = application.started_ms - begins_ms if application.launched_ms and application.started_ms else None
    return ObservedApplication(
        name=name,
        submit_ms=application.submitted_ms or begins_ms,
        user=application.user or defaults.user,
        queue=application.settings.get("tez.queue.name") or defaults.queue,
        kind="TEZ",
        am=ObservedContainer(begins_ms, begins_ms, last_ms, am, "", Basis.DETERMINED, AM_ABOUT),
        am_start_ms=took_ms,
        containers=containers,
    )


def _size(settings: Mapping[str, str], prefix: str, default: Resource) -> Resource:
    memory_mb = whole_number(settings.get(f"{prefix}.memory.mb")) or default.memory_mb
    vcores = whole_number(settings.get(f"{prefix}.cpu.vcores")) or default.vcores
    return Resource(min(memory_mb, MEMORY_MB_MAX), min(vcores, AMOUNT_MAX))


def _assumptions(applications: Mapping[str, _Application]) -> Iterator[str]:
    yield REQUESTED_AT_ONCE
    yield "All containers of an application have the size of its configuration, also those of vertices with another."
    if queueless := sum("tez.queue.name" not in each.settings for each in applications.values()):
        yield f"{queueless} applications do not name their queue: the default is taken (--queue)."
