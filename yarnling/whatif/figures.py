"""The figures of a simulated workload: what its report shows and its expectations are checked against. Pure.

Containers and applications are summed up for the whole cluster, for each queue (a parent's are those of its leaf
queues), for each user and for each hour in which the containers were requested.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from yarn.settings.scheduler import ROOT
from yarn.times import HOUR_MS
from yarnling.whatif.containers import ContainerOutcome, End
from yarnling.whatif.queue_use import QueueUse, measured_type, queue_uses, samples_by_queue, whole_samples, whole_uses
from yarnling.whatif.result import (
    NOT_SUBMITTED,
    REFUSED,
    ApplicationOutcome,
    NodeCount,
    WaitReason,
    WhatIfResult,
)
from yarnling.whatif.waits import Wait, Waits, WaitTimes, summarize, wait_of
from yarnling.workload.calibration import Calibration
from yarnling.workload.evidence import Evidence

LONGEST_WAITS = 10
LOCALITIES = ("NODE_LOCAL", "RACK_LOCAL", "OFF_SWITCH")
FINISHED, FAILED, KILLED = "FINISHED", "FAILED", "KILLED"
"""The states of an application that ended by itself, of one whose AM failed, and of one that was killed."""


class LostWork(Struct, frozen=True):
    """Work of containers that ended early: how many, how long they had run, and that multiplied by their memory."""

    containers: int = 0
    container_ms: int = 0
    mb_ms: int = 0


class GroupFigures(Struct, frozen=True):
    """The figures of a queue, of a user or of the cluster.

    `applications`: submitted before the end; `not_submitted`: those whose time had not come, which no other figure
    counts; `refused`: by the ResourceManager, at their submission or before their AM was requested; `finished`: ended
    by themselves; `failed_applications`: ended in another way, and were not refused. `with_deadline`, `missed`:
    how many of those submitted have a deadline, and missed it. `all_with_deadline`, `undecided`: how many, also of
    those not submitted, have one, and had neither kept nor missed it at the end. `waits` is about all containers,
    `am_waits` about those of AMs. `done_mb_ms`: memory times run time of the containers that completed. `locality`:
    {NODE_LOCAL...: containers}, of those that wanted a host. `surplus`: allocated and released unused, not among
    `containers`. `lost`: with preempted containers; `lost_with_nodes`: with containers of nodes that were lost or
    decommissioned, and of AMs on them. `node_ms`: how long machines were there, all together; None for a part of the
    cluster. `mean_run_ms`: from the submission of applications to their end, of those that
    finished; None if none.
    """

    name: str
    applications: int
    not_submitted: int
    refused: int
    finished: int
    failed_applications: int
    with_deadline: int
    missed: int
    all_with_deadline: int
    undecided: int
    am_limit_wait_ms: int
    user_limit_wait_ms: int
    containers: int
    completed: int
    failed: int
    done_mb_ms: int
    waits: Waits
    am_waits: Waits
    lost: LostWork
    locality: dict[str, int]
    surplus: int = 0
    lost_with_nodes: LostWork = LostWork()
    node_ms: int | None = None
    mean_run_ms: float | None = None


class NodeFigures(Struct, frozen=True):
    """Machines over time. `node_ms`: how long each was there, all together; `least`, `most`: of them at any time."""

    node_ms: int
    least: int
    most: int

    @property
    def changes(self) -> bool:
        """True if there were not as many all the time."""
        return self.least != self.most


class HourFigures(Struct, frozen=True):
    """Containers requested in one hour, counted from the start of the workload, and preemptions in it."""

    hour: int
    waits: Waits
    preempted: int


class LongestWait(Struct, frozen=True):
    """A wait among the longest, and why it was so long."""

    wait: Wait
    requested_ms: int
    application: str
    queue: str
    user: str
    is_am: bool
    explanation: str


class Figures(Struct, frozen=True):
    """All figures of one run. `queues` has leaf queues in the order of the tree, `parents` all other queues but the
    root; `users` the longest p95 wait first. `measured`: the resource type of all amounts of queue use. `uses_of`
    {resource type: the use of each queue in each partition, of that type}, `whole_uses_of` {resource type: {queue: its
    use in all partitions together}}. `first_refusal`: what the ResourceManager said of the first refused application.
    `calibration`, `evidence`: of the workload.
    """

    until_ms: int
    measured: str
    cluster: GroupFigures
    queues: tuple[GroupFigures, ...]
    parents: tuple[GroupFigures, ...]
    users: tuple[GroupFigures, ...]
    hours: tuple[HourFigures, ...]
    uses_of: dict[str, tuple[QueueUse, ...]]
    whole_uses_of: dict[str, dict[str, QueueUse]]
    longest: tuple[LongestWait, ...]
    first_refusal: str
    wait_reasons: tuple[WaitReason, ...] = ()
    nodes: NodeFigures = NodeFigures(0, 0, 0)
    calibration: Calibration | None = None
    evidence: tuple[Evidence, ...] = ()

    def measured_in(self, measured: str) -> Figures:
        """These figures with amounts of queue use of another resource type."""
        return replace(self, measured=measured)

    @property
    def uses(self) -> tuple[QueueUse, ...]:
        """The use of each queue in each partition, of the measured type; nothing if the cluster lacks that type."""
        return self.uses_of.get(self.measured, ())

    @property
    def use_by_queue(self) -> dict[str, QueueUse]:
        """{queue: its use in all partitions together}."""
        return self.whole_uses_of.get(self.measured, {})

    @property
    def cluster_use(self) -> QueueUse | None:
        """The use of the root queue, None without samples."""
        return self.use_by_queue.get(ROOT)

    @property
    def finished_per_hour(self) -> float:
        """Throughput: applications that finished, for each hour of the simulation."""
        return self.cluster.finished * HOUR_MS / self.until_ms if self.until_ms else 0.0


def figures_of(result: WhatIfResult) -> Figures:
    """Compute the figures of a result."""
    outcomes = _Outcomes(result)
    types, until_ms = result.cluster.amounts(), result.until_ms
    by_queue = samples_by_queue(result)
    whole = whole_samples(by_queue)
    leaves = _leaf_queues(result)
    parents = [queue for queue in whole if queue not in (ROOT, *leaves)]
    nodes = node_figures(result)
    users = [outcomes.group(name, indexes) for name, indexes in _by(result.applications, "user").items()]
    queues = _by(result.applications, "queue")
    return Figures(
        until_ms=until_ms,
        measured=measured_type(result),
        cluster=replace(outcomes.group("cluster", range(len(result.applications))), node_ms=nodes.node_ms),
        queues=tuple(outcomes.group(name, queues.get(name, [])) for name in leaves),
        parents=tuple(outcomes.group(name, _below(name, queues)) for name in parents),
        users=tuple(sorted(users, key=lambda user: (-_p95_ms(user), user.name))),
        hours=outcomes.hours(),
        uses_of={name: queue_uses(by_queue, name, until_ms) for name in types},
        whole_uses_of={name: whole_uses(whole, name, until_ms) for name in types},
        longest=outcomes.longest(),
        first_refusal=outcomes.first_refusal(),
        wait_reasons=result.wait_reasons,
        nodes=nodes,
        calibration=result.calibration,
        evidence=result.evidence,
    )


def node_figures(result: WhatIfResult) -> NodeFigures:
    """Compute the figures of the machines; without counts all were there all the time."""
    counts = result.node_counts or (NodeCount(0, result.nodes),)
    ends = [*(each.time_ms for each in counts[1:]), result.until_ms]
    node_ms = sum(each.nodes * max(end_ms - each.time_ms, 0) for each, end_ms in zip(counts, ends, strict=True))
    numbers = [each.nodes for each in counts]
    return NodeFigures(node_ms, min(numbers), max(numbers))


class _Tally:
    """Sums over containers, and their waits."""

    def __init__(self) -> None:
        self.containers = self.done_mb_ms = 0
        self.lost_ms: Counter[End] = Counter()
        self.lost_mb_ms: Counter[End] = Counter()
        self.ends: Counter[End | None] = Counter()
        self.localities: Counter[str] = Counter()
        self.waits, self.am_waits = WaitTimes(), WaitTimes()

    def add(self, container: ContainerOutcome, wait: Wait) -> None:
        self.containers += 1
        self.ends[container.end] += 1
        self.localities[container.locality] += 1
        self.waits.add(wait)
        if container.is_am:
            self.am_waits.add(wait)
        if container.end is End.COMPLETED:
            self.done_mb_ms += _ran_ms(container) * container.resource.memory_mb
        elif container.end in (End.PREEMPTED, End.LOST):
            self.lost_ms[container.end] += _ran_ms(container)
            self.lost_mb_ms[container.end] += _ran_ms(container) * container.resource.memory_mb

    def add_all(self, other: _Tally) -> None:
        self.containers += other.containers
        self.lost_ms.update(other.lost_ms)
        self.lost_mb_ms.update(other.lost_mb_ms)
        self.done_mb_ms += other.done_mb_ms
        self.ends.update(other.ends)
        self.localities.update(other.localities)
        self.waits.add_all(other.waits)
        self.am_waits.add_all(other.am_waits)

    def lost(self, end: End) -> LostWork:
        """The work of the containers with that end."""
        return LostWork(self.ends[end], self.lost_ms[end], self.lost_mb_ms[end])


class _Outcomes:
    """The outcomes of a result, summed up by application and by hour in one pass over the containers.

    `_tallies` lacks applications without containers.
    """

    def __init__(self, result: WhatIfResult) -> None:
        self._result = result
        self._tallies: dict[int, _Tally] = defaultdict(_Tally)
        self._waits_of_hour: dict[int, WaitTimes] = defaultdict(WaitTimes)
        self._preempted_in_hour: Counter[int] = Counter()
        for container in result.containers:
            wait = wait_of(container, result.until_ms)
            self._tallies[container.application].add(container, wait)
            self._waits_of_hour[container.requested_ms // HOUR_MS].add(wait)
            if container.end is End.PREEMPTED and container.ended_ms is not None:
                self._preempted_in_hour[container.ended_ms // HOUR_MS] += 1

    def group(self, name: str, applications: Iterable[int]) -> GroupFigures:
        """The figures of some applications, given by their positions."""
        listed, refused, tally = [], 0, _Tally()
        for position in applications:
            listed.append(self._result.applications[position])
            refused += self._is_refused(position)
            if position in self._tallies:
                tally.add_all(self._tallies[position])
        apps = [app for app in listed if app.state != NOT_SUBMITTED]
        deadlines = [_misses_deadline(app, self._result.until_ms) for app in apps if app.deadline_ms is not None]
        return GroupFigures(
            name=name,
            applications=len(apps),
            not_submitted=len(listed) - len(apps),
            refused=refused,
            finished=sum(app.state == FINISHED for app in apps),
            failed_applications=sum(app.state in (FAILED, KILLED, REFUSED) for app in apps) - refused,
            with_deadline=len(deadlines),
            missed=sum(deadlines),
            all_with_deadline=sum(app.deadline_ms is not None for app in listed),
            undecided=sum(_is_undecided(app, self._result.until_ms) for app in listed),
            am_limit_wait_ms=sum(app.am_limit_wait_ms for app in apps),
            user_limit_wait_ms=sum(app.user_limit_wait_ms for app in apps),
            containers=tally.containers,
            completed=tally.ends[End.COMPLETED],
            failed=tally.ends[End.FAILED],
            done_mb_ms=tally.done_mb_ms,
            waits=summarize(tally.waits),
            am_waits=summarize(tally.am_waits),
            lost=tally.lost(End.PREEMPTED),
            lost_with_nodes=tally.lost(End.LOST),
            locality={name: tally.localities[name] for name in LOCALITIES if tally.localities[name]},
            surplus=sum(app.surplus for app in apps),
            mean_run_ms=_mean_run_ms(apps),
        )

    def _is_refused(self, position: int) -> bool:
        """True if the ResourceManager refused the submission, or failed the application before it requested its AM.

        The latter is how it answers a submission to a queue that does not exist, or that may have no more applications.
        """
        state = self._result.applications[position].state
        return state == REFUSED or (state == FAILED and position not in self._tallies)

    def first_refusal(self) -> str:
        """The ResourceManager's words about the first application that it refused; "" if it refused none."""
        positions = range(len(self._result.applications))
        return next((self._result.applications[one].diagnostics for one in positions if self._is_refused(one)), "")

    def hours(self) -> tuple[HourFigures, ...]:
        """The figures of each hour from the first to the last with a request or a preemption."""
        waits, preempted = self._waits_of_hour, self._preempted_in_hour
        last = max((*waits, *preempted), default=-1)
        return tuple(
            HourFigures(hour, summarize(waits.get(hour, WaitTimes())), preempted[hour]) for hour in range(last + 1)
        )

    def longest(self) -> tuple[LongestWait, ...]:
        """The longest waits that were explained, longest first."""
        found = []
        for long in self._result.longest_waits:
            container = self._result.containers[long.container]
            app = self._result.applications[container.application]
            wait, at_ms = wait_of(container, self._result.until_ms), container.requested_ms
            found.append(
                LongestWait(wait, at_ms, app.name, app.queue, app.user, container.is_am, explanation=long.explanation)
            )
        return tuple(sorted(found, key=lambda each: -each.wait.ms)[:LONGEST_WAITS])


