"""The complaints of users and operators about a run of lab 3. A cluster without a mistake has none. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from yarn.resource import Resource
from yarn.settings.scheduler import ROOT
from yarn.times import duration
from yarnling.labs.mistake.cluster import AM_MB, GPU, MACHINE, LabCluster, LabJob
from yarnling.report.wording import counted, share
from yarnling.run.step_wording import listed
from yarnling.whatif.containers import ContainerOutcome
from yarnling.whatif.figures import FAILED
from yarnling.whatif.result import REFUSED, WhatIfResult
from yarnling.whatif.waits import wait_of
from yarnling.workload.model import WorkloadNode

OPERATOR = "the operator"
FIRST_MS = 30_000
"""Containers that an AM requests within this time count: later ones replace what was preempted."""
LARGER_MAX = 1.5
"""Containers may have so many times the memory that was requested."""
PEAK_LEAST = 0.5
"""The least fraction of the machines' memory that the jobs use at their peak."""


class Complaint(Struct, frozen=True):
    """A complaint. `kind`: a few words that tell it from others; `who` complains; `text`: one or two sentences."""

    kind: str
    who: str
    text: str

    def __str__(self) -> str:
        return f"{self.who}: {self.text}"


class _JobRun(Struct, frozen=True):
    """A job and its containers, in the order of their requests. `queue`: where it ran. `refused`: it did not run."""

    job: LabJob
    queue: str
    refused: bool
    containers: tuple[ContainerOutcome, ...]

    @property
    def am(self) -> ContainerOutcome | None:
        """The container of its first AM."""
        return next((each for each in self.containers if each.is_am), None)

    @property
    def tasks(self) -> tuple[ContainerOutcome, ...]:
        return tuple(each for each in self.containers if not each.is_am)

    def asked(self, container: ContainerOutcome) -> Resource:
        """The size that was requested of this container."""
        return Resource(AM_MB, 1) if container.is_am else Resource(self.job.memory_mb, self.job.vcores)


def complaints_about(cluster: LabCluster, nodes: Sequence[WorkloadNode], result: WhatIfResult) -> tuple[Complaint, ...]:
    """The complaints about a run on these nodes."""
    ran = _ran(cluster, result)
    return (
        *_of_access(ran),
        *_of_queues(ran),
        *_of_waits(ran, result.until_ms),
        *_of_training(ran),
        *_of_sizes(ran),
        *_of_vcores(ran),
        *_of_machines(nodes, ran),
    )


def _ran(cluster: LabCluster, result: WhatIfResult) -> tuple[_JobRun, ...]:
    rows: dict[int, list[ContainerOutcome]] = {}
    for container in result.containers:
        rows.setdefault(container.application, []).append(container)
    found = []
    for position, (job, app) in enumerate(zip(cluster.jobs, result.applications, strict=True)):
        containers = tuple(rows.get(position, ()))
        refused = app.state == REFUSED or (app.state == FAILED and not containers)
        found.append(_JobRun(job, app.queue, refused, containers))
    return tuple(found)


def _of_access(ran: Sequence[_JobRun]) -> Iterator[Complaint]:
    for each in ran:
        if each.refused and not each.job.is_refused:
            yield Complaint("refused", each.job.user, f"My application {each.job.name} was refused.")
        elif each.job.is_refused and not each.refused:
            text = f"{each.job.user}, who may not submit to {each.job.queue}, could submit {each.job.name} there."
            yield Complaint("admitted", OPERATOR, text)


def _of_queues(ran: Sequence[_JobRun]) -> Iterator[Complaint]:
    moved = [each.job for each in ran if not each.refused and each.queue != f"{ROOT}.{each.job.queue}"]
    if moved:
        text = f"Bills are wrong: {counted(len(moved), 'application')} did not count for the queue that was named."
        yield Complaint("other queue", OPERATOR, text)


