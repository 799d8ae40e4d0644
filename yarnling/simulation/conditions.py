"""The conditions of a simulated network without faults."""

from __future__ import annotations

from msgspec import Struct


class Conditions(Struct, frozen=True):
    """The network without any fault: each message takes `delay_ms` and up to `jitter_ms` more.

    `breaks`, `duplicates`: the probability that a message breaks its connection, or that a request arrives twice.
    """

    delay_ms: int = 1
    jitter_ms: int = 1
    breaks: float = 0.0
    duplicates: float = 0.0

    @property
    def is_steady(self) -> bool:
        """True if the time of each message is known before it is sent."""
        return not (self.jitter_ms or self.breaks or self.duplicates)


USUAL = Conditions()
STEADY = Conditions(jitter_ms=0)
"""Quiet heartbeats can be left out."""
