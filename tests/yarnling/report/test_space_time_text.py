"""A text diagram: arrows between lifelines, marks on them, and words that are wrapped beside them."""

from __future__ import annotations

from yarnling.report.space_time_text import DrawnLine, TextDiagram


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
