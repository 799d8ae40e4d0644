"""The engine that keeps the state of the ResourceManager: what the store must do, whatever it is made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from rm.core.effects import SaveApplication, StoreEffect
from rm.core.stored_state import RMState
from rm.shell.row_state_store import Keys
from rm.shell.store_rows import RecordTooLarge


class StateStoreEngine(Protocol):
    """A state store that one ResourceManager at a time may write. Its methods block, and are called one at a time."""

    @property
    def description(self) -> str:
        """The kind of the store, for the log."""
        ...

    def recover(self) -> RMState:
        """The state for a ResourceManager that is the only one, in an epoch that no other has."""
        ...

    def take_over(self, term: int) -> int:
        """Fence all earlier leaders; returns the epoch of this ResourceManager, 0 for the first of all.

        Raises StoreFenced if a later leader has taken over already.
        """
        ...

    def load(self) -> RMState:
        """The stored state, with the epoch that `take_over` returned."""
        ...

    def keys(self, kind: str) -> Keys: ...

    def write_keys(self, kind: str, keys: Keys) -> None:
        """Replace the keys of a kind. Raises StoreFenced once another has taken over; then nothing was written."""

    def write(self, effects: Iterable[StoreEffect]) -> None:
        """Write all effects, or none. Raises StoreFenced as `write_keys`, StoreUnavailable: try again later."""

    def refusal(self, effect: SaveApplication) -> RecordTooLarge | None:
        """The error for a new application that this store can never take."""
        ...

    def close(self) -> None: ...
