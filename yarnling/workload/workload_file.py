"""yarnling's own files of workloads, as docs/workloads.md describes them.

A workload is JSON lines: a header, then one application a line. So a day of a large cluster is read and written without
holding all its JSON at once. Equal durations next to one another are written as one pair. The same sections can be
written as YAML by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from pydantic import AliasChoices, BeforeValidator, Field

from wire.files.full_disk import full_disk_named
from wire.files.yaml_file import MEMORY_KEYS, Section, parse_yaml
from yarn.resource import MEMORY_MB, VCORES, Resource
from yarnling.workload.calibration import Calibration
from yarnling.workload.distribution_text import StartTimeMs, written
from yarnling.workload.documents import Faults, json_documents
from yarnling.workload.evidence import Basis, Evidence
from yarnling.workload.limits import (
    AMOUNT_MAX,
    GROUPS_MAX,
    Amount,
    Containers,
    MemoryMb,
    Milliseconds,
    Name,
    Priority,
    Text,
    Vcores,
)
from yarnling.workload.model import (
    AM_RESOURCE,
    AM_START_MS,
    TASK_START_MS,
    RequestStyle,
    TaskGroup,
    Workload,
    WorkloadApplication,
)
from yarnling.workload.submissions import in_order
from yarnling.workload.tally import WorkloadCount

WORKLOAD_MARK = "yarnling-workload"
VERSION = 1
ERROR_MAX = 1e9
"""The largest error of a replay, as a fraction."""


def _run(value: object) -> object:
    """Convert an item of `durations_ms` to [duration, count]; a plain number is one duration."""
    return value if isinstance(value, list) else [value, 1]


_Runs = Annotated[
    list[Annotated[tuple[Milliseconds, Containers], BeforeValidator(_run)]], Field(min_length=1, max_length=1_000_000)
]
ResourceAmounts = Annotated[dict[Name, Amount], Field(max_length=100)]


class _Group(Section):
    memory_mb: Annotated[MemoryMb, MEMORY_KEYS]
    vcores: Vcores = 1
    resources: ResourceAmounts = Field(default_factory=dict)
    durations_ms: _Runs
    priority: Priority = 20
    after: Amount | None = None
    hosts: Annotated[tuple[Name, ...], Field(max_length=1000)] = ()
    label: Annotated[str, Field(max_length=255)] = ""
    delay_ms: Milliseconds = 0
    name: Text = ""

    def record(self) -> TaskGroup:
        durations = tuple(duration for duration, count in self.durations_ms for _ in range(count))
        resource = Resource(self.memory_mb, self.vcores, tuple(self.resources.items()))
        return TaskGroup(
            resource, durations, self.priority, self.after, self.hosts, self.label, self.delay_ms, self.name
        )


class _Conduct(Section):
    """The behaviour of all applications' AMs, and the time they and their tasks take to start."""

    client: RequestStyle = RequestStyle.HADOOP
    am_start_ms: StartTimeMs = AM_START_MS
    task_start_ms: StartTimeMs = TASK_START_MS


