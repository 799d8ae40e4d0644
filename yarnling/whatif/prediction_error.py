"""The error of a prediction: how far simulated runs are from the run that was recorded. Pure.

    error = prediction_error(recorded, [run_times(result) for result in results])

Applications are compared by name, and only where both runs have the time in question, so that all figures are about
the same applications. With several simulated runs, of different seeds, a figure is their mean. Percentiles are by the
nearest rank, as in all reports. Queues have the names of the first simulated run: some releases of Hadoop report a
queue without its path.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any

from msgspec import Struct

from yarn.times import HOUR_MS, duration, short_number
from yarnling.report.listing import Listing
from yarnling.report.wording import short_names
from yarnling.whatif.containers import ContainerOutcome
from yarnling.whatif.result import WhatIfResult
from yarnling.workload.run_times import ALL_QUEUES, ApplicationTimes, RunTimes, Span, UseOverTime

MB_MS_OF_A_GB_HOUR = 1024 * HOUR_MS


class Compared(Struct, frozen=True):
    """A figure of the recorded run, and the mean of the simulated ones. `spread`: the most of these less the least."""

    recorded: float
    simulated: float
    spread: float = 0.0

    @property
    def error(self) -> float | None:
        """The difference as a fraction of the recorded figure, negative for too little; None if that figure is 0."""
        return (self.simulated - self.recorded) / self.recorded if self.recorded else None


class GroupError(Struct, frozen=True):
    """The error for the applications of a queue, or for all. Times in ms, from submission; None: not recorded.

    `name`: the queue's path; ALL_QUEUES: all. `applications`: those whose end is compared. `use_points`: the mean
    difference of the memory in use, in percent of the cluster's memory.
    """

    name: str
    applications: int
    run_mean_ms: Compared | None
    run_p95_ms: Compared | None
    am_wait_p50_ms: Compared | None
    am_wait_p95_ms: Compared | None
    task_wait_p50_ms: Compared | None
    task_wait_p95_ms: Compared | None
    mb_ms: Compared | None
    use_points: float | None


class PredictionError(Struct, frozen=True):
    """The error of a prediction. `makespan_ms`: from the first submission to the last end.

    `application_p50`, `application_p90`: percentiles of the error of one application's run time, a fraction of the
    recorded one, without sign. `only_recorded`: applications with a recorded end that a simulated run lacks, because it
    has no such application or ended before; they are in no figure. `runs`: how many were simulated.
    """

    whole: GroupError
    queues: tuple[GroupError, ...]
    makespan_ms: Compared | None
    application_p50: float | None
    application_p90: float | None
    only_recorded: int
    runs: int


_Pair = tuple[ApplicationTimes, tuple[ApplicationTimes, ...]]
"""An application of the recorded run, and in each simulated run."""
_Time = Callable[[ApplicationTimes], int | None]


def prediction_error(recorded: RunTimes, simulated: Sequence[RunTimes]) -> PredictionError:
    """Compare a recorded run with at least one simulated run."""
    pairs = list(_pairs(recorded, simulated))
    whole = [pair for pair in pairs if _have(pair, _ended)]
    differences = [
        abs(_known(each.run_ms) - _known(one.run_ms)) / _known(one.run_ms)
        for one, others in whole
        for each in others
        if one.run_ms
    ]
    by_queue: dict[str, list[_Pair]] = defaultdict(list)
    for pair in pairs:
        by_queue[pair[1][0].queue].append(pair)
    recorded_names = {ALL_QUEUES: ALL_QUEUES} | {name: found[0][0].queue for name, found in by_queue.items()}

    def use_points(name: str) -> float | None:
        return _use_points(recorded, recorded_names[name], simulated, name)

    return PredictionError(
        _group(ALL_QUEUES, pairs, use_points(ALL_QUEUES)),
        tuple(_group(name, by_queue[name], use_points(name)) for name in sorted(by_queue)),
        _makespan(whole),
        percentile(differences, 0.5),
        percentile(differences, 0.9),
        sum(one.ended_ms is not None for one in recorded.applications) - len(whole),
        len(simulated),
    )


def run_times(result: WhatIfResult) -> RunTimes:
    """The times of a simulated run. Containers that were released unused are in the memory of an application, and not
    in the use over time.
    """
    by_application: dict[int, list[ContainerOutcome]] = defaultdict(list)
    spans: dict[str, list[Span]] = defaultdict(list)
    for each in result.containers:
        by_application[each.application].append(each)
        if (span := _span(each, result.until_ms)) is not None:
            spans[ALL_QUEUES].append(span)
            spans[result.applications[each.application].queue].append(span)
    applications = []
    for position, app in enumerate(result.applications):
        containers = by_application[position]
        ams = [each.allocated_ms for each in containers if each.is_am and each.allocated_ms is not None]
        held = [span for each in containers if (span := _span(each, result.until_ms)) is not None]
        times = ApplicationTimes(
            name=app.name,
            queue=app.queue,
            submitted_ms=app.submitted_ms,
            am_allocated_ms=min(ams, default=None),
            am_started_ms=app.am_started_ms,
            ended_ms=app.ended_ms,
            mb_ms=app.memory_mb_s * 1000 or sum((end_ms - start_ms) * mb for start_ms, end_ms, mb in held),
            task_waits_ms=tuple(
                each.allocated_ms - each.requested_ms
                for each in containers
                if not each.is_am and each.allocated_ms is not None
            ),
        )
        applications.append(times)
    use = {queue: UseOverTime.of_containers(held) for queue, held in spans.items()}
    return RunTimes(tuple(applications), use, result.cluster.memory_mb)


def percentile(values: Iterable[float], share: float) -> float | None:
    """The least value that this share of all values does not exceed; None without values."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] if ordered else None


