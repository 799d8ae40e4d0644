"""A lesson: its idea, the number that the reader changes, and the play that is run; and the narrator of its story."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from msgspec import Struct

from yarn.errors import InvalidArgumentException
from yarnling.lessons.scene.stage import Stage
from yarnling.lessons.scene.story import Part, Question, Rows, SkippedHeartbeats, Story, Text
from yarnling.simulation.account import KINDS, Told
from yarnling.simulation.trace_file import RunTrace


class Number(Struct, frozen=True):
    """The number of a lesson that the reader changes: an option of its command. `values`: some to try."""

    name: str
    default: int
    minimum: int
    maximum: int
    meaning: str
    values: tuple[int, ...]

    def checked(self, text: str) -> int:
        """The number in `text`. Raises InvalidArgumentException if it is not one, or out of its bounds."""
        bounds = f"a whole number from {self.minimum} to {self.maximum}"
        try:
            value = int(text)
        except ValueError:
            raise InvalidArgumentException(f"--{self.name} {text!r} is not {bounds}") from None
        if not self.minimum <= value <= self.maximum:
            raise InvalidArgumentException(f"--{self.name} {value} is out of bounds: give {bounds}")
        return value


class Play(Protocol):
    """Runs a lesson with this number. `trace`: gets the whole run."""

    def __call__(self, number: int, /, trace: RunTrace | None = None) -> Story: ...


class Lesson(Struct, frozen=True):
    """A lesson. `idea`: what it is about, in paragraphs. `terms`: {Hadoop's term: what it means}.

    `set_up`: the cluster with all that will be done to it, before its start. `play`: runs it, and tells the story.
    `read_more`: where the rules are in Hadoop, and in this project.
    """

    number: int
    name: str
    title: str
    idea: tuple[str, ...]
    terms: dict[str, str]
    option: Number
    set_up: Callable[[int], Stage]
    play: Play
    read_more: tuple[str, ...]


class Narrator:
    """Collects the story of a stage: call `say` and `show` between its runs."""

    def __init__(self, stage: Stage, participants: tuple[str, ...]) -> None:
        self._stage = stage
        self._participants = participants
        self._parts: list[Part] = []
        self._shown = 0

    def say(self, text: str) -> None:
        self._parts.append(Text(text))

    def table(self, columns: tuple[str, ...], *rows: tuple[object, ...]) -> None:
        self._parts.append(Rows(columns, tuple(tuple(str(cell) for cell in row) for row in rows)))

    def show(
        self,
        *,
        kinds: Collection[str] = KINDS,
        hidden: Collection[str] = (),
        every: bool = False,
    ) -> None:
        """Show what has happened since the last time. `kinds`: of the state changes. `hidden`: RPCs to leave out.

        Without `every`, heartbeats without news are only counted.
        """
        told = self._stage.account.told
        lines, self._shown = told[self._shown :], len(told)
        skipped = 0
        for line, is_skipped in _marked([line for line in lines if self._is_wanted(line, kinds, hidden)], every=every):
            if is_skipped:
                skipped += not line.is_reply
                continue
            if skipped:
                self._parts.append(SkippedHeartbeats(skipped))
                skipped = 0
            self._parts.append(line)
        if skipped:
            self._parts.append(SkippedHeartbeats(skipped))

    def skip(self) -> None:
        """Leave out what has happened since the last time."""
        self._shown = len(self._stage.account.told)

    def _is_wanted(self, line: Told, kinds: Collection[str], hidden: Collection[str]) -> bool:
        """True if a line is shown: messages from or to a participant without a lifeline are not."""
        if line.change is not None:
            return line.change.kind in kinds
        return not line.rpc or (line.rpc not in hidden and {line.place, line.target} <= {*self._participants})

    def story(self, question: Question, measured: dict[str, int | str]) -> Story:
        return Story(self._participants, tuple(self._parts), question, measured)


def _marked(lines: list[Told], *, every: bool) -> list[tuple[Told, bool]]:
    """Mark the lines to leave out: quiet requests that had no effect and got a quiet reply, and that reply."""
    marked: list[tuple[Told, bool]] = []
    for index, line in enumerate(lines):
        is_skipped = False
        if not every and line.is_quiet:
            is_skipped = _is_alone(lines, index - 1 if line.is_reply else index)
        marked.append((line, is_skipped))
    return marked


def _is_alone(lines: list[Told], index: int) -> bool:
    """True if the request at that place and its reply are quiet, and nothing else follows at that time."""
    if not 0 <= index < len(lines) - 1:
        return True
    request, reply = lines[index], lines[index + 1]
    if not (request.is_quiet and reply.is_quiet):
        return False
    after = lines[index + 2] if index + 2 < len(lines) else None
    return after is None or bool(after.rpc) or after.at_ms != request.at_ms