class _Application(Section):
    name: Text
    submit_ms: Milliseconds
    user: Name
    queue: Name
    am_memory_mb: Annotated[MemoryMb, Field(validation_alias=AliasChoices("am_memory", "am_memory_mb"))] = (
        AM_RESOURCE.memory_mb
    )
    am_vcores: Vcores = AM_RESOURCE.vcores
    am_resources: ResourceAmounts = Field(default_factory=dict)
    kind: Text = "yarnling"
    priority: Priority = 0
    label: Annotated[str, Field(max_length=255)] = ""
    deadline_ms: Milliseconds | None = None
    am_lasts_ms: Milliseconds = 0
    client: RequestStyle | None = None
    am_start_ms: StartTimeMs | None = None
    task_start_ms: StartTimeMs | None = None
    groups: Annotated[tuple[_Group, ...], Field(max_length=GROUPS_MAX)] = ()

    @property
    def containers(self) -> int:
        """The number of containers that it stands for, before they become records."""
        return sum(count for group in self.groups for _, count in group.durations_ms)

    def record(self, header: _Conduct) -> WorkloadApplication:
        """`header`: of the whole workload, for what the application does not say."""
        am = Resource(self.am_memory_mb, self.am_vcores, tuple(self.am_resources.items()))
        return WorkloadApplication(
            self.name,
            self.submit_ms,
            self.user,
            self.queue,
            tuple(group.record() for group in self.groups),
            am,
            self.kind,
            self.priority,
            self.label,
            self.deadline_ms,
            self.am_lasts_ms,
            header.client if self.client is None else self.client,
            header.am_start_ms if self.am_start_ms is None else self.am_start_ms,
            header.task_start_ms if self.task_start_ms is None else self.task_start_ms,
        )


class _Evidence(Section):
    basis: Basis
    share: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    about: Text

    def record(self) -> Evidence:
        return Evidence(self.basis, self.share, self.about)


_Fraction = Annotated[float, Field(ge=-ERROR_MAX, le=ERROR_MAX, allow_inf_nan=False)]


class _FittedTime(Section):
    name: Text
    value_ms: Milliseconds
    about: Text
    basis: Basis = Basis.DETERMINED


class _PollingError(Section):
    every_ms: Milliseconds
    makespan: _Fraction | None = None
    run_mean: _Fraction | None = None
    am_wait_p95: _Fraction | None = None
    memory: _Fraction | None = None
    application_p50: _Fraction | None = None


class _ReplayError(Section):
    queue: Annotated[str, Field(max_length=2000)] = ""
    applications: Amount
    run_mean: _Fraction | None = None
    am_wait_p50: _Fraction | None = None
    am_wait_p95: _Fraction | None = None
    memory: _Fraction | None = None
    use_points: _Fraction | None = None


class _Calibration(Section):
    record: Text
    seeds: Annotated[int, Field(ge=1, le=AMOUNT_MAX)]
    errors: Annotated[tuple[_ReplayError, ...], Field(min_length=1, max_length=100_000)]
    fitted: Annotated[tuple[_FittedTime, ...], Field(max_length=100)] = ()
    makespan: _Fraction | None = None
    application_p50: _Fraction | None = None
    polling: _PollingError | None = None

    def as_record(self) -> Calibration:
        """The calibration."""
        return msgspec.convert(self.model_dump(mode="json"), Calibration)


class _Origin(_Conduct):
    """The part of a header that says where the workload comes from."""

    assumptions: tuple[Text, ...] = ()
    evidence: Annotated[tuple[_Evidence, ...], Field(max_length=100)] = ()
    calibration: _Calibration | None = None

    def workload(self, applications: Iterable[WorkloadApplication]) -> Workload:
        return Workload(
            in_order(applications),
            self.assumptions,
            tuple(each.record() for each in self.evidence),
            None if self.calibration is None else self.calibration.as_record(),
        )


class _Header(_Origin):
    version: Annotated[Literal[1], Field(alias=WORKLOAD_MARK)]


class _Workload(_Origin):
    version: Annotated[Literal["1"], Field(alias=WORKLOAD_MARK)] = "1"
    applications: list[_Application]


def parse_workload_lines(text: str, source: str) -> Workload:
    """The workload in JSON lines. Raises ConfigurationException with all faults."""
    faults, tally = Faults(source), WorkloadCount(source)
    documents = json_documents(text, source)
    line, first = next(documents)
    header = faults.checked(_Header, first, "", line)
    applications, conduct = list[WorkloadApplication](), header or _Conduct()
    for number, (line, document) in enumerate(documents, 1):
        entry = faults.checked(_Application, document, f"application {number}", line)
        if entry is not None:
            tally.add(entry.containers, line)
            applications.append(_checked(entry, conduct, faults, (f"application {number}", line)))
    faults.refuse()
    return (header or _Origin()).workload(applications)


