"""The engine that elects the active one of several ResourceManagers.

It is replaceable, as the state store is (rm.shell.state_store_engine); `rm/shell/ha/engines.py` chooses them.
docs/design/high-availability.md has their guarantees.
"""

from __future__ import annotations

from typing import Protocol


class Candidate(Protocol):
    """A ResourceManager that takes part in elections. Its methods are called from the event loop, and do not block."""

    def elected(self, term: int) -> None:
        """Become active. `term` is larger than that of every earlier leader."""

    def deposed(self, reason: str) -> None:
        """Stop being active at once; a no-op for a standby."""


class Elector(Protocol):
    """Decides, with the electors of the other ResourceManagers, which one leads; at most one at any time."""

    @property
    def description(self) -> str:
        """The connection to the other electors, for /ws/v1/cluster/info (haZooKeeperConnectionState)."""
        ...

    async def open(self, candidate: Candidate) -> None:
        """Connect. Raises YarnException if that never can succeed."""

    async def campaign(self) -> None:
        """Take part in elections, also after each loss of the leadership, until `resign`."""

    async def resign(self) -> None:
        """Take part no more. The leader gives its leadership up, so that another may lead at once."""

    def holds(self) -> bool:
        """True while this ResourceManager surely leads. Asked for each call and each reply, so it does no I/O.

        It becomes False before another can lead, also if this process was stopped meanwhile.
        """
        ...

    async def leader(self) -> str:
        """The id of the ResourceManager that leads, as far as is known; "" for none."""
        ...

    async def close(self) -> None:
        """Resign and disconnect."""
