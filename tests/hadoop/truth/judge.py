"""Judges predictions: simulates the workload of each recorded true run, compares, and writes the tables of the docs.

    scripts/predictions            simulates three seeds of each run and writes docs/fidelity.md and the sentence of
                                   reports, yarnling/whatif/judged.py (a minute a run)
    scripts/predictions --check    only says whether both are what it would write

The floor of a figure is the difference between two recordings of the same true run: no prediction can be asked to be
nearer than that.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from statistics import fmean

from msgspec import Struct

from tests.hadoop.truth.recording import directories, recorded_times
from tests.hadoop.truth.runs import CONFIGURATIONS, RUNS, TrueRun, workload_of
from yarn.times import HOUR_MS, duration
from yarnling.report.wording import short_names
from yarnling.whatif.prediction_error import Compared, GroupError, PredictionError, prediction_error, run_times
from yarnling.whatif.run import RunOptions, run_what_if, what_if_configuration
from yarnling.workload.model import NodeSchedule
from yarnling.workload.run_times import RunTimes

HERE = CONFIGURATIONS.parent
PAGE = HERE.parents[2] / "docs" / "fidelity.md"
SENTENCE = HERE.parents[2] / "yarnling" / "whatif" / "judged.py"
BEGIN, END = "<!-- true runs: begin -->", "<!-- true runs: end -->"
SEEDS = (1, 2, 3)
BEFORE, AFTER = "overload-before", "overload-after"


class Verdict(Struct, frozen=True):
    """A run: the errors of the prediction, one for each of its recordings, and the floor; None with one recording."""

    run: TrueRun
    errors: tuple[PredictionError, ...]
    floor: PredictionError | None


def simulated_times(run: TrueRun, seed: int) -> RunTimes:
    """The times that a simulation of the run predicts."""
    conf = what_if_configuration(CONFIGURATIONS / run.configuration, run.simulated_settings).conf
    options = RunOptions(seed=seed, until_ms=HOUR_MS)
    return run_times(run_what_if(conf, workload_of(run), run.nodes, options, schedule=NodeSchedule(run.losses)))


def recordings_of(run: TrueRun) -> list[RunTimes]:
    """The recorded times of a run."""
    workload, cluster_mb = workload_of(run), sum(node.resource.memory_mb for node in run.nodes)
    return [recorded_times(directory, workload, cluster_mb) for directory in directories(run)]


def judge(run: TrueRun, recorded: Sequence[RunTimes], simulated: Sequence[RunTimes]) -> Verdict:
    """Compare each recording with all simulations, and the first two recordings with each other."""
    floor = prediction_error(recorded[0], recorded[1:2]) if len(recorded) > 1 else None
    return Verdict(run, tuple(prediction_error(each, simulated) for each in recorded), floor)


_Of = Callable[[PredictionError], Compared | float | None]


def _whole(field: str) -> _Of:
    return lambda error: getattr(error.whole, field)


FIGURES: dict[str, _Of] = {
    "makespan": lambda error: error.makespan_ms,
    "mean run time": _whole("run_mean_ms"),
    "AM wait p95": _whole("am_wait_p95_ms"),
    "task wait p50": _whole("task_wait_p50_ms"),
    "task wait p95": _whole("task_wait_p95_ms"),
    "use over time": _whole("use_points"),
    "one application": lambda error: error.application_p50,
}
"""{column: its figure}. Points of use and the error of one application have no sign."""


def value_of(verdict: Verdict, of: _Of) -> float | None:
    """The error of a figure, in percent or points: the mean over all recordings."""
    values = [value for error in verdict.errors if (value := _percent(of(error))) is not None]
    return fmean(values) if values else None


def floor_of(verdict: Verdict, of: _Of) -> float | None:
    """The difference between two recordings, in percent or points; None with one recording."""
    value = None if verdict.floor is None else _percent(of(verdict.floor))
    return None if value is None else abs(value)


def _percent(figure: Compared | float | None) -> float | None:
    if isinstance(figure, Compared):
        return None if figure.error is None else 100 * figure.error
    return figure


def tables(verdicts: Sequence[Verdict]) -> list[str]:
    """The lines of all tables, in Markdown."""
    return [*_figures_table(verdicts), "", *_queues_table(verdicts), *_change_table(verdicts)]


def _figures_table(verdicts: Sequence[Verdict]) -> Iterator[str]:
    yield _row("run", *FIGURES)
    yield _row(*["---"] * (1 + len(FIGURES)))
    for each in verdicts:
        cells = []
        for name, of in FIGURES.items():
            unsigned, scale = name in ("use over time", "one application"), 100 if name == "one application" else 1
            cells.append(_cell(value_of(each, of), floor_of(each, of), scale, has_sign=not unsigned))
        yield _row(f"{each.run.name}: {each.run.about}", *cells)


def _queues_table(verdicts: Sequence[Verdict]) -> Iterator[str]:
    wait, run_time = "AM wait p95, true", "run time, true"
    yield _row("run", "queue", wait, "predicted (seeds)", "error", run_time, "predicted (seeds)", "error")
    yield _row(*["---"] * 8)
    for each in verdicts:
        names = short_names(group.name for group in each.errors[0].queues)
        for position, group in enumerate(each.errors[0].queues):
            cells: list[str] = []
            for field in ("am_wait_p95_ms", "run_mean_ms"):
                of = partial(_of_queue, position=position, field=field)
                found = [compared for error in each.errors if (compared := of(error)) is not None]
                true_ms, simulated_ms = (
                    fmean(values) if values else 0
                    for values in ([one.recorded for one in found], [one.simulated for one in found])
                )
                error = _cell(value_of(each, of), floor_of(each, of))
                seeds = duration(round(max((one.spread for one in found), default=0)))
                cells += [duration(round(true_ms)), f"{duration(round(simulated_ms))} ({seeds})", error]
            yield _row(each.run.name, names[group.name], *cells)


def _of_queue(error: PredictionError, *, position: int, field: str) -> Compared | None:
    group: GroupError = error.queues[position]
    found: Compared | None = getattr(group, field)
    return found


def _change_table(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """The change of each queue's mean run time, true and predicted, if both sides are recorded."""
    sides = {each.run.name: each for each in verdicts}
    if not {BEFORE, AFTER} <= sides.keys():
        return
    yield from ("", _row("queue", "change of its mean run time, true", "predicted"), _row(*["---"] * 3))
    before, after = (sides[name].errors for name in (BEFORE, AFTER))
    for position, group in enumerate(before[0].queues):
        pairs = [[error.queues[position].run_mean_ms for error in side] for side in (before, after)]
        true, predicted = (
            [fmean(getattr(one, field) for one in side if one) for side in pairs] for field in ("recorded", "simulated")
        )
        changes = (f"{100 * (new / old - 1):+.0f} %" for old, new in (true, predicted))
        yield _row(short_names([group.name])[group.name], *changes)


