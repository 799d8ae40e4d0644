"""Which arrival belongs to which sending, where heartbeats are repeated and NodeManagers restart."""

from __future__ import annotations

import pytest

from yarnling.run.builder import RunBuilder
from yarnling.run.event_logs import EventLogs
from yarnling.run.matching import LATE_LOG_MS, matched
from yarnling.run.records import Call, Decision, Lifeline, RecordedRun, Role, What
from yarnling.timeline.plot_data import plot_of_timeline


def call(at_ms: int, node: str = "127.0.0.2:7") -> Call:
    return Call("nm-1", "rm", "nodeHeartbeat", at_ms, {"node_id": node, "response_id": 3})


@pytest.mark.parametrize(
    ("sent", "arrived", "pairs"),
    [
        ((10,), (12,), {(10, 12)}),
        ((10, 60), (62,), {(10, None), (60, 62)}),
        ((10, 60), (90, 91), {(10, 90), (60, 91)}),
        ((10, 60), (12,), {(10, 12), (60, None)}),
        ((60,), (12, 62), {(None, 12), (60, 62)}),
        ((10 + LATE_LOG_MS,), (10,), {(10 + LATE_LOG_MS, 10)}),
        ((), (12,), {(None, 12)}),
    ],
)
def test_an_arrival_belongs_to_the_latest_sending_before_it(
    sent: tuple[int, ...], arrived: tuple[int, ...], pairs: set[tuple[int | None, int | None]]
) -> None:
    found = matched([call(at_ms) for at_ms in sent], [call(at_ms) for at_ms in arrived])
    assert {(one and one.sent_ms, other and other.sent_ms) for one, other in found} == pairs


def test_heartbeats_of_two_starts_of_a_node_are_not_confused() -> None:
    """The logs are read in the order of their names: that of the second start may be the first."""
    reader = EventLogs(RunBuilder("run"))
    for node, at_ms in (("127.0.0.2:4", 5000), ("127.0.0.2:9", 10)):
        reader.node(node)
        reader.sent(call(at_ms, node))
    for node, at_ms in (("127.0.0.2:9", 12), ("127.0.0.2:4", 5002)):
        reader.received("nm-1", "rm", "nodeHeartbeat", at_ms, {"node_id": node, "response_id": 3})
    reader.match()
    timeline = reader.builder.run()
    assert [(one.sent_ms, one.arrived_ms) for one in timeline.calls] == [(10, 12), (5000, 5002)]


def test_applications_of_two_starts_of_the_resource_manager_have_rows_of_their_own() -> None:
    decisions = tuple(
        Decision(at_ms, What.ALLOCATED, f"application_{start}_0001", "nm-1", f"container_{start}_0001_01_000001")
        for start, at_ms in ((1700000000000, 0), (1700000009000, 9000))
    )
    timeline = RecordedRun("run", 0, 20_000, (Lifeline("nm-1", Role.NM, "NM-1"),), decisions=decisions)
    assert [span.application for span in plot_of_timeline(timeline).spans] == ["app 0001", "app 0001 (2)"]
