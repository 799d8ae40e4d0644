"""Garbage collection is switched off for a while, and afterwards as it was before."""

from __future__ import annotations

import gc
from contextlib import suppress

from wire.garbage_collection import uncollected


def test_automatic_collections_are_off_for_a_while() -> None:
    assert gc.isenabled()
    with suppress(ValueError), uncollected():
        assert not gc.isenabled()
        raise ValueError("an error")
    assert gc.isenabled()


def test_collections_that_were_off_stay_off() -> None:
    gc.disable()
    try:
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
