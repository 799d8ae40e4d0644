"""Expectations: their grammar with all faults at once, and when they hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.yarnling.whatif.outcomes import HOUR, MINUTE, application, container, result, sample
from yarn.faults import ConfigurationException
from yarnling.whatif.containers import End
from yarnling.whatif.expectation_file import read_expectations, resolved
from yarnling.whatif.expectations import (
    PHRASES,
    Checked,
    NotAnExpectation,
    check,
    names_in,
    parse_expectation,
    with_paths,
)
from yarnling.whatif.figures import Figures, figures_of
from yarnling.whatif.measures import CLUSTER, MEASURES, Better, Kind, Scope, value_of

UNITS = {Kind.DURATION: "20 min", Kind.SHARE: "60 %", Kind.COUNT: "1,000"}


def run(wait_ms: int | None = 12 * MINUTE, preempted: int = 0, **others: object) -> Figures:
    containers = [container(0, wait_ms)] + [container(0, 0, end=End.PREEMPTED) for _ in range(preempted)]
    samples = [sample(0, "root", 240, 400, 400), sample(0, "root.etl", 240, 200, 300)]
    return figures_of(result([application(**others)], containers[: 1 + preempted], samples))  # type: ignore[arg-type]


def checked(text: str, after: Figures, before: Figures | None = None) -> Checked:
    return check(with_paths(parse_expectation(text), names_in(after)), [after], [] if before is None else [before])


@pytest.mark.parametrize("measure", MEASURES.values(), ids=lambda measure: measure.name)
def test_every_measure_can_be_expected(measure: object) -> None:
    found = MEASURES[measure.name]  # type: ignore[attr-defined]
    limit = parse_expectation(f"queue etl: {found.name} <= {UNITS[found.kind]}")
    assert (limit.measure, limit.scope, limit.comparison) == (found, Scope("queue", "etl"), "<=")
    if found.better is not Better.NEITHER:
        assert parse_expectation(f"{found.name} not worse than before").needs_before


def test_a_deadline_after_the_end_is_neither_kept_nor_missed() -> None:
    """Three of four with a deadline: one runs, one waits for its submission, one has missed it already."""
    running = application(ended_ms=None, state="RUNNING", deadline_ms=3 * HOUR)
    planned = application(ended_ms=None, state="NOT_SUBMITTED", submitted_ms=3 * HOUR, deadline_ms=HOUR)
    late = application(ended_ms=None, state="RUNNING", deadline_ms=HOUR)
    text = "no application misses its deadline"
    warning = (
        "2 of 3 applications with a deadline cannot be judged: the simulation ended after 2 h, before they had ended "
        "and before their deadlines"
    )
    done = application(deadline_ms=2 * HOUR)
    cut = figures_of(result([done, running, planned], []))
    assert checked(text, cut) == Checked(text, holds=True, value="0", warning=warning)
    assert checked("queue etl: missed deadlines <= 3", cut).warning == warning
    assert checked("refused applications = 0", cut).warning == ""
    assert checked("missed deadlines not worse than before", cut, cut).warning == f"after: {warning}; before: {warning}"
    assert checked(text, figures_of(result([late, running, planned], []))) == Checked(
        text, holds=False, value="1", warning=warning
    )
    assert checked(text, figures_of(result([done, late], []))).warning == ""


@pytest.mark.parametrize("phrase", PHRASES)
def test_phrases_are_about_any_scope(phrase: str) -> None:
    assert parse_expectation(phrase).scope == CLUSTER
    assert parse_expectation(f"user ann: {phrase}").scope == Scope("user", "ann")


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("cluster: use > 60 %", 0.6),
        ("queue etl: p95 wait < 1.5 h", 5_400_000),
        ("queue etl: preempted containers <= 1,830", 1830),
        ("p95 wait < 0", 0),
        ("queue root.a.b: p50 wait not worse than before by more than 10 %", 0.1),
        ("queue etl: p50 wait not worse than before by more than 5 min", 300_000),
        ("  queue   etl:p95  wait<20min ", 1_200_000),
    ],
)
def test_numbers_have_the_unit_of_their_measure(text: str, bound: float) -> None:
    assert parse_expectation(text).bound == pytest.approx(bound)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("queue etl: p95 wiat < 20 min", "'p95 wiat' is not a measure (did you mean p95 wait?"),
        ("queue etl: p95 wait < 20", "a number without a unit does not fit here (write ms, s, min, m, h, d)"),
        ("queue etl: p95 wait < 20 %", "% does not fit here (write ms, s, min, m, h, d)"),
        ("queue etl: use < 3 GB", "GB does not fit here (write %)"),
        ("queue etl: p95 wait < 3 Min", "Min does not fit here (write ms, s, min, m, h, d)"),
        ("preempted containers < 20 min", "min does not fit here (write no unit)"),
        ("etl: p95 wait < 20 min", "has no valid scope (begin with `cluster:`"),
        ("queue etl: p95 wait", 'has no limit (write "MEASURE < NUMBER UNIT"'),
        ("p95 wait != 3 min", "'p95 wait !' is not a measure"),
        ("use not worse than before", "no value of use is worse than another (write a limit: < or >)"),
        ("user ann: use > 4 %", "users have no use (write one of: p50 wait, p95 wait,"),
        ("user ann: peak usee > 4 %", "'peak usee' is not a measure (write one of: p50 wait,"),
        ("user ann: time at maximum not worse than before", "users have no time at maximum (write one of: p50 wait"),
        ("p95 wait < -3 min", "the limit -3 min is negative (write 0 or a positive number)"),
        ("p95 wait not worse than before by more than -3 %", "the limit -3 % is negative"),
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(text: str, fault: str) -> None:
    with pytest.raises(NotAnExpectation) as error:
        parse_expectation(text)
    assert fault in str(error.value)


@pytest.mark.parametrize(
    ("text", "holds", "value"),
    [
        ("queue etl: p95 wait < 20 min", True, "12 min"),
        ("queue etl: p95 wait < 12 min", False, "12 min"),
        ("queue root.etl: p95 wait <= 12 min", True, "12 min"),
        ("cluster: use >= 60 %", True, "60 %"),
        ("queue etl: use = 120 %", True, "120 %"),
        ("user ann: longest wait > 1 h", False, "12 min"),
        ("queue adhoc: p95 wait < 20 min", False, "nothing to measure: -"),
        ("no application misses its deadline", False, "1"),
    ],
)
def test_a_limit_holds_or_not(text: str, holds: bool, value: str) -> None:
    assert checked(text, run(deadline_ms=MINUTE)) == Checked(text, holds, value)


def test_users_have_no_measures_of_queues() -> None:
    no_users = [measure for measure in MEASURES.values() if not measure.of_users]
    names = ["node-hours", "use", "peak use", "time above guarantee", "time at maximum"]
    assert [measure.name for measure in no_users] == names
    assert all(value_of(measure, Scope("user", "ann"), run()) is None for measure in no_users)
    assert all(value_of(measure, CLUSTER, run()) is not None for measure in no_users)


def test_a_wait_that_never_ended_meets_no_upper_limit() -> None:
    starved = run(wait_ms=None)
    assert not checked("p95 wait < 20 h", starved).holds
    assert checked("p95 wait > 30 min", starved).holds
    assert not checked("p95 wait not worse than before", starved, run(wait_ms=2 * 60 * MINUTE)).holds
    assert not checked("every container is allocated", starved).holds


@pytest.mark.parametrize(
    ("after_min", "margin", "holds"),
    [(12, "", True), (13, "", False), (13, " by more than 10 %", True), (14, " by more than 10 %", False)],
)
def test_not_worse_than_before(after_min: int, margin: str, holds: bool) -> None:
    text = f"queue etl: p95 wait not worse than before{margin}"
    found = checked(text, run(after_min * MINUTE), run(12 * MINUTE))
    assert found == Checked(text, holds, f"{after_min} min, was 12 min")


def test_a_limit_must_hold_with_every_seed() -> None:
    expectation = with_paths(parse_expectation("preempted containers <= 1"), names_in(run()))
    found = check(expectation, [run(preempted=1), run(preempted=3)])
    assert (found.holds, found.value) == (False, "3, with 1 of 2 seeds")


def test_a_file_is_refused_with_all_its_faults(tmp_path: Path) -> None:
    path = tmp_path / "expect.yaml"
    path.write_text("expect:\n  - queue etl: p95 wiat < 2 min\n  - [a]\n  - p95 wait < 2\n  - cluster: use > 60 %\n")
    with pytest.raises(ConfigurationException) as error:
        read_expectations(path)
    lines = error.value.message.splitlines()
    assert [line.partition(" (")[0].removeprefix(str(path)) for line in lines] == [
        ":2: expect[1]: 'p95 wiat' is not a measure",
        ":3: expect[2]: is not a sentence",
        ":4: expect[3] = 'p95 wait < 2': a number without a unit does not fit here",
    ]


def test_sentences_need_no_quotes(tmp_path: Path) -> None:
    path = tmp_path / "expect.yaml"
    path.write_text('expect:\n  - queue etl: p95 wait < 20 min\n  - "queue etl: p95 wait < 20 min"\n')
    first, second = read_expectations(path)
    assert first == second


def test_unknown_queues_and_users_are_bad_input(tmp_path: Path) -> None:
    texts = ("queue elt: use > 1 %", "user bob: p95 wait < 1 s")
    with pytest.raises(ConfigurationException) as error:
        resolved(tuple(map(parse_expectation, texts)), "x.yaml", names_in(run()))
    first, second = error.value.message.splitlines()
    assert "expect[1] = 'queue elt: use > 1 %': there is no queue elt (did you mean etl?" in first
    assert "there is no user bob (write one of the users of the run: ann)" in second


def test_a_short_name_of_several_queues_is_refused() -> None:
    apps = [application(queue="root.a.x"), application(queue="root.b.x")]
    figures = figures_of(result(apps, [], leaf_queues=("root.a.x", "root.b.x")))
    with pytest.raises(
        NotAnExpectation, match=r"several queues are called x \(write the path: root\.a\.x, root\.b\.x\)"
    ):
        with_paths(parse_expectation("queue x: p95 wait < 1 s"), names_in(figures))
