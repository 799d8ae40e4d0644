"""Collects cyclic garbage at moments of the simulation, instead of whenever enough objects were made.

A simulation makes many objects that stay. By default Python looks at all of them again and again, which takes up to a
fifth of the time of a run. So automatic collections are off (wire.garbage_collection). Instead, young objects are
looked at every five virtual minutes, older ones each hour, all of them four times a virtual day.
"""

from __future__ import annotations

import gc

YOUNG_EVERY = 5
MIDDLE_EVERY = 60
ALL_EVERY = 360
"""The numbers of samples after which young objects, older ones, and all of them are looked at."""


def collect(number: int) -> None:
    """Collect after the sample of this number, counted from 1."""
    if number % YOUNG_EVERY == 0:
        gc.collect(2 if number % ALL_EVERY == 0 else 1 if number % MIDDLE_EVERY == 0 else 0)
