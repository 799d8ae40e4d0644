"""State machines as tables: a row a transition, every state has a row, the final ones an empty one.

    LIFECYCLE = Lifecycle(
        "RMContainer",
        initial=RMContainerState.NEW,
        rows=[
            Row(S.NEW, E.START, S.ALLOCATED, allocated, "the scheduler placed it"),
            Row(S.RUNNING, E.FINISHED, (S.COMPLETED,), finished, "the NM told its end"),
            ...
        ],
    )

An action is `(subject, event) -> next state | None`. It returns None where the row names one target, and the state
it chose where the row names several. The rules a table keeps: an event without a row raises `IllegalTransition` and
nothing has changed; an action runs before the state changes, so it sees where it comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct

from yarn.errors import InternalError

S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)

HISTORY_MAX = 16
"""Changes of state that a subject remembers (heartbeats that change none are not among them): enough for the whole
life of most objects, bounded for the others."""


class IllegalTransition(InternalError):
    """An event that the state has no row for; the subject is unchanged."""


class Row(Struct, Generic[S, E], frozen=True):
    """One transition: `source` --`event`--> one of `targets`, doing `action`, because of `reason`."""

    source: S
    event: E
    target: S | tuple[S, ...]
    action: Callable[[Any, Any], S | None] | None = None
    reason: str = ""

    @property
    def targets(self) -> tuple[S, ...]:
        return self.target if isinstance(self.target, tuple) else (self.target,)


class Transition(NamedTuple):
    """What happened once: for the story that an error about an object tells."""

    event: Enum
    at_ms: int
    source: Enum
    target: Enum

    def __str__(self) -> str:
        return f"{self.at_ms}: {self.source.name} --{self.event.name}--> {self.target.name}"


def ignored(state: S, events: Iterable[E], reason: str) -> list[Row[S, E]]:
    """Rows for events that may reach `state` and change nothing there."""
    return [Row(state, event, state, None, reason) for event in events]


class Lifecycle(Generic[S, E]):
    """A table of rows, checked when it is made: one row for each (state, event), all states known."""

    def __init__(self, name: str, initial: S, rows: Iterable[Row[S, E]]) -> None:
        self.name = name
        self.initial = initial
        self.rows = tuple(rows)
        self.states: type[S] = type(initial)
        self.events: type[E] = type(self.rows[0].event)
        # By the identity of the members: they live for ever, and an Enum's own hash is computed in Python each time.
        self._table: dict[int, dict[int, Row[S, E]]] = {id(state): {} for state in self.states}
        for row in self.rows:
            if id(row.event) in self._table[id(row.source)]:
                raise InternalError(f"{name}: two rows for {row.source.name} --{row.event.name}-->")
            if len(row.targets) > 1 and row.action is None:
                raise InternalError(f"{name}: {row.source.name} --{row.event.name}--> has nobody to choose")
            self._table[id(row.source)][id(row.event)] = row

    def row(self, state: S, event: E) -> Row[S, E] | None:
        """The row for an event in a state, None if it is illegal there."""
        return self._table[id(state)].get(id(event))

    def is_final(self, state: S) -> bool:
        """True if no event leads away from the state."""
        return all(row.targets == (state,) for row in self._table[id(state)].values())

    def mermaid(self) -> str:
        """The table as a Mermaid state diagram; self-loops without an action are left out."""
        lines = ["stateDiagram-v2", f"    [*] --> {self.initial.name}"]
        for source, target, events in self._edges():
            lines.append(f"    {source} --> {target}: {', '.join(events)}")
        lines += [f"    {state.name} --> [*]" for state in self.states if self.is_final(state)]
        return "\n".join(lines) + "\n"

    def _edges(self) -> list[tuple[str, str, list[str]]]:
        """(source, target, event names), rows of the same ends joined, in the order of the table."""
        edges: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            for target in row.targets:
                if target is row.source and row.action is None:
                    continue
                edges.setdefault((row.source.name, target.name), []).append(row.event.name)
        return [(source, target, events) for (source, target), events in edges.items()]


class Machine(Generic[S, E]):
    """A subject's place in a lifecycle, with the last transitions that led there.

    It does not know whose it is: a subject that nobody needs any more is freed at once, not when garbage is collected.
    """

    __slots__ = ("_lifecycle", "history", "state")

    def __init__(self, lifecycle: Lifecycle[S, E]) -> None:
        self._lifecycle = lifecycle
        self.state: S = lifecycle.initial
        self.history: list[Transition] = []

    def handle(self, subject: object, event: E, detail: object, now_ms: int) -> S:
        """Have `subject` take `event` at `now_ms`; the action gets (subject, detail). Returns the new state.

        Raises IllegalTransition, with the subject unchanged, if the state has no row for the event.
        """
        source = self.state
        row = self._lifecycle.row(source, event)
        if row is None:
            raise IllegalTransition(
                f"{self._lifecycle.name} {subject}: {event.name} is illegal in {source.name}{self.story()}"
            )
        chosen = row.action(subject, detail) if row.action is not None else None
        named = row.targets
        target = chosen if chosen is not None else named[0]
        if target is not named[0] and target not in named:
            raise InternalError(f"{self._lifecycle.name}: {source.name} --{event.name}--> {target.name}?")
        if target is not source:
            self.state = target
            if len(self.history) == HISTORY_MAX:
                del self.history[0]
            self.history.append(Transition(event, now_ms, source, target))
        return target

    def story(self) -> str:
        """The last transitions, one a line, for a message; empty if there are none."""
        return "".join(f"\n    {transition}" for transition in self.history)


def complement(lifecycle: Lifecycle[S, E]) -> Sequence[tuple[S, E]]:
    """All (state, event) pairs that are illegal, in the order of the enumerations."""
    return [
        (state, event)
        for state in lifecycle.states
        for event in lifecycle.events
        if lifecycle.row(state, event) is None
    ]
