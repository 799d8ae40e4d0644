"""A lesson: its idea, what the reader changes, and the play that is run; and the narrator of its story."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from msgspec import Struct

from yarn.errors import InvalidArgumentException
from yarn.suggestions import did_you_mean
from yarnling.lessons.scene.stage import Stage
from yarnling.lessons.scene.story import Part, Question, Rows, SkippedHeartbeats, Story, Text
from yarnling.report.curves import Bars, Curves
from yarnling.simulation.account import KINDS, Told

Value: TypeAlias = int | float | str
Setting: TypeAlias = tuple[Value, ...]
"""The values of all options of a lesson, in their order."""


class Number(Struct, frozen=True):
    """A number that the reader changes: an option of the lesson's command. `values`: some to try.

    It is a whole number if its default is one.
    """

    name: str
    default: int | float
    minimum: int | float
    maximum: int | float
    meaning: str
    values: tuple[int | float, ...]

    @property
    def bounds(self) -> str:
        return f"{self.minimum}..{self.maximum}"

    @property
    def described_bounds(self) -> str:
        return f"{self.minimum} to {self.maximum}"

    def checked(self, text: str) -> Value:
        """The number in `text`. Raises InvalidArgumentException if it is not one, or out of its bounds."""
        is_whole = isinstance(self.default, int)
        bounds = f"a {'whole ' if is_whole else ''}number from {self.minimum} to {self.maximum}"
        try:
            value = int(text) if is_whole else float(text)
        except ValueError:
            raise InvalidArgumentException(f"--{self.name} {text!r} is not {bounds}") from None
        if not self.minimum <= value <= self.maximum:
            raise InvalidArgumentException(f"--{self.name} {value} is out of bounds: give {bounds}")
        return value


class WordChoice(Struct, frozen=True):
    """A word that the reader changes: an option of the lesson's command. The first of its `values` is the default."""

    name: str
    values: tuple[str, ...]
    meaning: str

    @property
    def default(self) -> str:
        return self.values[0]

    @property
    def bounds(self) -> str:
        return "|".join(self.values)

    @property
    def described_bounds(self) -> str:
        return f"{', '.join(self.values[:-1])} or {self.values[-1]}"

    def checked(self, text: str) -> Value:
        """The word itself. Raises InvalidArgumentException if it is not one of the choice."""
        if text not in self.values:
            nearest = did_you_mean(text, list(self.values))
            raise InvalidArgumentException(f"--{self.name} {text!r}: {nearest}give {self.described_bounds}")
        return text


Option: TypeAlias = Number | WordChoice


class Lesson(Struct, frozen=True):
    """A lesson. `idea`: what it is about, in paragraphs. `terms`: {Hadoop's term: what it means}.

    `set_up`: the cluster with all that will be done to it, before its start. `play`: runs it, and tells the story.
    Both are called with the values of the options, in their order, and with `trace=` if the whole run is wanted; each
    parameter after the first has its option's default. `read_more`: where the rules are in Hadoop, and in this project.
    `others`: more options, where one is not enough.
    """

    number: int
    name: str
    title: str
    idea: tuple[str, ...]
    terms: dict[str, str]
    option: Option
    set_up: Callable[..., Stage]
    play: Callable[..., Story]
    read_more: tuple[str, ...]
    others: tuple[Option, ...] = ()

    @property
    def options(self) -> tuple[Option, ...]:
        return (self.option, *self.others)

    @property
    def defaults(self) -> Setting:
        return tuple(option.default for option in self.options)

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Settings to try: the values of each option, with the defaults of the others."""
        tried = [
            (*self.defaults[:place], value, *self.defaults[place + 1 :])
            for place, option in enumerate(self.options)
            for value in option.values
        ]
        return tuple(dict.fromkeys(tried))


class Narrator:
    """Collects the story of a stage: call `say` and `show` between its runs.

    A play that runs its story more than once narrates one stage, and takes figures for tables and pictures from all.
    """

    def __init__(self, stage: Stage, participants: tuple[str, ...]) -> None:
        self._stage = stage
        self._participants = participants
        self._parts: list[Part] = []
        self._shown = 0

    def say(self, text: str) -> None:
        self._parts.append(Text(text))

    def contrast(self, claim: str, truth: str) -> None:
        """Say a common claim, and what Hadoop does, as it was measured or recorded."""
        self.say(f"Often written: {claim} Hadoop 3.4.1: {truth}")

    def table(self, columns: tuple[str, ...], *rows: tuple[object, ...]) -> None:
        self._parts.append(Rows(columns, tuple(tuple(str(cell) for cell in row) for row in rows)))

    def draw(self, picture: Curves | Bars) -> None:
        self._parts.append(picture)

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

    def story(self, question: Question, measured: Mapping[str, Value]) -> Story:
        return Story(self._participants, tuple(self._parts), question, dict(measured))


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
