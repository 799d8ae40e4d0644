"""A row of the table of a state machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr

State = TypeVar("State", bound=Enum)
Subject = TypeVar("Subject")
Event = TypeVar("Event")


class Row(Struct, Generic[Subject, State, Event], frozen=True):
    """A transition: in state `source`, `event` leads to one of `targets` and runs `action`; `reason` explains it.

    `targets` is derived from `target`, which is one state or several.
    """

    source: State
    event: type[Event]
    target: State | tuple[State, ...]
    action: Callable[[Subject, Event], State | None] | None = None
    reason: str = ""
    targets: tuple[State, ...] = ()

    def __post_init__(self) -> None:
        force_setattr(self, "targets", self.target if isinstance(self.target, tuple) else (self.target,))


def ignored(state: State, events: Iterable[type], reason: str) -> list[Row[Any, State, Any]]:
    """Rows for events that may arrive in `state` and change nothing."""
    return [Row(state, event, state, None, reason) for event in events]
