"""Draws a lesson as text: its introduction, and its story as a diagram between paragraphs, tables and pictures."""

from __future__ import annotations

from yarnling.lessons.scene.lesson import Lesson
from yarnling.lessons.scene.story import Part, Rows, SkippedHeartbeats, Story, Text
from yarnling.report.block_characters import bar_lines, curve_lines
from yarnling.report.curves import Bars, Curves
from yarnling.report.space_time_text import DrawnLine, TextDiagram, table, wrapped
from yarnling.simulation.account import Told

WIDTH = 110
_INDENT = 2


def drawn(story: Story, width: int = WIDTH) -> list[DrawnLine]:
    """Draw a story without its question, in lines of at most this width (or a little wider, for many lifelines)."""
    diagram = TextDiagram(story.participants, width)
    lines: list[DrawnLine] = []
    is_in_diagram = False
    for part in story.parts:
        is_step = not isinstance(part, Text | Rows | Curves | Bars)
        if not is_step or not is_in_diagram:
            lines.append(DrawnLine(""))
        if is_step and not is_in_diagram:
            lines.append(diagram.head)
        lines += _lines(diagram, part, width)
        is_in_diagram = is_step
    return lines


def introduction(lesson: Lesson, width: int = WIDTH) -> list[DrawnLine]:
    """The topic of a lesson, and its terms, before its story."""
    lines: list[DrawnLine] = []
    for paragraph in lesson.idea:
        lines += [DrawnLine(""), *(DrawnLine(line) for line in wrapped(paragraph, width))]
    lines.append(DrawnLine(""))
    for term, meaning in lesson.terms.items():
        first, *rest = wrapped(f"{term}: {meaning}", width - _INDENT)
        lines += [DrawnLine(f"{'-':<{_INDENT}}{first}"), *(DrawnLine(f"{'':{_INDENT}}{line}") for line in rest)]
    return lines


def lines_of(part: Text | Rows | Curves | Bars, width: int = WIDTH) -> list[DrawnLine]:
    """The lines of a paragraph, a table or a picture."""
    match part:
        case Text(text):
            return [DrawnLine(line) for line in wrapped(text, width)]
        case Rows(columns, rows):
            return table(columns, rows)
        case Curves():
            return curve_lines(part, width)
        case Bars():
            return bar_lines(part, width)


def _lines(diagram: TextDiagram, part: Part, width: int) -> list[DrawnLine]:
    match part:
        case Text() | Rows() | Curves() | Bars():
            return lines_of(part, width)
        case SkippedHeartbeats(count):
            return diagram.gap(f"({count} {'heartbeat' if count == 1 else 'heartbeats'} without news)")
        case Told(at_ms, place, text, rpc=""):
            return diagram.mark(at_ms, place, f"* {text}", "yellow" if part.change is None else "green")
        case Told(at_ms, place, text, target, rpc):
            words = f"{'reply to ' if part.is_reply else ''}{rpc}" + (f": {text}" if text else "")
            return diagram.arrow(at_ms, place, target, words, "" if part.is_reply else "cyan")
