"""A text diagram: arrows between lifelines, marks on them, and words that are wrapped beside them."""

from __future__ import annotations

from yarnling.report.space_time_text import DrawnLine, TextDiagram, run_lines
from yarnling.run.records import Call, Lifeline, Outcome, RecordedFault, RecordedRun, Role


def test_arrows_marks_and_gaps_are_drawn_on_the_lifelines() -> None:
    diagram = TextDiagram(("client", "RM"), 80)
    lines = [
        diagram.head,
        *diagram.arrow(2308, "client", "RM", "submit", "cyan"),
        *diagram.arrow(2309, "RM", "client", "reply", ""),
        *diagram.mark(2310, "RM", "* done", "green"),
        *diagram.gap("(2 left out)"),
    ]
    assert [line.text for line in lines] == [
        "           client     RM",
        "   2.308      ├───────>│     submit",
        "   2.309      │<───────┤     reply",
        "   2.310      │        *     * done",
        "              ┊        ┊     (2 left out)",
    ]


def test_words_are_wrapped_beside_the_lifelines() -> None:
    first, second = TextDiagram(("RM",), 40).mark(0, "RM", "words that do not fit on one line of it", "")
    assert (first, second) == (
        DrawnLine("   0.000      *     words that do not fit on one"),
        DrawnLine("              │       line of it"),
    )


def test_a_message_to_somebody_without_a_lifeline_has_no_arrow() -> None:
    (line,) = TextDiagram(("RM",), 80).arrow(0, "client", "RM", "submit", "")
    assert line.text == "   0.000      │     submit"


def test_a_recorded_run_is_drawn_from_a_time_on_with_its_faults() -> None:
    lines = (Lifeline("rm", Role.RM, "RM"), Lifeline("nm-1", Role.NM, "NM-1"), Lifeline("nm-2", Role.NM, "NM-2"))
    calls = (
        Call("nm-1", "rm", "registerNodeManager", 1_000, outcome=Outcome.ANSWERED, replied_ms=1_001),
        *(
            Call("nm-1", "rm", "nodeHeartbeat", at_ms, outcome=Outcome.ANSWERED, replied_ms=at_ms + 1, is_quiet=True)
            for at_ms in (3_000, 4_000)
        ),
        Call("nm-1", "rm", "nodeHeartbeat", 5_000, over_ms=5_500, outcome=Outcome.REQUEST_LOST),
        Call("nm-1", "rm", "nodeHeartbeat", 6_000, outcome=Outcome.REFUSED, error="too late", replied_ms=6_001),
    )
    fault = RecordedFault("kill-container", 3_500, None, (), "container_1700000000000_0001_01_000002")
    run = RecordedRun("run", 500, 9_000, lines, calls, faults=(fault,))
    assert [line.text for line in run_lines(run, 2_000, 6, 80)] == [
        "             RM      NM-1",
        "              ┊        ┊     (1 call without news)",
        "   3.000      *        │     * kill-container c0001_000002",
        "              ┊        ┊     (1 call without news)",
        "   4.500      │<───────┤     nodeHeartbeat",
        "   5.000      │        *     * nodeHeartbeat: request lost",
        "   5.500      │<───────┤     nodeHeartbeat",
        "              ┊        ┊     (1 more)",
    ]
    assert run_lines(run, 9_000, 6, 80) == []
