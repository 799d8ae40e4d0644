"""The page of a search: the answer, what was tried, and a picture of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wire.files.full_disk import full_disk_named
from yarnling.report.page import PICTURES_EXTRA, Notes, Page, PictureGroup, Table, has_matplotlib, html_of
from yarnling.report.wording import count
from yarnling.search.answer import SearchAnswer, figures_in_words, settings_in_words
from yarnling.search.front import contradictions, subject_in_words
from yarnling.search.goals import Goals
from yarnling.search.search import SearchOutcome
from yarnling.search.space import Space
from yarnling.search.trials import SearchTrial
from yarnling.whatif.measures import Kind
from yarnling.workload.calibration import Calibration

if TYPE_CHECKING:
    from yarnling.search.pictures import FigureOfTrials  # Needs matplotlib.

SEARCH_HTML = "search.html"
ROWS_MAX = 200
"""The most configurations in the table of all."""


def write_search_page(answer: SearchAnswer, outcome: SearchOutcome, space: Space, directory: Path) -> Path:
    """Write search.html into the directory; returns its path."""
    path = directory / SEARCH_HTML
    with full_disk_named(path):
        path.write_text(html_of(search_page(answer, outcome, space)), encoding="utf-8")
    return path


def search_page(answer: SearchAnswer, outcome: SearchOutcome, space: Space) -> Page:
    """The page of a search."""
    drawn = has_matplotlib()
    changed = tuple((each.what, each.before, each.after) for each in answer.changes)
    goals = tuple((each.text, "holds" if each.holds else "does not hold", each.value) for each in answer.checked)
    tables = (
        Table("Goals", ("goal", "", "measured"), goals, "Of the worst seed.", text_columns=3),
        *((answer.front,) if answer.front is not None else ()),
        _all(outcome, space, answer.calibration),
    )
    notes = (Notes("Warnings", answer.warnings), Notes("Files", answer.written))
    return Page(
        title="Search",
        subject=f"{count(answer.tried)} configurations were tried",
        headline=answer.headline,
        findings=answer.findings,
        tiles=(),
        pictures=_pictures(outcome) if drawn else (),
        tables=tuple(table for table in tables if table.rows),
        notes=tuple(each for each in notes if each.lines),
        notice="" if drawn else PICTURES_EXTRA,
        changes=Table("What changes", ("key", "before", "after"), changed, text_columns=3) if changed else None,
    )


def _all(outcome: SearchOutcome, space: Space, calibration: Calibration | None) -> Table:
    judged = [trial for trial in outcome.trials if trial.judgement is not None][:ROWS_MAX]
    objective = outcome.goals.objective
    columns = ("change", "seeds", *(subject_in_words(limit) for limit in outcome.goals.limits))
    rows = []
    for trial in judged:
        assert trial.judgement is not None
        cost = (objective.written(trial.judgement.cost),) if objective is not None else ()
        figures = figures_in_words(outcome.goals, trial, calibration)
        rows.append((settings_in_words(space, trial.settings), str(trial.judgement.runs), *figures, *cost))
    if objective is not None:
        columns = (*columns, objective.text)
    note = "In the order in which they were tried; * marks a goal that is met. One that was worse has fewer seeds."
    return Table("All configurations", columns, tuple(rows), note)


def _pictures(outcome: SearchOutcome) -> tuple[PictureGroup, ...]:
    """The configurations by the two goals that contradict most, or else by the first two figures."""
    from yarnling.search.pictures import tried

    trials = [trial for trial in outcome.trials if _is_measured(trial)]
    figures = _figures(outcome.goals, trials)
    if len(figures) < 2 or outcome.best not in trials or outcome.before not in trials:
        return ()
    against = contradictions(outcome.goals, outcome.trials)
    names = [subject_in_words(each) for each in (against[0].met, against[0].missed)] if against else []
    chosen = [each for each in figures if each.name in names]
    across, up = chosen if len(chosen) == 2 else figures[:2]
    return (PictureGroup("Between the goals", (tried(across, up, trials.index(outcome.best)),)),)


def _is_measured(trial: SearchTrial) -> bool:
    return trial.judgement is not None and None not in trial.judgement.values


def _figures(goals: Goals, trials: Sequence[SearchTrial]) -> list[FigureOfTrials]:
    """The figures of all goals, and that to minimise, for these configurations."""
    from yarnling.search.pictures import FigureOfTrials

    judged = [trial.judgement for trial in trials if trial.judgement is not None]
    found = []
    for position, limit in enumerate(goals.limits):
        values = [each.values[position] for each in judged]
        numbers = tuple(value.number for value in values if value is not None)
        is_duration = limit.measure.kind is Kind.DURATION
        found.append(FigureOfTrials(subject_in_words(limit), numbers, limit.bound, is_duration))
    objective = goals.objective
    if objective is not None and all(abs(each.cost) < float("inf") for each in judged):
        costs = tuple(abs(each.cost) for each in judged)
        found.append(FigureOfTrials(objective.text, costs, None, objective.measure.kind is Kind.DURATION))
    return found
