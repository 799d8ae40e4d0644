"""A run with the changes that a user made at certain positions. It goes only forwards."""

from __future__ import annotations

from msgspec import Struct

from yarnling.stepping.changes import ClusterChange
from yarnling.stepping.recorder import Noted
from yarnling.stepping.sources import Source


class Made(Struct, frozen=True):
    """A change that was made after the first `position` steps. It is the step after them."""

    position: int
    change: ClusterChange


class Player:
    """Plays a run step by step.

    `position`: how many steps were made. `checked`: with the checks of invariants that the source has.
    """

    def __init__(self, source: Source, changes: tuple[Made, ...], *, checked: bool) -> None:
        self.run = source.start(checked=checked)
        self.position = 0
        self._changes = {made.position: made.change for made in changes}

    def advance(self) -> list[Noted]:
        """Make one step; returns its notes, none at the end of the run.

        Raises InvalidArgumentException if the cluster does not allow the change that is made here.
        """
        change = self._changes.get(self.position)
        if change is None:
            noted = self.run.advance()
        else:
            with self.run.ending_at_a_failure():
                change.apply(self.run)
            noted = self.run.noted()
        self.position += bool(noted)
        return noted
