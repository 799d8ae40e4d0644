"""Draws a story as text: a sequence diagram with a lifeline for each participant, and what was said between.

 time   client     RM      NM n1
2.308             │◄───────┤  nodeHeartbeat: response id 2
2.308             │        │  * node n1: NEW -> RUNNING
"""

from __future__ import annotations

import textwrap

from msgspec import Struct
from rich.text import Text as Styled

from yarnling.lessons.scene.lesson import Lesson
from yarnling.lessons.scene.story import Part, Rows, SkippedHeartbeats, Story, Text
from yarnling.simulation.account import Told

WIDTH = 110
WORDS_MIN = 30
"""The columns that the words beside the lifelines have at least."""
_TIME = 8
_GAP = 2
_INDENT = 2


class DrawnLine(Struct, frozen=True):
    """A line of output; `style` as in rich."""

    text: str
    style: str = ""


def drawn(story: Story, width: int = WIDTH) -> list[DrawnLine]:
    """The lines of a story, without its question, at most so wide (or a little wider, if there are many lifelines)."""
    drawing = _Drawing(story.participants, width)
    lines: list[DrawnLine] = []
    is_diagram = False
    for part in story.parts:
        is_step = not isinstance(part, Text | Rows)
        if not is_step or not is_diagram:
            lines.append(DrawnLine(""))
        if is_step and not is_diagram:
            lines.append(drawing.head)
        lines += drawing.lines(part)
        is_diagram = is_step
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


def lines_of(part: Text | Rows, width: int = WIDTH) -> list[DrawnLine]:
    """The lines of a paragraph or a table."""
    return [DrawnLine(line) for line in wrapped(part.text, width)] if isinstance(part, Text) else _table(part)


def wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width) or [""]


def styled(line: DrawnLine) -> Styled:
    return Styled(line.text, line.style)


class _Drawing:
    def __init__(self, participants: tuple[str, ...], room: int) -> None:
        self._participants = participants
        self._room = room
        width = max(len(name) for name in participants) + _GAP
        self._width = max(width, 9)
        self._centers = [_TIME + _GAP + index * self._width + self._width // 2 for index in range(len(participants))]
        self._right = self._centers[-1] + self._width // 2 + _GAP

    @property
    def head(self) -> DrawnLine:
        row = [" "] * self._right
        for name, center in zip(self._participants, self._centers, strict=True):
            start = center - len(name) // 2
            row[start : start + len(name)] = name
        return DrawnLine(("".join(row)).rstrip(), "bold")

    def lines(self, part: Part) -> list[DrawnLine]:
        match part:
            case Text() | Rows():
                return lines_of(part, self._room)
            case SkippedHeartbeats(count):
                plural = "heartbeat" if count == 1 else "heartbeats"
                return self._row(part, f"({count} {plural} without news)", "dim")
            case Told(rpc=""):
                return self._row(part, f"* {part.text}", "yellow" if part.change is None else "green")
            case Told():
                words = f"{'reply to ' if part.is_reply else ''}{part.rpc}" + (f": {part.text}" if part.text else "")
                return self._row(part, words, "" if part.is_reply else "cyan")

    def _row(self, part: Told | SkippedHeartbeats, words: str, style: str) -> list[DrawnLine]:
        time = "" if isinstance(part, SkippedHeartbeats) else f"{part.at_ms / 1000:.3f}"
        lanes = self._lanes(part)
        room = max(WORDS_MIN, self._room - self._right)
        first, *rest = textwrap.wrap(words, room) or [""]
        plain = self._lanes(None)
        return [
            DrawnLine(f"{time:>{_TIME}}{lanes}{first}".rstrip(), style),
            *(DrawnLine(f"{'':>{_TIME}}{plain}  {line}".rstrip(), style) for line in rest),
        ]

    def _lanes(self, part: Told | SkippedHeartbeats | None) -> str:
        row = [" "] * (self._right - _TIME)
        centers = {name: center - _TIME for name, center in zip(self._participants, self._centers, strict=True)}
        for center in centers.values():
            row[center] = "│"
        match part:
            case Told(place=place, target=target) if place in centers and target in centers:
                _arrow(row, centers[place], centers[target])
            case Told(place=place, rpc="") if place in centers:
                row[centers[place]] = "*"
            case SkippedHeartbeats():
                for center in centers.values():
                    row[center] = "┊"
            case _:
                pass
        return "".join(row)


def _arrow(row: list[str], source: int, target: int) -> None:
    low, high = min(source, target), max(source, target)
    for column in range(low + 1, high):
        row[column] = "─"
    row[source] = "├" if source < target else "┤"
    row[target] = "│"
    row[target + (-1 if source < target else 1)] = ">" if source < target else "<"


def _table(rows: Rows) -> list[DrawnLine]:
    widths = [max(len(cell) for cell in column) for column in zip(rows.columns, *rows.rows, strict=True)]
    lines = [rows.columns, *rows.rows]
    texts = ["  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    return [DrawnLine(texts[0].rstrip(), "bold"), *(DrawnLine(text.rstrip()) for text in texts[1:])]
