"""Space-time diagrams as text, with a lifeline for each participant, and words beside them; and tables.

 time   client     RM      NM n1
2.308             │◄───────┤  nodeHeartbeat: response id 2
2.308             │        │  * node n1: NEW -> RUNNING
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from msgspec import Struct
from rich.text import Text as Styled

WORDS_MIN = 30
"""The columns that the words beside the lifelines have at least."""
_TIME = 8
_GAP = 2


class DrawnLine(Struct, frozen=True):
    """A line of output; `style` as in rich."""

    text: str
    style: str = ""


def wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width) or [""]


def styled(line: DrawnLine) -> Styled:
    return Styled(line.text, line.style)


class TextDiagram:
    """Draws rows of a diagram, at most `room` wide, or a little wider if there are many lifelines."""

    def __init__(self, participants: Sequence[str], room: int) -> None:
        self._room = room
        width = max(max(len(name) for name in participants) + _GAP, 9)
        self._centers = {name: _GAP + index * width + width // 2 for index, name in enumerate(participants)}
        self._right = self._centers[participants[-1]] + width // 2 + _GAP

    @property
    def head(self) -> DrawnLine:
        """The names of the participants."""
        row = [" "] * (_TIME + self._right)
        for name, center in self._centers.items():
            start = _TIME + center - len(name) // 2
            row[start : start + len(name)] = name
        return DrawnLine(("".join(row)).rstrip(), "bold")

    def arrow(self, at_ms: int, source: str, target: str, words: str, style: str) -> list[DrawnLine]:
        """A message, from one lifeline to another."""
        row = self._lifelines()
        if source in self._centers and target in self._centers:
            _arrow(row, self._centers[source], self._centers[target])
        return self._lines(_seconds(at_ms), row, words, style)

    def mark(self, at_ms: int, place: str, words: str, style: str) -> list[DrawnLine]:
        """A mark on a lifeline."""
        row = self._lifelines()
        if place in self._centers:
            row[self._centers[place]] = "*"
        return self._lines(_seconds(at_ms), row, words, style)

    def gap(self, words: str) -> list[DrawnLine]:
        """A row for what is left out."""
        return self._lines("", self._lifelines("┊"), words, "dim")

    def _lifelines(self, line: str = "│") -> list[str]:
        row = [" "] * self._right
        for center in self._centers.values():
            row[center] = line
        return row

    def _lines(self, time: str, row: list[str], words: str, style: str) -> list[DrawnLine]:
        first, *rest = wrapped(words, max(WORDS_MIN, self._room - _TIME - self._right))
        plain = "".join(self._lifelines())
        return [
            DrawnLine(f"{time:>{_TIME}}{''.join(row)}{first}".rstrip(), style),
            *(DrawnLine(f"{'':>{_TIME}}{plain}  {line}".rstrip(), style) for line in rest),
        ]


def _seconds(at_ms: int) -> str:
    return f"{at_ms / 1000:.3f}"


def _arrow(row: list[str], source: int, target: int) -> None:
    low, high = min(source, target), max(source, target)
    for column in range(low + 1, high):
        row[column] = "─"
    row[source] = "├" if source < target else "┤"
    row[target] = "│"
    row[target + (-1 if source < target else 1)] = ">" if source < target else "<"


def table(columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> list[DrawnLine]:
    """A table, with its head in bold."""
    widths = [max(len(cell) for cell in column) for column in zip(columns, *rows, strict=True)]
    lines = [columns, *rows]
    texts = ["  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    return [DrawnLine(texts[0].rstrip(), "bold"), *(DrawnLine(text.rstrip()) for text in texts[1:])]
