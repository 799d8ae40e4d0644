"""What a leaf remembers of its users' limits until one of its users changes: the limit, and that it was reached.

Hadoop's userLimitsCache. Of many applications of a user at its limit only the first is checked in a visit.
"""

from __future__ import annotations

from rm.scheduler.context import RESPECT, SchedulingMode
from yarn.resource import Resource


class CachedUserLimit:
    """One user's limit, and that it failed already with `reservation` held."""

    __slots__ = ("_can_assign", "_reservation", "limit")

    def __init__(self, limit: Resource, none: Resource) -> None:
        self.limit = limit
        self._can_assign = True
        self._reservation = none

    def has_failed_with(self, reserved: Resource) -> bool:
        """True if an application that holds at least as much in reservations has failed."""
        return not self._can_assign and reserved.fits_in(self._reservation)

    def note_failure(self, reserved: Resource) -> None:
        """An application that holds `reserved` in reservations is above the limit."""
        if self._reservation.fits_in(reserved):
            self._can_assign = False
            self._reservation = reserved


class UserLimitCache:
    """{user: limit} for each partition and mode; empty as soon as the version of the users has moved."""

    __slots__ = ("_limits", "_version")

    def __init__(self) -> None:
        self._limits: dict[tuple[str, bool], dict[str, CachedUserLimit]] = {}
        self._version = -1

    def at(self, version: int, partition: str, mode: SchedulingMode) -> dict[str, CachedUserLimit]:
        """The limits of this version, to be filled by who looks them up."""
        if self._version != version:
            self._version = version
            self._limits = {}
        return self._limits.setdefault((partition, mode is RESPECT), {})
