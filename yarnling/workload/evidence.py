"""The basis of a workload: how many of its memory-hours are recorded, follow from what is recorded, or are assumed.

Every import has one account, `EvidenceAccount`, to which a reader adds the memory-milliseconds of each part under a
sentence. The result is written with the workload, so that a later prediction can say what it rests on. A part counts by
its weakest link: a container of recorded times and assumed size is assumed.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from msgspec import Struct


class Basis(Enum):
    """RECORDED: the input says it. DETERMINED: it follows from what the input says. ASSUMED: it was filled in."""

    RECORDED = "recorded"
    DETERMINED = "determined"
    ASSUMED = "assumed"


class Evidence(Struct, frozen=True):
    """A part of a workload. `share`: of the memory-hours of all containers, AMs among them, 0..1. `about`: the part."""

    basis: Basis
    share: float
    about: str


class EvidenceAccount:
    """Adds up memory times time by basis and sentence."""

    def __init__(self) -> None:
        self._mb_ms: dict[tuple[Basis, str], int] = {}

    def add(self, basis: Basis, about: str, mb_ms: int) -> None:
        """Add the memory-milliseconds, in MB ms, of a container or of several."""
        key = (basis, about)
        self._mb_ms[key] = self._mb_ms.get(key, 0) + mb_ms

    def evidence(self) -> tuple[Evidence, ...]:
        """The parts, the best known first; their shares have the sum 1. Empty if nothing used memory."""
        total = sum(self._mb_ms.values())
        bases = list(Basis)
        parts = sorted(self._mb_ms.items(), key=lambda part: (bases.index(part[0][0]), -part[1], part[0][1]))
        return tuple(Evidence(basis, mb_ms / total, about) for (basis, about), mb_ms in parts if mb_ms)


def share_of(evidence: Iterable[Evidence], basis: Basis) -> float:
    """The share of the memory-hours with this basis, 0..1."""
    return sum(each.share for each in evidence if each.basis is basis)