def error_table(error: PredictionError) -> Listing:
    """A table of the error: the cluster, then its queues."""
    listing = Listing("OF", "MEASURE", "RECORDED", "SIMULATED", "ERROR")
    names = short_names(group.name for group in error.queues)
    for scope, measure, compared, unit in _figures(error):
        of_error = "-" if compared.error is None else f"{100 * compared.error:+.1f} %"
        listing.add_row(
            names.get(scope, "all"), measure, _text(compared.recorded, unit), _text(compared.simulated, unit), of_error
        )
    for group in (error.whole, *error.queues):
        if group.use_points is not None:
            of_use = ("", "", f"{group.use_points:.1f} points")
            listing.add_row(names.get(group.name, "all"), "use over time, mean difference", *of_use)
    for measure, share in (("p50", error.application_p50), ("p90", error.application_p90)):
        if share is not None:
            listing.add_row("all", f"{measure} error of one application", "", "", f"{100 * share:.1f} %")
    return listing


def plain_error(error: PredictionError) -> dict[str, Any]:
    """The error as JSON: fractions and ms; `error` is None where the recorded figure is 0."""

    def of(compared: Compared | None) -> dict[str, float | None] | None:
        if compared is None:
            return None
        values = {name: getattr(compared, name) for name in ("recorded", "simulated", "spread", "error")}
        return {name: None if value is None else round(value, 6) for name, value in values.items()}

    def of_group(group: GroupError) -> dict[str, Any]:
        named = {name: getattr(group, name) for name in group.__struct_fields__}
        return {name: of(value) if isinstance(value, Compared) else value for name, value in named.items()}

    return {
        "makespan_ms": of(error.makespan_ms),
        "application_error_p50": error.application_p50,
        "application_error_p90": error.application_p90,
        "all": of_group(error.whole),
        "queues": [of_group(group) for group in error.queues],
        "only_recorded": error.only_recorded,
        "runs": error.runs,
    }


_MEASURES = {
    "run_mean_ms": "mean run time",
    "run_p95_ms": "p95 run time",
    "am_wait_p50_ms": "p50 AM wait",
    "am_wait_p95_ms": "p95 AM wait",
    "task_wait_p50_ms": "p50 task wait",
    "task_wait_p95_ms": "p95 task wait",
    "mb_ms": "memory",
}
"""{field of GroupError: its name in a table}."""


def _figures(error: PredictionError) -> Iterator[tuple[str, str, Compared, str]]:
    """The scope, name, values and field of each figure."""
    if error.makespan_ms is not None:
        yield ALL_QUEUES, "makespan", error.makespan_ms, "makespan_ms"
    for group in (error.whole, *error.queues):
        for field, measure in _MEASURES.items():
            if (compared := getattr(group, field)) is not None:
                yield group.name, measure, compared, field


def _text(value: float, field: str) -> str:
    return f"{short_number(value / MB_MS_OF_A_GB_HOUR)} GB-hours" if field == "mb_ms" else duration(value)


