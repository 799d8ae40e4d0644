"""Reads history files of MapReduce's AMs (.jhist): each job with its task attempts, every one a container of its own.

A file is `Avro-Binary` (Hadoop's default) or `Avro-Json`, the schema, and the events. Beside it Hadoop keeps the
configuration of the job (`job_..._conf.xml`), which has the sizes of the containers; the history has only their times.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from yarn.resource import Resource
from yarnling.workload.avro import avro_records
from yarnling.workload.defaults import Defaults
from yarnling.workload.documents import mapping_of, refusal, whole_number
from yarnling.workload.evidence import Basis
from yarnling.workload.limits import AMOUNT_MAX, CONTAINERS_MAX, MEMORY_MB_MAX
from yarnling.workload.line_files import Line, bytes_of, files_of, lines_of
from yarnling.workload.model import Workload
from yarnling.workload.observed import REQUESTED_AT_ONCE, ObservedApplication, ObservedContainer, observed_workload
from yarnling.workload.tally import WorkloadCount

MARK = re.compile(r"\AAvro-(Binary|Json)\n")
BINARY = b"Avro-Binary\n"
TASK_ABOUT = "tasks: starts and ends recorded, sizes from the job's configuration"
AM_ABOUT = "AMs: times recorded, sizes from the job's configuration"
UNSIZED_ABOUT = "sizes of containers of jobs without their configuration (times are recorded)"
SIZES = {
    "MAP": ("mapreduce.map", Resource(1024, 1)),
    "REDUCE": ("mapreduce.reduce", Resource(1024, 1)),
    "AM": ("yarn.app.mapreduce.am", Resource(1536, 1)),
}
"""{kind of container: prefix of its size in the configuration, MapReduce's default}"""

_PROPERTY = re.compile(r"<name>((?:mapreduce\.(?:map|reduce)|yarn\.app\.mapreduce\.am)[\w.-]*)</name><value>(\d+)<")
_JOB = re.compile(r"job_(\d{1,20}_\d{1,20})")


class _Job(Struct):
    """A job. `attempts` {id of a task attempt: (kind, start, end)}, 0 for an end that is not in the history."""

    user: str = ""
    queue: str = ""
    submitted_ms: int = 0
    am_started_ms: int = 0
    last_ms: int = 0
    is_uber: bool = False
    settings: dict[str, int] = msgspec.field(default_factory=dict)
    attempts: dict[str, tuple[str, int, int]] = msgspec.field(default_factory=dict)


def history_lines(path: Path) -> Iterator[Line]:
    """The lines of history files and configurations; events of binary files as JSON. Raises ConfigurationException."""
    for file in files_of(path):
        data = bytes_of(file, BINARY)
        if data is None:
            yield from lines_of(file)
            continue
        schema, _, events = data.removeprefix(BINARY).partition(b"\n")
        try:
            for number, record in enumerate(avro_records(json.loads(schema), events), 3):
                yield Line(str(file), number, json.dumps(record))
        except (ValueError, RecursionError) as error:
            remedy = "copy it again, or leave it out"
            raise refusal(file, f"is not a valid history file: {error}", remedy) from None


def read_mapreduce_history(lines: Iterable[Line], source: str, defaults: Defaults) -> Workload:
    """The workload of the jobs in history files. Raises ConfigurationException if there is none."""
    jobs: dict[str, _Job] = {}
    for line in lines:
        found = _JOB.search(Path(line.source).name) or _JOB.search(line.text)
        if found is None:
            continue
        job = jobs.setdefault(found[1], _Job())
        if line.text.startswith("{"):
            _take(job, line.text)
        for key, value in _PROPERTY.findall(line.text):
            job.settings[key] = whole_number(value)
    complete = {name: job for name, job in jobs.items() if job.submitted_ms and job.last_ms}
    if not complete:
        raise refusal(source, "has no job of MapReduce", "name .jhist files, or a directory with them")
    tally = WorkloadCount(source)
    observed = [_observed(name, job, defaults) for name, job in sorted(complete.items())]
    for each in observed:
        tally.add(len(each.containers))
    return observed_workload(observed, _assumptions(complete))


def _take(job: _Job, text: str) -> None:
    """Take over an event; one that is not whole, or of another kind, changes nothing."""
    try:
        record = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return
    event = mapping_of(record.get("event"))
    # JSON names the type of each value of a union: {"string": "default"}.
    fields = mapping_of(next(iter(event.values()))) if len(event) == 1 else event
    values = {
        key: next(iter(value.values()), None) if isinstance(value, dict) else value for key, value in fields.items()
    }
    kind, identity = str(record.get("type")), str(values.get("attemptId"))
    for name in ("startTime", "finishTime", "submitTime", "launchTime"):
        job.last_ms = max(job.last_ms, whole_number(values.get(name)))
    if kind == "JOB_SUBMITTED":
        job.user, job.queue = str(values.get("userName") or ""), str(values.get("jobQueueName") or "")
        job.submitted_ms = whole_number(values.get("submitTime"))
    elif kind == "AM_STARTED":
        job.am_started_ms = job.am_started_ms or whole_number(values.get("startTime"))
    elif kind == "JOB_INITED":
        job.is_uber = values.get("uberized") is True
    elif kind.endswith("_ATTEMPT_STARTED") and len(job.attempts) < CONTAINERS_MAX:
        job.attempts[identity] = (str(values.get("taskType")), whole_number(values.get("startTime")), 0)
    elif "_ATTEMPT_" in kind and identity in job.attempts:
        task, start_ms, _ = job.attempts[identity]
        job.attempts[identity] = (task, start_ms, whole_number(values.get("finishTime")))


def _observed(name: str, job: _Job, defaults: Defaults) -> ObservedApplication:
    basis = Basis.DETERMINED if job.settings else Basis.ASSUMED
    began_ms = job.am_started_ms or job.submitted_ms
    am = _size(job.settings, "AM")
    containers = [
        ObservedContainer(
            start_ms,
            start_ms,
            max(end_ms or job.last_ms, start_ms),
            _size(job.settings, kind),
            "",
            basis,
            TASK_ABOUT if job.settings else UNSIZED_ABOUT,
        )
        for kind, start_ms, end_ms in job.attempts.values()
        if start_ms and kind in SIZES and not job.is_uber
    ]
    about = AM_ABOUT if job.settings else UNSIZED_ABOUT
    return ObservedApplication(
        name=f"application_{name}",
        submit_ms=job.submitted_ms,
        user=job.user or defaults.user,
        queue=job.queue or defaults.queue,
        kind="MAPREDUCE",
        am=ObservedContainer(began_ms, began_ms, max(job.last_ms, began_ms), am, "", basis, about),
        containers=containers,
    )


def _size(settings: Mapping[str, int], kind: str) -> Resource:
    """The size of the containers of a kind; MapReduce's default where the configuration does not say it."""
    prefix, default = SIZES[kind]
    is_am = kind == "AM"
    memory_mb = settings.get(f"{prefix}.{'resource.mb' if is_am else 'memory.mb'}") or default.memory_mb
    vcores = settings.get(f"{prefix}.{'resource.cpu-vcores' if is_am else 'cpu.vcores'}") or default.vcores
    return Resource(min(memory_mb, MEMORY_MB_MAX), min(vcores, AMOUNT_MAX))


def _assumptions(jobs: Mapping[str, _Job]) -> Iterator[str]:
    yield REQUESTED_AT_ONCE
    if unsized := sum(not job.settings for job in jobs.values()):
        yield f"{unsized} jobs have no job_..._conf.xml beside them: MapReduce's default sizes are taken."
    if uber := sum(job.is_uber for job in jobs.values()):
        yield f"{uber} jobs ran all tasks in their AM (uberized): they have no other containers."