def parse_workload_yaml(text: str, source: str) -> Workload:
    """The workload that a person wrote as YAML. Raises ConfigurationException with all faults."""
    section, faults, tally = parse_yaml(text, source, _Workload), Faults(source), WorkloadCount(source)
    applications: list[WorkloadApplication] = []
    for number, entry in enumerate(section.applications, 1):
        tally.add(entry.containers, None)
        applications.append(_checked(entry, section, faults, (f"applications[{number}]", None)))
    faults.refuse()
    return section.workload(applications)


def _checked(
    entry: _Application, conduct: _Conduct, faults: Faults, where: tuple[str, int | None]
) -> WorkloadApplication:
    prefix, line = where
    for position, group in enumerate(entry.groups):
        if group.after is not None and group.after >= position:
            remedy = "write the position of an earlier group, the first is 0"
            key = f"{prefix}.groups[{position + 1}].after"
            faults.add(key, "is not an earlier group", remedy, value=group.after, line=line)
    return entry.record(conduct)


def write_workload(workload: Workload, path: Path) -> None:
    """Write a workload as JSON lines."""
    with full_disk_named(path), path.open("w", encoding="utf-8") as file:
        header: dict[str, Any] = {WORKLOAD_MARK: VERSION, "assumptions": list(workload.assumptions)}
        if workload.evidence:
            header["evidence"] = [_part(each) for each in workload.evidence]
        if workload.calibration is not None:
            header["calibration"] = msgspec.to_builtins(workload.calibration)
        file.write(f"{json.dumps(header)}\n")
        for application in workload.applications:
            file.write(f"{json.dumps(_application(application), separators=(',', ':'))}\n")


def _part(evidence: Evidence) -> dict[str, Any]:
    return {"basis": evidence.basis.value, "share": round(evidence.share, 6), "about": evidence.about}


def _application(application: WorkloadApplication) -> dict[str, Any]:
    optional = {
        "kind": application.kind,
        "priority": application.priority,
        "label": application.label,
        "deadline_ms": application.deadline_ms,
        "am_lasts_ms": application.am_lasts_ms,
        **others_than_default(
            {
                "client": application.client.value,
                "am_start_ms": written(application.am_start_ms),
                "task_start_ms": written(application.task_start_ms),
            },
            _Conduct,
        ),
    }
    return {
        "name": application.name,
        "submit_ms": application.submit_ms,
        "user": application.user,
        "queue": application.queue,
        **amounts_of(application.am_resource, "am_"),
        **others_than_default(optional, _Application),
        "groups": [_group(group) for group in application.groups],
    }


def _group(group: TaskGroup) -> dict[str, Any]:
    optional = {
        "priority": group.priority,
        "after": group.after,
        "hosts": group.hosts,
        "label": group.label,
        "delay_ms": group.delay_ms,
        "name": group.name,
    }
    runs = [(duration, sum(1 for _ in equal)) for duration, equal in groupby(group.durations_ms)]
    durations = [duration if count == 1 else [duration, count] for duration, count in runs]
    return {**amounts_of(group.resource), "durations_ms": durations, **others_than_default(optional, _Group)}


def amounts_of(resource: Resource, prefix: str = "") -> dict[str, Any]:
    """The keys of a resource in a file."""
    extra = {name: amount for name, amount in resource.amounts().items() if name not in (MEMORY_MB, VCORES)}
    amounts = {f"{prefix}memory_mb": resource.memory_mb, f"{prefix}vcores": resource.vcores}
    return {**amounts, f"{prefix}resources": extra} if extra else amounts


def others_than_default(values: dict[str, Any], model: type[Section]) -> dict[str, Any]:
    """The values that differ from the defaults of the model."""
    return {key: value for key, value in values.items() if value != model.model_fields[key].default}