def _mean_run_ms(applications: Iterable[ApplicationOutcome]) -> float | None:
    """The mean time from submission to end of the applications that finished; None without any."""
    finished = [app for app in applications if app.state == FINISHED]
    times = [app.ended_ms - app.submitted_ms for app in finished if app.ended_ms is not None]
    return sum(times) / len(times) if times else None


def _leaf_queues(result: WhatIfResult) -> list[str]:
    """The leaf queues of the tree, then the names of queues that refused their applications, or no longer exist."""
    return [*dict.fromkeys((*result.leaf_queues, *sorted({app.queue for app in result.applications})))]


def _by(applications: Iterable[ApplicationOutcome], field: str) -> dict[str, list[int]]:
    positions: dict[str, list[int]] = {}
    for position, app in enumerate(applications):
        positions.setdefault(getattr(app, field), []).append(position)
    return positions


def _below(parent: str, queues: dict[str, list[int]]) -> list[int]:
    return [position for queue, found in queues.items() if queue.startswith(f"{parent}.") for position in found]


def _p95_ms(group: GroupFigures) -> int:
    return group.waits.p95.ms if group.waits.p95 else 0


def _misses_deadline(app: ApplicationOutcome, until_ms: int) -> bool:
    """True if the application ended too late, or had not ended when its deadline passed."""
    assert app.deadline_ms is not None
    ended_ms = until_ms if app.ended_ms is None else app.ended_ms
    is_late = ended_ms - app.submitted_ms > app.deadline_ms
    return is_late or (app.ended_ms is not None and app.state != FINISHED)


def _is_undecided(app: ApplicationOutcome, until_ms: int) -> bool:
    """True if the application has a deadline that it may still keep or miss after the end."""
    if app.deadline_ms is None or app.ended_ms is not None:
        return False
    return app.state == NOT_SUBMITTED or not _misses_deadline(app, until_ms)


def _ran_ms(container: ContainerOutcome) -> int:
    if container.allocated_ms is None or container.ended_ms is None:
        return 0
    return container.ended_ms - container.allocated_ms