def _of_waits(ran: Sequence[_JobRun], until_ms: int) -> Iterator[Complaint]:
    kinds: dict[str, list[_JobRun]] = {}
    for each in ran:
        if not each.refused and each.job.within_s is not None:
            kinds.setdefault(each.job.kind, []).append(each)
    for kind, group in kinds.items():
        waits = [_longest_ms(each, until_ms) for each in group]
        job = group[0].job
        late = sum(wait > 1000 * (job.within_s or 0) for wait in waits)
        if late:
            whose = f"My {job.name} waited" if len(group) == 1 else f"{late} of {len(group)} of our reports waited"
            who = job.user if len(group) == 1 else listed(sorted({each.job.user for each in group}))
            text = f"{whose} up to {duration(max(waits))} for containers. They should come within {job.within_s:g} s."
            yield Complaint(f"late {kind}", who, text)


def _longest_ms(ran: _JobRun, until_ms: int) -> int:
    """The longest wait for the AM, or for a task that it requested at first."""
    am = ran.am
    if am is None or am.allocated_ms is None:
        return until_ms - round(1000 * ran.job.submit_s)
    first = [each for each in ran.tasks if each.requested_ms <= am.allocated_ms + FIRST_MS]
    return max(wait_of(each, until_ms).ms for each in (am, *first))


def _of_training(ran: Sequence[_JobRun]) -> Iterator[Complaint]:
    for each in ran:
        elsewhere = [one for one in each.tasks if one.host and not one.host.startswith(GPU)]
        if each.job.kind == "training" and elsewhere:
            yield Complaint("no GPU", each.job.user, "My training runs ten times as slowly as it should.")


def _of_sizes(ran: Sequence[_JobRun]) -> Iterator[Complaint]:
    allocated = [(each.asked(one), one.resource) for each in ran for one in each.containers if one.host]
    asked_mb = sum(asked.memory_mb for asked, _ in allocated)
    got_mb = sum(got.memory_mb for _, got in allocated)
    if got_mb > LARGER_MAX * asked_mb:
        text = f"The cluster is full, but tasks use {100 * asked_mb / got_mb:.0f} % of the memory that is allocated."
        yield Complaint("larger containers", OPERATOR, text)


def _of_vcores(ran: Sequence[_JobRun]) -> Iterator[Complaint]:
    """Look for a machine whose containers together requested more vcores than it has."""
    peaks: dict[str, int] = {}
    for host in dict.fromkeys(one.host for each in ran for one in each.containers if one.host):
        changes = [
            change
            for each in ran
            for one in each.containers
            if one.host == host
            for change in _changes(one, each.asked(one).vcores)
        ]
        peaks[host] = _peak(changes)
    host, most = max(peaks.items(), key=lambda item: item[1], default=("", 0))
    if most > MACHINE.vcores:
        text = f"The load of {host}, with {MACHINE.vcores} cores, was {most}; everything on it was slow."
        yield Complaint("too many vcores", OPERATOR, text)


def _of_machines(nodes: Sequence[WorkloadNode], ran: Sequence[_JobRun]) -> Iterator[Complaint]:
    offered = nodes[0].resource
    if offered.memory_mb > MACHINE.memory_mb or offered.vcores > MACHINE.vcores:
        text = f"Machines of {MACHINE.memory_mb} MB and {MACHINE.vcores} cores swap: their nodes offer {offered}."
        yield Complaint("overcommitted machines", OPERATOR, text)
    changes = [
        change
        for each in ran
        for one in each.containers
        if one.host
        for change in _changes(one, one.resource.memory_mb)
    ]
    used = _peak(changes) / (len(nodes) * MACHINE.memory_mb)
    if used < PEAK_LEAST:
        text = (
            f"We bought {len(nodes)} machines of {MACHINE.memory_mb // 1024} GB, and never use more than {share(used)}."
        )
        yield Complaint("unused machines", OPERATOR, text)


def _changes(container: ContainerOutcome, amount: int) -> Iterator[tuple[int, int]]:
    """(time, change) of an amount when the container begins, and when it ends."""
    assert container.allocated_ms is not None
    yield container.allocated_ms, amount
    if container.ended_ms is not None:
        yield container.ended_ms, -amount


def _peak(changes: Sequence[tuple[int, int]]) -> int:
    """The largest sum of changes, in the order of their times; what ends at a time makes room for what begins."""
    now = most = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most
