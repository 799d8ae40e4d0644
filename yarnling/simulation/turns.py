"""The order in which periodic heartbeats come: by their time in the period, then as the engine orders one ms."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Generic, Protocol, TypeVar

Turn = tuple[int, ...]
"""When in a period the heartbeats are due (ms), then the sender's place in that ms. It never changes."""


class HasTurn(Protocol):
    """A sender of heartbeats."""

    @property
    def turn(self) -> Turn: ...


Sender = TypeVar("Sender", bound=HasTurn)


class Turns(Generic[Sender]):
    """Senders with the same period, in the order of their turns. No two have the same turn."""

    __slots__ = ("_senders", "_turns")

    def __init__(self) -> None:
        self._turns: list[Turn] = []
        self._senders: list[Sender] = []

    def __bool__(self) -> bool:
        return bool(self._senders)

    def add(self, sender: Sender) -> None:
        """Add a sender, in the place of an earlier one with its turn."""
        place = bisect_left(self._turns, sender.turn)
        if self._turns[place : place + 1] == [sender.turn]:
            self._senders[place] = sender
        else:
            self._turns.insert(place, sender.turn)
            self._senders.insert(place, sender)

    def discard(self, sender: Sender) -> None:
        """Remove the sender, if it is there."""
        place = bisect_left(self._turns, sender.turn)
        if place < len(self._senders) and self._senders[place] is sender:
            del self._turns[place]
            del self._senders[place]

    def coming(self, phase_ms: int, has_passed: Callable[[Sender], bool]) -> Iterator[Sender]:
        """Yield all of them, the next one first, at a time of their period at which some may have passed.

        Do not add or remove any meanwhile.
        """
        senders = self._senders
        first = bisect_left(self._turns, (phase_ms,))
        while first < len(senders) and self._turns[first][0] == phase_ms and has_passed(senders[first]):
            first += 1
        return chain(islice(senders, first, None), islice(senders, first))
