"""Folds faults that are the same rule in many places: one line with the first example and the count.

A file with 578 queues may break one rule 578 times. Two faults are of one kind if they concern the same setting, and
if their texts differ only in numbers and paths of queues.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from yarn.faults import Fault
from yarn.settings.registry import setting_of
from yarn.settings.scheduler import PREFIX, ROOT

_VARYING = re.compile(r"\broot(?:\.[^\s,:;'\"()]+)+|\d+(?:\.\d+)?")


class FoldedFault(Struct, frozen=True):
    """Faults of one kind: the first of them, and how many there are."""

    first: Fault
    count: int

    def __str__(self) -> str:
        return str(self.first) if self.count == 1 else f"{self.first} (and {self.count - 1} more of this kind)"


def folded(faults: Iterable[Fault]) -> list[FoldedFault]:
    """The kinds of faults, in the order of their first examples."""
    kinds: dict[tuple[object, ...], list[Fault]] = {}
    for fault in faults:
        kind = (fault.severity, general_key(fault.key), _VARYING.sub("#", fault.problem), fault.effect)
        kinds.setdefault(kind, []).append(fault)
    return [FoldedFault(of_kind[0], len(of_kind)) for of_kind in kinds.values()]


def general_key(key: str) -> str:
    """The key without the name of a queue, a label or a user: equal for keys that mean the same."""
    setting = setting_of(key)
    if setting is not None:
        return setting.key
    of_queue = key.startswith(f"{PREFIX}{ROOT}.")
    return f"{PREFIX}<queue>.{key.rpartition('.')[2]}" if of_queue else key
