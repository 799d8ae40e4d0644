"""How long applications of a queue may live (QueueAppLifetimeAndLimitSettings), in seconds.

A maximum below 0 is the parent's, 0 is none at all. A default below 0 is the parent's where any queue above has one,
but not above the own maximum; and since a maximum that nobody set is -1, a parent's default without one is lost.
"""

from __future__ import annotations

from msgspec import Struct

from rm.scheduler.config.reader import Reader


class ApplicationLifetime(Struct, frozen=True):
    """`maximum_s`, `default_s`: not above 0 = none; `is_default_specified`: by this queue or one above."""

    maximum_s: int
    default_s: int
    is_default_specified: bool

    def of(self, requested_s: int) -> int:
        """What an application gets that asks for `requested_s` (not above 0: for nothing); not above 0: no end."""
        if requested_s <= 0:
            return self.default_s
        return requested_s if self.maximum_s <= 0 else min(requested_s, self.maximum_s)


def read_lifetime(reader: Reader, prefix: str, above: ApplicationLifetime | None) -> ApplicationLifetime:
    """The queue's, whose keys begin with `prefix`; `above` is the parent's, None for root."""
    maximum_s = reader.long(prefix + "maximum-application-lifetime", -1)
    default_s = reader.long(prefix + "default-application-lifetime", -1)
    if above is None:
        return ApplicationLifetime(maximum_s, default_s, default_s >= 0)
    specified = default_s >= 0 or above.is_default_specified
    if maximum_s < 0:
        maximum_s = above.maximum_s
    if default_s < 0:
        default_s = min(above.default_s, maximum_s) if specified else maximum_s
    if 0 < maximum_s < default_s:
        reader.fault(
            prefix + "default-application-lifetime",
            f"Default lifetime {default_s} can't exceed maximum lifetime {maximum_s}",
            "lower it, or raise the maximum",
            value=str(default_s),
        )
    return ApplicationLifetime(maximum_s, default_s if default_s > 0 else maximum_s, specified)
