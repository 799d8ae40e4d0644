"""Makes a failing plan smaller while it fails in the same way: delta debugging (Zeller and Hildebrandt, 2002).

First the plan is pinned: what its seed draws is written out. Then parts are left out or made smaller, the largest
steps first, and a step is kept if the run still has the same failure. It ends when no step succeeds, after `runs_max`
runs, or when the runs have had `events_max` events. A plan of 14 faults of which one matters takes about 30 runs.

A run in which applications never end lasts until the plan's limits, a hundred times as long as the smallest one. So
these limits are made shorter in the very first run, except if the failure is that a limit was exceeded.

Which failure it is: the number of a broken invariant, the type of an exception in a core, or the name of a check.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from yarnling.faults.kinds import FaultScope
from yarnling.faults.plan import Expectations, FaultPlan, Plan, WorkPlan
from yarnling.faults.plan_file import PARAMETER_DEFAULTS
from yarnling.faults.plan_text import plan_text
from yarnling.faults.schedule import pinned
from yarnling.faults.verdict import RunVerdict
from yarnling.simulation.runner import DEFAULTS, Options, SimulatedRun, simulate

RUNS_MAX = 400
EVENTS_MAX = 2_000_000
"""The default limits on runs, and on the events of all runs together: about three minutes of one core. The limit is not
one of time, so that a failure becomes the same plan on every machine."""
SECONDS_STEP = 0.1
"""Times are rounded to this."""
WAIT_S = 20.0
"""The time a smaller plan waits for its cluster to recover, and for the end of its applications."""
_ABOUT_WAITING = frozenset({"the cluster recovers", "all resources are released"})
"""The checks that fail if such a wait was too long."""
_INVARIANT = re.compile(r"an invariant is broken: .*?\b(I-\d\d)")
_EXCEPTION = re.compile(r"(\w+) after \d+\.\d+ s: ")

T = TypeVar("T")
Holds = Callable[[Plan], bool]


class Shrunk(Struct, frozen=True):
    """The smallest plan that was found for a failure, its run, and how many runs it took."""

    plan: Plan
    failure: str
    run: SimulatedRun
    runs: int


def failures(run: SimulatedRun) -> list[str]:
    """The failures of the run, the most specific first; empty if it does not."""
    if run.judgement.verdict is not RunVerdict.FAIL:
        return []
    lines = [(check.name, line) for check in run.judgement.checks for line in check.violations]
    found = [match[1] for _, line in lines for match in [_INVARIANT.search(line)] if match]
    found += [match[1] for _, line in lines for match in [_EXCEPTION.match(line)] if match]
    return list(dict.fromkeys([*found, *(name for name, _ in lines)]))


def shrink(
    run: SimulatedRun,
    *,
    options: Options = DEFAULTS,
    runs_max: int = RUNS_MAX,
    events_max: int = EVENTS_MAX,
    report: Callable[[int, Plan], None] = lambda runs, plan: None,
) -> Shrunk:
    """Make the plan of a failing run smaller. `report` gets the number of runs and the smallest plan after each run."""
    trials = _PlanTrials(run, options, (runs_max, events_max), report)
    exact = replace(run.plan, seed=run.seed)
    candidates = [pinned(run.plan, run.seed), exact]
    if trials.failure not in _ABOUT_WAITING:
        candidates = [_hasty(candidates[0]), *candidates]
    plan, before = next(filter(trials.fails, candidates), exact), None
    while plan != before and not trials.is_over:
        before = plan
        for reduce in _REDUCTIONS:
            plan = reduce(plan, trials.fails)
    return Shrunk(plan, trials.failure, trials.smallest, trials.runs)


class _PlanTrials:
    """Runs plans, and remembers those that do not fail in the wanted way."""

    def __init__(
        self, run: SimulatedRun, options: Options, limits: tuple[int, int], report: Callable[[int, Plan], None]
    ) -> None:
        self.runs = self.events = 0
        self.failure = failures(run)[0]
        self.smallest = run
        self._options = options
        self._runs_max, self._events_max = limits
        self._report = report
        self._tried: dict[str, bool] = {}

    @property
    def is_over(self) -> bool:
        return self.runs >= self._runs_max or self.events >= self._events_max

    def fails(self, plan: Plan) -> bool:
        """True if the plan has the failure; False without a run once there were too many."""
        text = plan_text(plan)
        if text not in self._tried:
            if self.is_over:
                return False
            self.runs += 1
            run = simulate(plan, self.smallest.seed, self._options)
            self.events += run.events
            self._tried[text] = self.failure in failures(run)
            if self._tried[text]:
                self.smallest = run
            self._report(self.runs, self.smallest.plan)
        return self._tried[text]


def _fewer_faults(plan: Plan, holds: Holds) -> Plan:
    faults = _fewer(plan.faults, lambda faults: holds(replace(plan, faults=faults)))
    return replace(plan, faults=faults)


def _fewer_works(plan: Plan, holds: Holds) -> Plan:
    works = _fewer(plan.work, lambda works: bool(works) and holds(replace(plan, work=works)))
    return replace(plan, work=works)


def _smaller_works(plan: Plan, holds: Holds) -> Plan:
    works = _each_simplest(plan.work, _SIMPLER_WORKS, lambda works: holds(replace(plan, work=works)))
    return replace(plan, work=works)


def _fewer_applications(work: WorkPlan) -> Iterator[WorkPlan]:
    return (work.model_copy(update={"applications": fewer}) for fewer in _numbers_below(work.applications))


def _fewer_tasks(work: WorkPlan) -> Iterator[WorkPlan]:
    return (work.model_copy(update={"tasks": fewer}) for fewer in _numbers_below(work.tasks))


def _shorter_work(work: WorkPlan) -> Iterator[WorkPlan]:
    for name in ("seconds", "at", *(("every",) if work.applications > 1 else ())):
        for seconds in _seconds_below(getattr(work, name)):
            yield work.model_copy(update={name: seconds})


def _plainer_work(work: WorkPlan) -> Iterator[WorkPlan]:
    updates: tuple[Mapping[str, object], ...] = (
        {"users": work.users[:1]},
        {"keep_containers": False},
        {"attempts": 0},
        {"ignores_term": False},
        {"killed_after": None},
    )
    for update in updates:
        yield work.model_copy(update=update)


_SIMPLER_WORKS = (_fewer_applications, _fewer_tasks, _shorter_work, _plainer_work)


def _smaller_cluster(plan: Plan, holds: Holds) -> Plan:
    return _simplest(plan, (_fewer_nodes, _plainer_cluster), holds)


def _fewer_nodes(plan: Plan) -> Iterator[Plan]:
    cluster = plan.cluster
    for nodes in _numbers_below(cluster.nodes):
        faults = tuple(_on_fewer_nodes(fault, nodes) for fault in plan.faults)
        fewer = cluster.model_copy(update={"nodes": nodes, "racks": min(cluster.racks, nodes)})
        yield replace(plan, cluster=fewer, faults=faults)


def _plainer_cluster(plan: Plan) -> Iterator[Plan]:
    """Simplify the plan: default settings of the cluster, and no expectations of its own."""
    updates: tuple[Mapping[str, object], ...] = (
        {"racks": 1},
        {"settings": {}},
        {"same_ports": False},
        {"network": False},
    )
    for update in updates:
        yield replace(plan, cluster=plan.cluster.model_copy(update=update))
    yield replace(plan, awaits_work=True)
    expect = Expectations(fence=plan.expect.fence, heal=plan.expect.heal, drain=plan.expect.drain)
    yield replace(plan, expect=expect)


def _on_fewer_nodes(fault: FaultPlan, nodes: int) -> FaultPlan:
    numbers = _node_numbers(fault)
    kept = sorted({(number - 1) % nodes + 1 for number in numbers})
    return replace(fault, node=_joined(kept)) if numbers else replace(fault, count=min(fault.count, nodes))


def _smaller_faults(plan: Plan, holds: Holds) -> Plan:
    faults = _each_simplest(plan.faults, _SIMPLER_FAULTS, lambda faults: holds(replace(plan, faults=faults)))
    return replace(plan, faults=faults)


def _fewer_targets(fault: FaultPlan) -> Iterator[FaultPlan]:
    numbers = _node_numbers(fault)
    if len(numbers) > 1:
        yield from (replace(fault, node=str(number)) for number in numbers)
        yield from (replace(fault, node=_joined([n for n in numbers if n != left])) for left in numbers)


def _plainer_fault(fault: FaultPlan) -> Iterator[FaultPlan]:
    for name in fault.options:
        yield replace(fault, options={**fault.options, name: PARAMETER_DEFAULTS[name]})
    if fault.pick:
        yield replace(fault, pick=0.0)
    yield replace(fault, optional=False)


def _shorter_fault(fault: FaultPlan) -> Iterator[FaultPlan]:
    if fault.kind.has_end:
        yield from (replace(fault, lasts=(lasts, lasts)) for lasts in _seconds_below(fault.lasts[1]))


def _earlier_fault(fault: FaultPlan) -> Iterator[FaultPlan]:
    return (replace(fault, at=(at, at)) for at in _seconds_below(fault.at[1]))


_SIMPLER_FAULTS = (_fewer_targets, _plainer_fault, _shorter_fault, _earlier_fault)


def _hasty(plan: Plan) -> Plan:
    """The plan with a short wait for the end of the run."""
    expect = plan.expect
    waits = {"heal": min(expect.heal, WAIT_S), "drain": min(expect.drain, WAIT_S)}
    return replace(plan, expect=expect.model_copy(update=waits))


def _shorter(plan: Plan, holds: Holds) -> Plan:
    """End the plan with its last fault."""
    ends = [fault.at[1] + fault.lasts[1] for fault in plan.faults]
    lasts = max(SECONDS_STEP, round(max(ends, default=0.0) + SECONDS_STEP, 1))
    shorter = replace(plan, lasts=lasts)
    return shorter if lasts < plan.lasts and holds(shorter) else plan


_REDUCTIONS: tuple[Callable[[Plan, Holds], Plan], ...] = (
    _fewer_faults,
    _fewer_works,
    _smaller_works,
    _smaller_cluster,
    _smaller_faults,
    _shorter,
)


def _fewer(items: tuple[T, ...], holds: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Leave out halves, then quarters, down to single items."""
    size = len(items)
    while size:
        start = 0
        while start < len(items):
            fewer = (*items[:start], *items[start + size :])
            if holds(fewer):
                items = fewer
            else:
                start += size
        size //= 2
    return items