def _cell(value: float | None, floor: float | None, scale: float = 1, *, has_sign: bool = True) -> str:
    """An error with its floor in brackets."""
    if value is None:
        return "-"
    shown = f"{scale * value:+.1f}" if has_sign else f"{scale * value:.1f}"
    return f"{shown} ({'-' if floor is None else f'{scale * floor:.1f}'})"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def sentence(verdicts: Sequence[Verdict]) -> tuple[str, str]:
    """The two lines of a sentence that every report has."""
    makespan, mean = (
        max(abs(value_of(each, FIGURES[name]) or 0) for each in verdicts) for name in ("makespan", "mean run time")
    )
    runs, its = ("true run", "its") if len(verdicts) == 1 else ("true runs", "their")
    return (
        f"Simulations of {len(verdicts)} {runs} of Hadoop's ResourceManager were at most {makespan:.1f} % off in {its} "
        "makespan and ",
        f"{mean:.1f} % in {its} mean run time (docs/fidelity.md, How right is a prediction?).",
    )


def module_with(text: str, lines: tuple[str, str]) -> str:
    """The module of the sentence, with this one."""
    before, _, rest = text.partition("JUDGED = (\n")
    after = rest.partition("\n)\n")[2]
    quoted = "".join(f'    "{line}"\n' for line in lines)
    return f"{before}JUDGED = (\n{quoted})\n{after}"


def _judged(run: TrueRun, pool: ProcessPoolExecutor) -> Verdict:
    print(f"{run.name}: simulating {len(SEEDS)} seeds", file=sys.stderr)
    return judge(run, recordings_of(run), list(pool.map(partial(simulated_times, run), SEEDS)))


def page_with(text: str, lines: Iterable[str]) -> str:
    """The page with these lines between its marks."""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return "\n".join((f"{before}{BEGIN}", "", *lines, "", f"{END}{after}"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/predictions", description="Compare simulations with true runs.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the tables are others")
    options = parser.parse_args()
    with ProcessPoolExecutor(2) as pool:
        verdicts = [_judged(run, pool) for run in RUNS if directories(run)]
    lines = tables(verdicts)
    print("\n".join(lines))
    is_current = True
    for path, made in (
        (PAGE, lambda text: page_with(text, lines)),
        (SENTENCE, lambda text: module_with(text, sentence(verdicts))),
    ):
        text = path.read_text(encoding="utf-8")
        is_current &= made(text) == text
        if not options.check:
            path.write_text(made(text), encoding="utf-8")
    return int(options.check and not is_current)


if __name__ == "__main__":
    sys.exit(main())
