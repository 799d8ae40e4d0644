"""The history of a cluster: curves of queues and nodes, why applications waited, decisions, and their bounds."""

from __future__ import annotations

import pytest

from rm.core.history import cluster_history, curves, verdicts
from rm.core.history.cluster_history import NODE_COLUMNS, QUEUE_COLUMNS, ClusterHistory
from rm.core.history.curves import Resolution, StepCurve, StepCurves
from rm.core.history.decisions import decisions_since
from rm.core.history.verdicts import PastVerdicts
from rm.scheduler.model.health import SchedulerHealth
from rm.shell import history_sampler
from rm.shell.history_sampler import HistorySampler
from tests.rm.builders import RM, START_MS, done, resource_request
from tests.rm.test_verdicts import running
from tests.rm.test_verdicts_of_nodes import reserved
from yarn.ids import ApplicationId

TWO_QUEUES = {
    "yarn.scheduler.capacity.root.queues": "a,b",
    "yarn.scheduler.capacity.root.a.capacity": "50",
    "yarn.scheduler.capacity.root.b.capacity": "50",
}
APP = ApplicationId(1, 1)
OTHER = ApplicationId(1, 2)


@pytest.fixture
def rm() -> RM:
    """Two nodes of 4 GB; the scheduler counts what it does, as with web services."""
    made = RM(TWO_QUEUES)
    made.core.scheduler.context.health = SchedulerHealth(made.core.scheduler.context.none)
    made.node("n1", 4096)
    made.node("n2", 4096)
    return made


def column(rows: list[tuple[int, ...]] | None, name: str, columns: tuple[str, ...] = QUEUE_COLUMNS) -> list[int]:
    """The values of one column of a curve."""
    assert rows is not None
    return [row[1 + columns.index(name)] for row in rows]


# Curves


def test_a_curve_keeps_changes_only_and_the_last_of_them() -> None:
    curve = StepCurve(2, 3)
    for at_ms, row in ((0, (1, 1)), (5, (1, 1)), (10, (2, 1)), (15, (2, 2)), (20, (3, 3))):
        curve.note(at_ms, row)
    assert list(curve.rows(0)) == [(10, 2, 1), (15, 2, 2), (20, 3, 3)]
    assert list(curve.rows(17)) == [(15, 2, 2), (20, 3, 3)]
    assert list(curve.rows(99)) == [(20, 3, 3)]


def test_a_name_that_has_gone_is_zero_and_forgotten_in_time() -> None:
    kept = StepCurves(1, Resolution(10, 100))
    kept.note(0, {"n1": (7,), "n2": (7,)})
    kept.note(10, {"n1": (7,)})
    assert kept.rows("n2", 0) == [(0, 7), (10, 0)]
    kept.note(110, {"n1": (7,)})
    assert kept.rows("n2", 0) is not None
    kept.note(111, {"n1": (7,)})
    assert kept.rows("n2", 0) is None
    assert kept.rows("n1", 0) == [(0, 7)]


def test_the_number_of_curves_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "CURVES_MAX", 2)
    kept = StepCurves(1, Resolution(10, 100))
    kept.note(0, {"n1": (1,), "n2": (1,), "n3": (1,)})
    assert [kept.rows(name, 0) for name in ("n2", "n3")] == [[(0, 1)], None]


# Samples of a cluster


def test_queues_and_nodes_have_what_was_used_requested_and_decided(rm: RM) -> None:
    history = ClusterHistory(rm.core.context)
    history.sample(rm.now_ms)
    app = running(rm, "a")
    rm.allocate(app, [resource_request(6, 1024)])
    rm.now_ms += 5000
    rm.beat("n1")
    history.sample(rm.now_ms)
    queue = history.queue("root.a", START_MS)
    assert column(queue, "used_mb") == [0, 4096]
    assert column(queue, "pending_mb") == [0, 3 * 1024]
    assert column(queue, "waiting") == [0, 1]
    assert column(queue, "waiting_since_ms") == [0, START_MS]
    assert column(queue, "placed") == [0, 4]
    assert history.queue("root", START_MS) == queue
    assert column(history.queue("root.b", START_MS), "used_mb") == [0]
    node = history.node("n1:45454", START_MS)
    assert column(node, "used_mb", NODE_COLUMNS) == [0, 4096]
    assert history.cluster(START_MS) == [(START_MS, 8192, 2)]


def test_a_reservation_is_apart_from_use() -> None:
    rm, _, _ = reserved()
    history = ClusterHistory(rm.core.context)
    history.sample(rm.now_ms)
    assert column(history.queue("root", 0), "reserved_mb") == [3072]
    assert column(history.queue("root", 0), "used_mb") == [9 * 1024]
    assert column(history.node("n1:45454", 0), "reserved_mb", NODE_COLUMNS) == [3072]


def test_nothing_is_looked_at_while_nothing_changes(rm: RM, monkeypatch: pytest.MonkeyPatch) -> None:
    history = ClusterHistory(rm.core.context)
    running(rm, "a")
    history.sample(rm.now_ms)
    monkeypatch.setattr(cluster_history, "_queue_rows", lambda _: pytest.fail("the queues were looked at"))
    rm.now_ms += 3_600_000
    history.sample(rm.now_ms)
    assert history.step_ms(rm.now_ms - 60_000) == 5000