def _each_simplest(
    items: tuple[T, ...], ways: Sequence[Callable[[T], Iterator[T]]], holds: Callable[[tuple[T, ...]], bool]
) -> tuple[T, ...]:
    for index in range(len(items)):
        before, after = items[:index], items[index + 1 :]
        holds_with = partial(_holds_between, before, after, holds)
        items = (*before, _simplest(items[index], ways, holds_with), *after)
    return items


def _holds_between(before: tuple[T, ...], after: tuple[T, ...], holds: Callable[[tuple[T, ...]], bool], one: T) -> bool:
    return holds((*before, one, *after))


def _simplest(item: T, ways: Sequence[Callable[[T], Iterator[T]]], holds: Callable[[T], bool]) -> T:
    """Simplify the item in each of the ways, as long as the plan still fails."""
    for simpler in ways:
        while (found := next((one for one in simpler(item) if one != item and holds(one)), None)) is not None:
            item = found
    return item


def _numbers_below(number: int) -> list[int]:
    return sorted({1, (1 + number) // 2, number - 1} & set(range(1, number)))


def _seconds_below(seconds: float) -> Iterator[float]:
    """Simpler values for a number of seconds: 0, half of it, and itself rounded to fewer digits."""
    for fewer in (0.0, round(seconds / 2, 1), round(seconds, 1)):
        if fewer < seconds or (fewer > seconds and round(seconds, 1) != seconds):
            yield fewer


def _node_numbers(fault: FaultPlan) -> list[int]:
    """The numbers of the fault's nodes; empty if it names none."""
    numbers = [number.strip() for number in fault.node.split(",")]
    is_named = fault.kind.scope is FaultScope.NODE and all(number.isdecimal() for number in numbers)
    return [int(number) for number in numbers] if is_named else []


def _joined(nodes: Sequence[int]) -> str:
    return ", ".join(map(str, nodes))
