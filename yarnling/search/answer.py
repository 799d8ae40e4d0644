"""The answer of a search, for people and for programs, and its files: the changed configuration, a diff, a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from msgspec import Struct

from wire.files.full_disk import full_disk_named
from yarn.settings.scheduler import PREFIX
from yarnling.report.page import Table
from yarnling.report.wording import counted
from yarnling.search.changed_files import write_changed
from yarnling.search.front import Contradiction, Unmet, contradictions, front, subject_in_words, unmet
from yarnling.search.goals import Goals
from yarnling.search.search import SearchOutcome
from yarnling.search.space import Settings, Space
from yarnling.search.trials import SearchTrial, Trials
from yarnling.whatif.calibration_words import doubt, trust
from yarnling.whatif.changes import NOT_SET, ChangedInput
from yarnling.whatif.error_margins import margin_of, with_margin
from yarnling.whatif.expectations import Checked, Expectation
from yarnling.whatif.headlines import node_hours
from yarnling.whatif.measures import NODE_HOURS, Kind, Value
from yarnling.whatif.reasons import MainReason, main_reason
from yarnling.workload.calibration import Calibration

CONF, DIFF = "conf", "change.diff"
CONTRADICTIONS_MAX = 6
"""The most contradictions that a summary shows; --json has all."""
SEEDS_FEW = 3


class SearchAnswer(Struct, frozen=True):
    """The answer of a search. `changes`: keys of the best configuration, with their values before and after.
    `checked`: the goals under it. `front`: if goals contradict, the configurations between them. `written`: sentences
    about the files that were written. `calibration`: of the workload, which has the errors beside figures; None: it
    was not calibrated. `tried`: configurations, of which `refused` are not valid; `runs` were simulated
    now, and not in an earlier search.
    """

    headline: str
    is_met: bool
    findings: tuple[str, ...]
    changes: tuple[ChangedInput, ...]
    checked: tuple[Checked, ...]
    contradictions: tuple[str, ...]
    unmet: tuple[str, ...]
    front: Table | None
    warnings: tuple[str, ...]
    written: tuple[str, ...]
    tried: int
    refused: int
    runs: int
    is_exhausted: bool
    is_interrupted: bool
    calibration: Calibration | None = None


def answer_of(outcome: SearchOutcome, trials: Trials, space: Space, conf: Path, out: Path) -> SearchAnswer:
    """Make the answer, and write its files into `out`. `conf`: the directory of the configuration before."""
    best = outcome.best
    against = contradictions(outcome.goals, outcome.trials)
    never = unmet(outcome.goals, outcome.trials)
    is_met = best.judgement is not None and best.judgement.is_met
    changes = _changes(space, best.settings)
    written, warnings = _write(best, conf, out, is_met=is_met)
    why = tuple(_about_unmet(each, trials) for each in never)
    pairs = tuple(each.sentence() for each in against)
    workload = trials.workload
    calibration = workload.calibration
    about = (*_about_search(outcome, trials), *_about_margins(outcome, calibration))
    return SearchAnswer(
        headline=f"{doubt(calibration)}{_headline(outcome, changes, never, against)}",
        is_met=is_met,
        findings=(
            *_about_objective(outcome),
            *_about_nodes(outcome, trials),
            *why,
            *pairs[:CONTRADICTIONS_MAX],
            *about,
            *trust(calibration, workload.evidence),
        ),
        changes=changes,
        checked=_checked(outcome, calibration),
        contradictions=pairs,
        unmet=why,
        front=None if is_met else _front_table(outcome, space, calibration),
        warnings=warnings,
        written=written,
        tried=len(outcome.trials),
        refused=sum(trial.judgement is None for trial in outcome.trials),
        runs=outcome.simulated,
        is_exhausted=outcome.is_exhausted,
        is_interrupted=outcome.is_interrupted,
        calibration=calibration,
    )


def short_key(key: str) -> str:
    """The key without what all keys of the scheduler begin with: "root.etl.capacity"."""
    return key.removeprefix(PREFIX)


def figures_in_words(goals: Goals, trial: SearchTrial, calibration: Calibration | None) -> Iterator[str]:
    """The values of the goals under a configuration that is valid, with their errors; * marks a goal that is met."""
    assert trial.judgement is not None
    for limit, value, distance in zip(goals.limits, trial.judgement.values, trial.judgement.distances, strict=True):
        yield f"{_with_error(limit, value, calibration)}{'' if distance else ' *'}"


def _with_error(limit: Expectation, value: Value | None, calibration: Calibration | None) -> str:
    return with_margin(limit.measure, value, margin_of(limit.measure, limit.scope, value, calibration))


def settings_in_words(space: Space, settings: Settings) -> str:
    """The changes in words: "root.etl.capacity 45, root.adhoc.capacity 35"."""
    changes = _changes(space, settings)
    return ", ".join(f"{each.what} {each.after}" for each in changes) or "as it is"


def _headline(
    outcome: SearchOutcome, changes: Sequence[ChangedInput], never: Sequence[Unmet], against: Sequence[Contradiction]
) -> str:
    best = outcome.best.judgement
    if best is not None and best.is_met:
        if not changes:
            return "Nothing has to change: all goals are met, and nothing better was found."
        listed = ", ".join(f"{each.what} {each.before} -> {each.after}" for each in changes)
        goals = "meet all goals" if outcome.goals.limits else "are the best that was found"
        verb = goals if len(changes) > 1 else goals.replace("meet", "meets").replace("are", "is")
        return f"{counted(len(changes), 'change')} {verb}: {listed}."
    none = "No configuration within the bounds" if outcome.is_exhausted else "No configuration that was tried"
    if never:
        return f"{none} meets {' or '.join(each.limit.text for each in never)}."
    if against:
        first = against[0]
        return f"{none} meets all goals: {first.sentence()}."
    return f"{none} meets all goals, although each of them, and each two, can be met."


def _about_objective(outcome: SearchOutcome) -> Iterator[str]:
    objective = outcome.goals.objective
    if objective is None or outcome.best.judgement is None or outcome.before.judgement is None:
        return
    now, then = (objective.written(each.judgement.cost) for each in (outcome.best, outcome.before) if each.judgement)
    yield f"{objective.text}: {now}, was {then} ({'highest' if objective.is_maximised else 'lowest'} that was found)"


def _about_nodes(outcome: SearchOutcome, trials: Trials) -> Iterator[str]:
    """State what the machines cost before and after, if they come and go and the figure to minimise does not say it."""
    objective = outcome.goals.objective
    if objective is not None and objective.measure.name == NODE_HOURS:
        return
    now, then = (trials.figures(each.settings) for each in (outcome.best, outcome.before))
    if now and any(run.nodes.changes for run in (*now, *then)):
        after, before = (node_hours(fmean(run.nodes.node_ms for run in runs)) for runs in (now, then))
        yield f"cluster: node-hours: {after}, was {before} (mean of the seeds)"


def _about_unmet(each: Unmet, trials: Trials) -> str:
    """A goal that cannot be met, how near it was, and why its containers waited there."""
    measure = each.limit.measure
    text = f"{each.limit.text}: at best {measure.written(each.value)}"
    reason = _reason(each.limit, each.trial, trials)
    return f"{text}; main reason of the waits then, {reason.long()}" if reason is not None else text


def _reason(limit: Expectation, trial: SearchTrial, trials: Trials) -> MainReason | None:
    if limit.measure.kind is not Kind.DURATION and "deadline" not in limit.measure.name:
        return None
    reasons = [reason for figures in trials.figures(trial.settings) for reason in figures.wait_reasons]
    return main_reason(reasons, limit.scope, of_ams="AM" in limit.measure.name)


def _about_search(outcome: SearchOutcome, trials: Trials) -> Iterator[str]:
    seeds = trials.seeds
    whole = sum(trial.is_whole and trial.judgement is not None for trial in outcome.trials)
    words = f"{counted(len(outcome.trials), 'configuration')} tried, {whole} of them with {counted(seeds, 'seed')}"
    partly = ", the others until they were worse" if whole < len(outcome.trials) else ""
    yield f"{words}{partly}: {counted(_runs(outcome), 'run')}"
    if outcome.is_exhausted:
        yield "there is no other configuration within the bounds"
    refused = [trial.refusal for trial in outcome.trials if trial.judgement is None]
    if refused:
        yield f"{counted(len(refused), 'configuration')} not valid, for example: {refused[0].splitlines()[0]}"
    if outcome.is_late:
        yield "the time was over before all were tried"
    if seeds < SEEDS_FEW:
        yield f"{counted(seeds, 'seed')} a configuration: some of this may be chance (--seeds 5)"


def _about_margins(outcome: SearchOutcome, calibration: Calibration | None) -> Iterator[str]:
    """Name the goals that the best configuration meets or misses by less than the error of the figure."""
    judgement = outcome.best.judgement
    if judgement is None:
        return
    close = [
        limit.text
        for limit, value in zip(outcome.goals.limits, judgement.values, strict=True)
        if value is not None
        and (margin := margin_of(limit.measure, limit.scope, value, calibration))
        and abs(value.number - limit.bound) <= margin
    ]
    if close:
        yield f"nearer to the limit than the replay was off, so it may hold or not: {'; '.join(close)}"


def _runs(outcome: SearchOutcome) -> int:
    """The number of different runs that the configurations took, whether they were made now or earlier."""
    runs = Counter[tuple[tuple[str, str], ...]]()
    for trial in outcome.trials:
        key = tuple(sorted(trial.settings.items()))
        runs[key] = max(runs[key], trial.judgement.runs if trial.judgement is not None else 1)
    return runs.total()


def _changes(space: Space, settings: Settings) -> tuple[ChangedInput, ...]:
    return tuple(
        ChangedInput(short_key(each.key), each.before if each.before is not None else NOT_SET, settings[each.key])
        for each in space.dimensions
        if each.key in settings
    )


def _checked(outcome: SearchOutcome, calibration: Calibration | None) -> tuple[Checked, ...]:
    """The goals under the best configuration, with the values of the worst seed before and after."""
    now, then = outcome.best.judgement, outcome.before.judgement
    if now is None or then is None:
        return ()
    rows = zip(outcome.goals.limits, now.values, now.distances, then.values, strict=True)
    return tuple(
        Checked(
            limit.text,
            not distance,
            f"{_with_error(limit, value, calibration)}, was {limit.measure.written(before)}",
        )
        for limit, value, distance, before in rows
    )


def _front_table(outcome: SearchOutcome, space: Space, calibration: Calibration | None) -> Table | None:
    """The configurations nearest to the goals, with their figures; no table if there is only one."""
    found = front(outcome.goals, outcome.trials)
    if len(found) < 2:
        return None
    rows = tuple(
        (settings_in_words(space, trial.settings), *figures_in_words(outcome.goals, trial, calibration))
        for trial in found
    )
    columns = ("change", *(subject_in_words(limit) for limit in outcome.goals.limits))
    note = (
        "Each of these is nearer to one goal than all others that are as near to the rest; * marks a goal that is met."
    )
    return Table("Between the goals", columns, rows, note)


def _write(best: SearchTrial, conf: Path, out: Path, *, is_met: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(sentences about the files that were written, warnings)."""
    diff, by_hand = write_changed(conf, best.settings, out / CONF)
    with full_disk_named(out / DIFF):
        (out / DIFF).write_text(diff, encoding="utf-8", errors="surrogateescape")
    warnings = tuple(
        f"{out / CONF}: set {key} = {best.settings[key]} by hand: the file could not be changed" for key in by_hand
    )
    what = "The configuration" if is_met else "The nearest configuration"
    return (f"{what}: {out / CONF}", f"Its difference: {out / DIFF}"), warnings
