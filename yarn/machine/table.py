"""State machines as tables: one row for each transition, keyed by (state, event class).

    TURNSTILE = Lifecycle(
        "Turnstile",
        State.LOCKED,
        [
            Row(State.LOCKED, Coin, State.OPEN, take_coin, "paid"),
            Row(State.OPEN, Push, State.LOCKED, None, "one person passes"),
        ],
    )

An event class stands for what happened; an event carries the data. An action is `(subject, event) -> state | None`: it
returns None where the row names one target, and the state it chose where the row names several. It runs before the
state changes, so it sees the state it comes from. An event without a row raises IllegalTransition and changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

from yarn.errors import InternalError
from yarn.machine.row import Row

State = TypeVar("State", bound=Enum)
Subject = TypeVar("Subject")

HISTORY_MAX = 16
"""The maximum of transitions that a machine remembers: enough for the whole life of most objects."""

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class IllegalTransition(InternalError):
    """The state has no row for the event; the subject is unchanged."""


class Transition(NamedTuple):
    """A past state change, kept for the history in error messages. `event` is the event's display name."""

    event: str
    at_ms: int
    source: Enum
    target: Enum

    def __str__(self) -> str:
        return f"{self.at_ms}: {self.source.name} --{self.event}--> {self.target.name}"


class Machine(Generic[State]):
    """The state of one object, and the last transitions that led to it, oldest first."""

    __slots__ = ("history", "state")

    def __init__(self, initial: State) -> None:
        self.state: State = initial
        self.history: list[Transition] = []


class Lifecycle(Generic[Subject, State]):
    """The table of one kind of object, checked when it is created: one row for each (state, event class).

    `describe` returns what the log of a state change states about its subject, besides the two states.
    """

    def __init__(
        self,
        name: str,
        initial: State,
        rows: Iterable[Row[Subject, State, Any]],
        describe: Callable[[Subject], str] | None = None,
    ) -> None:
        self.name = name
        self.initial = initial
        self.rows = tuple(rows)
        self.describe = describe
        self.states: type[State] = type(initial)
        self.events: tuple[type, ...] = tuple(dict.fromkeys(row.event for row in self.rows))
        self._event_names = {event: event_name(event, name) for event in self.events}
        # The key has the name of the state, because an Enum computes its hash in Python each time.
        self._table: dict[str, dict[type, Row[Subject, State, Any]]] = {state.name: {} for state in self.states}
        for row in self.rows:
            self._add(row)

    def _add(self, row: Row[Subject, State, Any]) -> None:
        shown = f"{self.name}: {row.source.name} --{self.event_name(row.event)}-->"
        by_event = self._table[row.source.name]
        if row.event in by_event:
            raise InternalError(f"{shown}: there are two rows for it")
        if len(row.targets) > 1 and row.action is None:
            raise InternalError(f"{shown}: several targets need an action that chooses")
        by_event[row.event] = row

    def row(self, state: State, event: type) -> Row[Subject, State, Any] | None:
        """The row for an event class in a state; None if the event is illegal there."""
        return self._table[state._name_].get(event)

    def event_name(self, event: type) -> str:
        """The name of an event class as logs, histories and diagrams of this lifecycle show it."""
        return self._event_names.get(event) or event_name(event, self.name)

    def handle(self, subject: Subject, machine: Machine[State], event: object, now_ms: int) -> State:
        """Make the transition of `event` at `now_ms`; returns the new state.

        Raises IllegalTransition, with the subject unchanged, if its state has no row for the event.
        """
        source = machine.state
        row = self._table[source._name_].get(type(event))
        if row is None:
            history = "".join(f"\n    {transition}" for transition in machine.history)
            raise IllegalTransition(
                f"{self.name} {subject}: {self.event_name(type(event))} is illegal in {source.name}{history}"
            )
        chosen = row.action(subject, event) if row.action is not None else None
        target = chosen if chosen is not None else row.targets[0]
        if target not in row.targets:
            raise InternalError(
                f"{self.name}: {source.name} --{self.event_name(row.event)}--> {target.name} is not in the row"
            )
        if target is not source:
            machine.state = target
            if len(machine.history) == HISTORY_MAX:
                del machine.history[0]
            machine.history.append(Transition(self._event_names[row.event], now_ms, source, target))
        return target

    def is_final(self, state: State) -> bool:
        """True if no event leads away from the state."""
        return all(row.targets == (state,) for row in self._table[state.name].values())

    def mermaid(self) -> str:
        """The table as a Mermaid state diagram, without self-loops that have no action."""
        lines = ["stateDiagram-v2", f"    [*] --> {self.initial.name}"]
        for source, target, events in self._edges():
            lines.append(f"    {source} --> {target}: {', '.join(events)}")
        lines += [f"    {state.name} --> [*]" for state in self.states if self.is_final(state)]
        return "\n".join(lines) + "\n"

    def _edges(self) -> list[tuple[str, str, list[str]]]:
        """(source, target, event names): rows with the same states are joined, in the order of the table."""
        edges: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            for target in row.targets:
                if target is row.source and row.action is None:
                    continue
                edges.setdefault((row.source.name, target.name), []).append(self.event_name(row.event))
        return [(source, target, events) for (source, target), events in edges.items()]


def event_name(event: type, lifecycle: str = "") -> str:
    """The name of an event class as logs and diagrams show it: KillContainer is KILL_CONTAINER, as in Hadoop.

    Hadoop has events of the same name in several state machines. Their classes begin with the name of the lifecycle,
    which is left out: RMNodeExpire is EXPIRE in the lifecycle RMNode.
    """
    return _WORD_START.sub("_", event.__name__.removeprefix(lifecycle)).upper()


def complement(lifecycle: Lifecycle[Any, State]) -> Sequence[tuple[State, type]]:
    """All (state, event class) pairs that are illegal, in the order of the states and of the table."""
    return [
        (state, event)
        for state in lifecycle.states
        for event in lifecycle.events
        if lifecycle.row(state, event) is None
    ]
