"""Garbage collection is switched off or rare for a while, and afterwards as it was before."""

from __future__ import annotations

import gc
from contextlib import suppress

from wire.garbage_collection import DAEMON_THRESHOLDS, YOUNG_OBJECTS, collect_less_often, seldom_collected, uncollected


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


def test_collections_are_rare_for_a_while() -> None:
    before = gc.get_threshold()
    with suppress(ValueError), seldom_collected():
        assert gc.isenabled()
        assert gc.get_threshold()[0] == YOUNG_OBJECTS
        raise ValueError("an error")
    assert gc.get_threshold() == before


def test_overlapping_blocks_leave_them_as_they_were() -> None:
    before = gc.get_threshold()
    first, second = seldom_collected(), seldom_collected()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert gc.get_threshold() == before


def test_a_daemon_collects_less_often_than_python_does() -> None:
    before = gc.get_threshold()
    try:
        collect_less_often()
        assert gc.get_threshold() == DAEMON_THRESHOLDS
    finally:
        gc.set_threshold(*before)
