"""The figures of a result: waits with their lower bounds, use over time, lost work, deadlines."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.yarnling.whatif.outcomes import HOUR, MINUTE, application, busy_day, container, result, sample
from yarn.errors import YarnException
from yarn.resource import MEMORY_MB, VCORES, Resource
from yarnling.whatif.containers import End
from yarnling.whatif.figures import figures_of
from yarnling.whatif.headlines import findings
from yarnling.whatif.result import LongWait, QueueSample
from yarnling.whatif.result_file import decode_result, encode_result, read_result
from yarnling.whatif.series import all_series, whole_series
from yarnling.whatif.tables import write_tables
from yarnling.whatif.waits import Wait, Waits, WaitTimes, summarize


def summary(waits: Iterable[Wait]) -> Waits:
    times = WaitTimes()
    for wait in waits:
        times.add(wait)
    return summarize(times)


def test_percentiles_are_of_the_nearest_rank() -> None:
    waits = summary(Wait(second * 1000) for second in range(1, 101))
    assert (waits.p50, waits.p95, waits.p99, waits.longest) == (Wait(50_000), Wait(95_000), Wait(99_000), Wait(100_000))


def test_a_percentile_is_a_lower_bound_if_an_unfinished_wait_may_change_it() -> None:
    waits = summary([Wait(1), Wait(2), Wait(2, at_least=True), Wait(3)])
    assert waits.p50 == Wait(2)
    assert waits.p95 == waits.longest == Wait(3, at_least=True)
    assert waits.unfinished == 1


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), min_size=1), st.integers(0, 50))
def test_a_longer_true_wait_never_shortens_a_percentile_and_changes_no_exact_one(
    drawn: list[tuple[int, bool]], longer: int
) -> None:
    """The part that was cut off may have been any longer: exact percentiles stay, lower bounds hold."""
    reported = summary(Wait(ms, cut) for ms, cut in drawn)
    true = summary(Wait(ms + longer if cut else ms) for ms, cut in drawn)
    for name in ("p50", "p95", "p99", "longest"):
        one, other = getattr(reported, name), getattr(true, name)
        assert one.ms <= other.ms
        assert one.at_least or other.ms <= one.ms * 1.01


def test_an_unfinished_wait_ends_when_its_request_is_withdrawn() -> None:
    apps = [application(ended_ms=40 * MINUTE, state="KILLED"), application(ended_ms=None, state="RUNNING")]
    withdrawn = container(10 * MINUTE, None, app=0, withdrawn_ms=40 * MINUTE)
    found = figures_of(result(apps, [withdrawn, container(0, None, app=1)]))
    assert found.queues[0].waits.longest == Wait(2 * HOUR, at_least=True)
    assert found.queues[0].waits.p50 == Wait(30 * MINUTE, at_least=True)
    assert found.queues[0].waits.total_ms == 150 * MINUTE


def test_containers_are_summed_up_by_queue_parent_user_and_hour() -> None:
    apps = [application(queue="root.a.x", user="ann"), application(queue="root.a.y", user="bob")]
    containers = [container(0, 1000, app=0), container(90 * MINUTE, 9000, app=1), container(0, 3000, app=0, is_am=True)]
    samples = [sample(0, name, 0, 10, 10) for name in ("root", "root.a", "root.a.x", "root.a.y")]
    found = figures_of(result(apps, containers, samples, leaf_queues=("root.a.x", "root.a.y")))
    assert [(queue.name, queue.containers) for queue in found.queues] == [("root.a.x", 2), ("root.a.y", 1)]
    assert [(queue.name, queue.containers) for queue in found.parents] == [("root.a", 3)]
    assert [(user.name, user.waits.p95) for user in found.users] == [("bob", Wait(9000)), ("ann", Wait(3000))]
    assert [hour.waits.count for hour in found.hours] == [2, 1]
    assert found.queues[0].am_waits.p95 == Wait(3000)


def test_lost_work_is_what_preempted_containers_had_run() -> None:
    containers = [container(0, 0, 30_000, end=End.PREEMPTED, memory_gb=2), container(0, 0, 60_000, memory_gb=1)]
    found = figures_of(result([application()], containers)).cluster
    assert (found.lost.containers, found.lost.container_ms, found.lost.mb_ms) == (1, 30_000, 30_000 * 2048)
    assert found.done_mb_ms == 60_000 * 1024


def test_a_sample_counts_until_the_next_one() -> None:
    samples = [sample(0, "root.etl", 10, 20, 40), sample(90 * MINUTE, "root.etl", 40, 20, 40, pending=8)]
    [use] = figures_of(result([application()], [], samples)).uses
    assert (use.average / 1024, use.peak / 1024) == (17.5, 40)
    assert (use.above_guarantee, use.at_maximum) == (0.25, 0.25)
    assert (use.pending / 1024, use.pending_peak / 1024) == (2, 8)
    assert use.use == 17.5 / 20


def test_a_queue_has_nothing_while_it_does_not_exist() -> None:
    """A queue is created after an hour, the other one is deleted then; the simulation takes two hours."""
    samples = [
        *(sample(at, "root", 30, 100, 100) for at in (0, HOUR)),
        sample(0, "root.old", 10, 50, 100),
        sample(HOUR, "root.new", 20, 50, 100),
    ]
    apps = [application(queue="root.old"), application(queue="root.new")]
    outcome = result(apps, [], samples, leaf_queues=("root.new",))
    figures = figures_of(outcome)
    assert [(use.queue, use.average / 1024) for use in figures.uses] == [
        ("root", 30),
        ("root.old", 5),
        ("root.new", 10),
    ]
    assert ([queue.name for queue in figures.queues], figures.parents) == (["root.new", "root.old"], ())
    curves = all_series(outcome, figures)
    assert curves["root.old", ""].used == (10 * 1024, 0, 0)
    assert curves["root.new", ""].used == (0, 20 * 1024, 20 * 1024)


def test_the_use_of_a_queue_is_that_of_all_partitions() -> None:
    samples = [
        sample(0, "root", 10, 40, 40),
        sample(0, "root", 60, 60, 60, label="gpu"),
        sample(0, "root.etl", 10, 40, 40),
        sample(0, "root.etl", 0, 0, 0, label="gpu"),
        sample(0, "root.ml", 0, 0, 40),
        sample(0, "root.ml", 60, 60, 60, label="gpu"),
    ]
    outcome = result([application()], [], samples, leaf_queues=("root.etl", "root.ml"))
    figures = figures_of(outcome)
    assert {queue: use.use for queue, use in figures.use_by_queue.items()} == {
        "root": 0.7,
        "root.etl": 0.25,
        "root.ml": 1,
    }
    assert [use.name for use in figures.uses] == ["root", "root (gpu)", "root.etl", "root.ml", "root.ml (gpu)"]
    assert whole_series(outcome, figures)["root"].used[0] == 70 * 1024


def test_use_is_of_the_scarcest_type_that_the_scheduler_counts() -> None:
    root = QueueSample(
        0, "root", Resource(100, 90), *[Resource(0, 0)] * 2, Resource(1000, 100), Resource(1000, 100), 1, 0
    )
    small = {"cluster": Resource(1000, 100)}
    assert figures_of(result([], [], [root], **small)).measured == MEMORY_MB
    both = figures_of(result([], [], [root], counted=(MEMORY_MB, VCORES), **small))
    assert both.measured == VCORES
    assert both.cluster_use is not None
    assert both.cluster_use.use == 0.9


@pytest.mark.parametrize(
    ("ended_ms", "state", "missed"),
    [(HOUR, "FINISHED", 0), (HOUR + 1, "FINISHED", 1), (None, "RUNNING", 1), (MINUTE, "FAILED", 1)],
)
def test_a_deadline_is_missed_if_the_application_did_not_finish_in_time(
    ended_ms: int | None, state: str, missed: int
) -> None:
    app = application(ended_ms=ended_ms, state=state, deadline_ms=HOUR)
    found = figures_of(result([app, application()], [])).cluster
    assert (found.with_deadline, found.missed) == (1, missed)


def test_a_deadline_that_has_not_passed_is_not_missed() -> None:
    app = application(ended_ms=None, state="RUNNING", deadline_ms=3 * HOUR)
    assert figures_of(result([app], [])).cluster.missed == 0


def test_what_was_not_submitted_before_the_end_is_counted_apart() -> None:
    cut = {"am_started_ms": None, "ended_ms": None, "state": "NOT_SUBMITTED", "deadline_ms": 1}
    late = application(user="bob", submitted_ms=3 * HOUR, **cut)
    found = figures_of(result([application(deadline_ms=HOUR), late, late], []))
    assert (found.cluster.applications, found.cluster.not_submitted, found.cluster.with_deadline) == (1, 2, 1)
    etl = found.queues[0]
    assert (etl.name, etl.applications, etl.not_submitted, etl.missed) == ("root.etl", 1, 2, 0)
    assert [(user.name, user.applications, user.not_submitted) for user in found.users] == [
        ("ann", 1, 0),
        ("bob", 0, 2),
    ]
    assert "2 of 3 applications were not submitted before the end." in findings(found)


def test_the_longest_waits_come_with_their_explanations() -> None:
    containers = [container(0, 1000), container(0, 9000)]
    waits = (LongWait(0, "short"), LongWait(1, "the queue is full"))
    found = figures_of(result([application()], containers, longest_waits=waits)).longest
    assert [(each.wait.ms, each.explanation) for each in found] == [(9000, "the queue is full"), (1000, "short")]


def test_a_result_is_the_same_after_writing_and_reading_it() -> None:
    day = busy_day()
    assert decode_result(encode_result(day)) == day


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "truncated"),
        ('{"title": "x"}', "missing required field"),
        (encode_result(result([], [container(0, 1)])).decode(), "there is no application 0"),
        (encode_result(result([], [], longest_waits=(LongWait(3, ""),))).decode(), "there is no container 3"),
    ],
)
def test_a_file_that_is_not_a_result_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(YarnException, match=reason):
        read_result(path)
    with pytest.raises(YarnException, match="cannot be read"):
        read_result(tmp_path / "missing.json")


def test_tables_have_one_row_for_each_outcome_and_no_formula(tmp_path: Path) -> None:
    apps = [application("=cmd()", user="ann,\n1")]
    withdrawn = container(0, None, withdrawn_ms=HOUR)
    write_tables(result(apps, [container(0, 5), withdrawn], [sample(0, "root", 1, 2, 3)]), tmp_path)
    waits = (tmp_path / "waits.csv").read_text()
    assert waits.startswith("application,user,queue,is_am,requested_ms,allocated_ms,withdrawn_ms,wait_ms,")
    assert '\'=cmd(),"ann,\n1",root.etl,False,0,5,,5,False,60005,completed,4096,1,,' in waits
    assert "root.etl,False,0,,3600000,3600000,True,,,4096,1" in waits
    assert "0,root,,1024,0,0,0,0,0,2048,0,3072,1,1,0" in (tmp_path / "queues.csv").read_text()
    assert len((tmp_path / "applications.csv").read_text().splitlines()) == 3
