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

from yarnling.report.space_time_data import shortened_message, titles_of_nodes
from yarnling.run.names import short
from yarnling.run.records import LOST, RecordedRun, Role
from yarnling.run.wording import reply_label, request_label

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


def run_lines(run: RecordedRun, from_ms: int, most: int, room: int) -> list[DrawnLine]:
    """Draw the calls and faults of a recorded run from a time on, at most `most` of them.

    Times are seconds since the start of the run. Heartbeats without news are only counted.
    """
    steps = [step for step in _steps(run) if step.at_ms >= from_ms]
    shown, left = steps[:most], len(steps) - most
    used = {place for step in shown for place in (step.place, step.target)}
    participants = [one.title for one in run.lifelines if one.title in used]
    if not participants:
        return []
    diagram = TextDiagram(participants, room)
    lines, quiet = [diagram.head], 0
    for step in shown:
        if step.is_quiet:
            quiet += 1
            continue
        if quiet:
            lines += diagram.gap(f"({quiet} {'call' if quiet == 1 else 'calls'} without news)")
            quiet = 0
        at_ms = step.at_ms - run.from_ms
        if step.target:
            lines += diagram.arrow(at_ms, step.place, step.target, step.words, "")
        else:
            lines += diagram.mark(at_ms, step.place, f"* {step.words}", "")
    return [*lines, *(diagram.gap(f"({left} more)") if left > 0 else ())]


class _Step(Struct, frozen=True):
    """A message from `place` to `target`, or if that is "" something that happens at `place`."""

    at_ms: int
    place: str
    target: str
    words: str
    is_quiet: bool = False


def _steps(run: RecordedRun) -> list[_Step]:
    """The requests, the replies that say something, and the faults of a run, by time."""
    titles = {one.name: one.title for one in run.lifelines}
    nodes = titles_of_nodes(run)
    found = []
    for call in (shortened_message(one, nodes) for one in run.calls):
        source, target, said = titles[call.source], titles[call.target], reply_label(call)
        found.append(_Step(call.sent_ms, source, target, request_label(call), call.is_quiet))
        if call.outcome in LOST:
            found.append(_Step(call.over_ms or call.sent_ms, source, "", f"{call.rpc}: {said}"))
        elif said and call.replied_ms is not None:
            found.append(_Step(call.replied_ms, target, source, f"reply to {call.rpc}: {said}", call.is_quiet))
    for fault in run.faults:
        hosts = [titles[name] for name in fault.hosts if name in titles]
        words = f"{fault.kind} {', '.join(hosts) or short(fault.target)}"
        place = hosts[0] if hosts else next((one.title for one in run.lifelines if one.role is Role.RM), "")
        found.append(_Step(fault.from_ms, place, "", words))
        if fault.until_ms is not None:
            found.append(_Step(fault.until_ms, place, "", f"the end of {words}"))
    return sorted(found, key=lambda step: step.at_ms)