def test_old_times_are_answered_from_coarse_samples(rm: RM) -> None:
    history = ClusterHistory(rm.core.context, (Resolution(10, 100), Resolution(100, 10_000)))
    app = running(rm, "a")
    for minute in range(40):
        rm.now_ms = START_MS + minute * 10
        rm.allocate(app, [resource_request(minute + 1)])
        history.sample(rm.now_ms)
    fine, coarse = history.queue("root.a", rm.now_ms - 100), history.queue("root.a", START_MS)
    assert fine is not None
    assert coarse is not None
    assert (len(fine), fine[0][0]) == (11, rm.now_ms - 100)
    assert [row[0] for row in coarse] == [START_MS, START_MS + 100, START_MS + 200, START_MS + 300]
    assert (history.step_ms(rm.now_ms - 100), history.step_ms(START_MS)) == (10, 100)


# Why applications waited


def test_the_verdicts_of_an_application_are_kept_as_changes(rm: RM) -> None:
    history = ClusterHistory(rm.core.context)
    history.sample(rm.now_ms)
    app = running(rm, "a")
    rm.allocate(app, [resource_request(9)])
    for _ in range(3):
        rm.now_ms += 10_000
        rm.beat("n1")
        rm.beat("n2")
        list(history.explain_waiting(rm.now_ms))
    rm.allocate(app, [resource_request(0)])
    rm.now_ms += 10_000
    list(history.explain_waiting(rm.now_ms))
    (found,) = history.verdicts_of(app)
    assert (found.from_ms, found.until_ms) == (START_MS + 10_000, START_MS + 40_000)
    assert found.cause == "USER_LIMIT"
    assert "queue root.a is at its user limit" in found.sentence


def test_applications_take_turns_and_none_is_explained_twice_without_a_change(
    rm: RM, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = ClusterHistory(rm.core.context)
    apps = [rm.submit("ann", "a") for _ in range(3)]
    first = next(iter(history.explain_waiting(rm.now_ms)))
    assert [first, *history.explain_waiting(rm.now_ms)] == apps
    assert list(history.explain_waiting(rm.now_ms)) == []
    monkeypatch.setattr(history, "_waiting", lambda: pytest.fail("the applications were looked at"))
    assert list(history.explain_waiting(rm.now_ms)) == []
    monkeypatch.undo()
    rm.submit("ann", "b")
    assert set(apps) < set(history.explain_waiting(rm.now_ms))


def test_a_verdict_with_other_numbers_is_the_same() -> None:
    kept = PastVerdicts()
    kept.note(APP, 1, "NODE_FULL", "the most free is on n1: 0 MB free")
    kept.note(APP, 2, "NODE_FULL", "the most free is on n2: 512 MB free")
    assert [(one.from_ms, one.until_ms) for one in kept.of(APP)] == [(1, None)]
    kept.note(APP, 3, "USER_LIMIT", "ann holds 5 of 4 MB")
    assert [(one.from_ms, one.until_ms) for one in kept.of(APP)] == [(1, 3), (3, None)]


def test_the_entries_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "PAST_VERDICTS_MAX", 5)
    monkeypatch.setattr(verdicts, "OF_APPLICATION_MAX", 4)
    kept = PastVerdicts()
    kept.note(OTHER, 0, "OLD", "x" * 10_000)
    assert len(kept.of(OTHER)[0].sentence) == verdicts.SENTENCE_MAX
    for number in range(9):
        kept.note(APP, number, f"CAUSE{number}", "")
    assert [one.from_ms for one in kept.of(APP)] == [5, 6, 7, 8]
    assert len(kept.of(OTHER)) == 1
    kept.note(ApplicationId(1, 3), 9, "NEW", "")
    assert kept.of(OTHER) == ()
    assert kept.waiting() == [APP, ApplicationId(1, 3)]


# Decisions


def test_decisions_are_read_from_the_containers() -> None:
    rm, _, _ = reserved()
    running_id = next(iter(rm.nodes["n1"].running))
    rm.now_ms += 1000
    rm.beat("n1", [done(running_id)])
    found = [(one.at_ms - START_MS, one.what) for one in decisions_since(rm.core.context, 0)]
    assert found.count((0, "reserved")) == 1
    assert found.count((1000, "ended")) == 1
    late = {one.what for one in decisions_since(rm.core.context, START_MS + 1)}
    assert late == {"ended"}


# The time that samples take


class _Timer:
    """CPU time that passes when a test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_sample_that_took_long_is_followed_by_a_longer_wait(rm: RM, monkeypatch: pytest.MonkeyPatch) -> None:
    timer, history = _Timer(), ClusterHistory(rm.core.context)
    sampler = HistorySampler(history, lambda: rm.now_ms, timer)
    assert sampler.sample() == 5.0

    def explain(_: int) -> object:
        for number in range(4):
            timer.now_s += 0.01
            yield number

    monkeypatch.setattr(history, "explain_waiting", explain)
    started_s = timer.now_s
    wait_s = sampler.sample()
    assert timer.now_s - started_s == pytest.approx(0.02)  # the second one was over VERDICTS_S
    assert wait_s == pytest.approx(max(5.0, 0.02 / history_sampler.SHARE))
