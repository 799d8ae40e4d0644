"""The common part of the user interfaces: a run and its forks, and the commands that move in them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping

from msgspec import Struct

from yarn.errors import InvalidArgumentException
from yarnling.stepping.changes import ClusterChange
from yarnling.stepping.player import Made
from yarnling.stepping.session import Session
from yarnling.stepping.sources import Source
from yarnling.stepping.steps import Step

BRANCHES_MAX = 30
TIME_MAX_S = 1e6
COUNT_MAX = 100_000
MAIN = "the run"


class Branch(Struct, frozen=True):
    """A run. `name`: the change that made it from another one."""

    name: str
    session: Session


class Controls:
    """Carries out commands. `branches[current]` is the run that is shown."""

    def __init__(self, source: Source, changes: tuple[Made, ...] = ()) -> None:
        self.source = source
        self.branches = [Branch(_name(changes), Session(source, changes))]
        self.current = 0
        self._commands: Mapping[str, Callable[[str], str]] = {
            "next": lambda count: self._move(_count(count)),
            "back": lambda count: self._move(-_count(count)),
            "heartbeat": lambda node: self._find(_heartbeat_of(node), "heartbeat that the ResourceManager handles"),
            "previous heartbeat": lambda node: self._find_before(_heartbeat_of(node), "heartbeat"),
            "change": lambda _: self._find(_is_change, "change"),
            "previous change": lambda _: self._find_before(_is_change, "change"),
            "moment": lambda _: self._to_moment(1),
            "previous moment": lambda _: self._to_moment(-1),
            "moments": lambda _: self._look_ahead(),
            "opening": lambda _: self._open(),
            "start": lambda _: self._go_to(0),
            "end": lambda _: self._go_to(1 << 60),
            "step": lambda number: self._go_to(_count(number)),
            "time": self._go_to_time,
            "fork": self._fork,
            "branch": self._select,
        }

    @property
    def session(self) -> Session:
        return self.branches[self.current].session

    def do(self, command: str, argument: str = "") -> str:
        """Carry out a command; returns a message for the user, usually "".

        Raises InvalidArgumentException for a command or an argument that is not valid; then nothing has changed.
        """
        if command not in self._commands:
            raise InvalidArgumentException(f"there is no command {command[:40]!r}: use {', '.join(self._commands)}")
        return self._commands[command](argument)

    def repeated(self) -> str:
        """The command line that opens this run at this position."""
        return f"{command_line(self.session)} --at {self.session.position}"

    def close(self) -> None:
        for branch in self.branches:
            branch.session.close()

    def _move(self, count: int) -> str:
        before = self.session.position
        self.session.next(count)
        if self.session.position != before:
            return ""
        return "this is the end of the run" if count > 0 else "this is the start of the run"

    def _go_to(self, position: int) -> str:
        self.session.go_to(position)
        return ""

    def _go_to_time(self, text: str) -> str:
        self.session.go_to_time(_milliseconds(text))
        return ""

    def _find(self, wanted: Callable[[Step], bool], what: str) -> str:
        return "" if self.session.go_to_next(wanted) else f"no {what} follows in this run"

    def _find_before(self, wanted: Callable[[Step], bool], what: str) -> str:
        return "" if self.session.go_to_previous(wanted) else f"there is no {what} before this position"

    def _to_moment(self, by: int) -> str:
        """Go to the next or the previous moment; further steps are looked at until there is one."""
        session = self.session
        while not session.go_to_moment(by):
            if by < 0 or session.is_complete:
                return f"no moment {'follows in this run' if by > 0 else 'is before this position'}"
            session.look_ahead()
        return ""

    def _look_ahead(self) -> str:
        """Look for moments in further steps."""
        session, known = self.session, len(self.session.moments)
        session.look_ahead()
        if len(session.moments) > known:
            return ""
        return (
            "these are all moments of the run"
            if session.is_complete
            else "there is none in the next steps; look further"
        )

    def _open(self) -> str:
        self.session.go_to_opening()
        return ""

    def _fork(self, text: str) -> str:
        change = ClusterChange.parse(text)
        if len(self.branches) >= BRANCHES_MAX:
            raise InvalidArgumentException(f"there are {BRANCHES_MAX} runs already: start again to make others")
        forked = self.session.fork(change)
        self.branches.append(Branch(_name(forked.changes), forked))
        self.current = len(self.branches) - 1
        return ""

    def _select(self, text: str) -> str:
        if not text.isascii() or not text.isdecimal() or int(text) >= len(self.branches):
            raise InvalidArgumentException(
                f"{text[:40]!r} is not the number of a run from 0 to {len(self.branches) - 1}"
            )
        self.current = int(text)
        return ""


def command_line(session: Session) -> str:
    """The command that opens the session's run."""
    words = ["yarnling", "simulate", "step", *session.source.arguments]
    for made in session.changes:
        words += ["--change", f"{made.position}: {made.change.text}"]
    return shlex.join(words)


def go_to(session: Session, at: str) -> None:
    """Go to a step, or with the letter s to a time. Raises InvalidArgumentException for any other text."""
    if at.endswith("s"):
        session.go_to_time(_milliseconds(at))
    else:
        session.go_to(_count(at))


def _milliseconds(text: str) -> int:
    try:
        seconds = float(text.strip().removesuffix("s"))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= TIME_MAX_S:
        raise InvalidArgumentException(f"{text[:40]!r} is not a time in seconds from 0 to {TIME_MAX_S:g}")
    return round(1000 * seconds)


def _name(changes: tuple[Made, ...]) -> str:
    return ", ".join(f"{made.change.text} (after step {made.position})" for made in changes) or MAIN


def _count(text: str) -> int:
    text = text or "1"
    if not text.isascii() or not text.isdecimal() or not int(text[:9]) <= COUNT_MAX:
        raise InvalidArgumentException(f"{text[:40]!r} is not a whole number from 0 to {COUNT_MAX}")
    return int(text)


def _is_change(step: Step) -> bool:
    return step.is_change


def _heartbeat_of(node: str) -> Callable[[Step], bool]:
    """A predicate for heartbeats of this node, or of any node."""
    return lambda step: step.node != "" and node in {"", step.node}
