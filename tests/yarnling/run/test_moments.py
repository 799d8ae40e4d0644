"""The moment at which a view opens."""

from __future__ import annotations

from yarnling.run.moments import MomentKind, moments_of, opening, opening_at_fault
from yarnling.run.records import Decision, Lifeline, RecordedFault, RecordedRun, Role, What

LINES = (Lifeline("rm", Role.RM, "RM"), Lifeline("nm-1", Role.NM, "NM-1"))
PLACED = Decision(10, What.ALLOCATED, "application_1_0001", "nm-1", "container_1_0001_01_000001")


def test_a_view_may_open_at_the_first_fault() -> None:
    run = RecordedRun(
        "run", 0, 100, LINES, decisions=(PLACED,), faults=(RecordedFault("kill-node", 50, 60, ("nm-1",)),)
    )
    moments = moments_of(run, str)
    usual, first = opening(moments), opening_at_fault(moments)
    assert usual is not None
    assert first is not None
    assert (usual.kind, first.kind, first.at_ms) == (MomentKind.PLACED, MomentKind.DONE, 50)


def test_without_a_fault_it_opens_where_others_do() -> None:
    moments = moments_of(RecordedRun("run", 0, 100, LINES, decisions=(PLACED,)), str)
    assert opening_at_fault(moments) == opening(moments)
    assert opening_at_fault(()) is None