def _pairs(recorded: RunTimes, simulated: Sequence[RunTimes]) -> Iterator[_Pair]:
    """The applications of all runs. Those of one name are paired in the order of their submission."""
    known = [dict(_numbered(run)) for run in simulated]
    for key, one in _numbered(recorded):
        if all(key in run for run in known):
            yield one, tuple(run[key] for run in known)


def _numbered(run: RunTimes) -> Iterator[tuple[tuple[str, int], ApplicationTimes]]:
    seen: Counter[str] = Counter()
    for each in sorted(run.applications, key=lambda application: application.submitted_ms):
        seen[each.name] += 1
        yield (each.name, seen[each.name]), each


def _group(name: str, pairs: Sequence[_Pair], use_points: float | None) -> GroupError:
    run, am_wait = _columns(pairs, _ended), _columns(pairs, lambda each: each.am_wait_ms)
    memory = _columns([pair for pair in pairs if _have(pair, _ended)], lambda each: each.mb_ms)
    waits = _task_waits(pairs)
    return GroupError(
        name,
        len(run[0]) if run else 0,
        _compared(run, fmean),
        _compared(run, _p95),
        _compared(am_wait, _p50),
        _compared(am_wait, _p95),
        _compared(waits, _p50),
        _compared(waits, _p95),
        _compared(memory, sum),
        use_points,
    )


_Columns = list[list[int]]
"""The values of the recorded run, then of each simulated run; empty if there are none."""


def _columns(pairs: Sequence[_Pair], of: _Time) -> _Columns:
    rows = [[_known(of(each)) for each in (one, *others)] for one, others in pairs if _have((one, others), of)]
    return [list(column) for column in zip(*rows, strict=True)]


def _task_waits(pairs: Sequence[_Pair]) -> _Columns:
    rows = [(one, *others) for one, others in pairs]
    columns = [[wait for each in column for wait in each.task_waits_ms] for column in zip(*rows, strict=True)]
    return columns if all(columns) else []


def _compared(columns: _Columns, of: Callable[[Sequence[int]], float]) -> Compared | None:
    if not columns:
        return None
    recorded, *simulated = (of(column) for column in columns)
    return Compared(recorded, fmean(simulated), max(simulated) - min(simulated))


def _p50(values: Sequence[int]) -> float:
    return percentile(values, 0.5) or 0.0


def _p95(values: Sequence[int]) -> float:
    return percentile(values, 0.95) or 0.0


def _makespan(pairs: Sequence[_Pair]) -> Compared | None:
    rows = [(one, *others) for one, others in pairs]
    lasted = [
        max(_known(each.ended_ms) for each in column) - min(each.submitted_ms for each in column)
        for column in zip(*rows, strict=True)
    ]
    return Compared(lasted[0], fmean(lasted[1:]), max(lasted[1:]) - min(lasted[1:])) if lasted else None


def _use_points(recorded: RunTimes, recorded_name: str, simulated: Sequence[RunTimes], name: str) -> float | None:
    """The mean difference of use over time, while any run uses memory and it is recorded; None if it never is."""
    of_queue = recorded.use.get(recorded_name)
    if of_queue is None or not of_queue.times_ms or not recorded.cluster_mb:
        return None
    step_ms = max(recorded.step_ms, *(run.step_ms for run in simulated))
    nothing = UseOverTime((), ())
    curves = [run.use.get(name, nothing) for run in simulated]
    until_ms = max(curve.times_ms[-1] for curve in (of_queue, *curves) if curve.times_ms)
    if recorded.until_ms is not None:
        until_ms = min(until_ms, recorded.until_ms)
    means = of_queue.means(step_ms, until_ms)
    differences = [
        abs(mine - its) for curve in curves for mine, its in zip(means, curve.means(step_ms, until_ms), strict=True)
    ]
    return 100 * fmean(differences) / recorded.cluster_mb if differences else 0.0


def _span(container: ContainerOutcome, until_ms: int) -> Span | None:
    if container.allocated_ms is None:
        return None
    return container.allocated_ms, container.ended_ms or until_ms, container.resource.memory_mb


def _ended(times: ApplicationTimes) -> int | None:
    return times.run_ms


def _have(pair: _Pair, of: _Time) -> bool:
    """True if the time is known in all runs."""
    return all(of(each) is not None for each in (pair[0], *pair[1]))


def _known(value: int | None) -> int:
    assert value is not None, "only times that all runs have are compared"
    return value
