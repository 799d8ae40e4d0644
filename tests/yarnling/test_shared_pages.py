"""Memory that forked processes go on sharing: what moves does as before, what is made later lies together."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from tests.yarnling.apart import output, run_apart
from yarnling.shared_pages import HAS_IMMORTALS, full_name, move_together


def outer(values: list[int]) -> Callable[[int], list[int]]:
    def inner(factor: int) -> list[int]:
        return [value * factor for value in values]

    return inner


def never_called() -> int:
    return 1


def test_functions_whose_code_was_moved_do_as_before() -> None:
    before, untouched = outer.__code__, never_called.__code__
    copies = move_together({f"{__name__}.outer"})
    assert outer.__code__ is not before
    assert outer.__code__ in copies
    assert never_called.__code__ is untouched
    assert outer([1, 2])(3) == [3, 6]


def test_the_code_within_a_code_moves_with_it() -> None:
    inner = outer([5]).__code__
    move_together({f"{__name__}.outer"})
    assert outer([5]).__code__ is not inner
    assert outer([5])(2) == [10]


def test_functions_of_one_code_go_on_having_one() -> None:
    first, second = outer([1]), outer([2])
    before = first.__code__
    move_together({full_name(first)})  # type: ignore[arg-type]
    assert first.__code__ is second.__code__ is not before
    assert (first(3), second(3)) == ([3], [6])


HOLES = """
import os, sys
from yarnling.shared_pages import fill_holes

kept = [bytes(200) for _ in range(1_500)]
del kept[::2]
if sys.argv[1] == "fill":
    fill_holes()
places = sorted(id(piece) for piece in [bytes(200) for _ in range(300)])
print(len({place // 4096 for place in places}))
"""

IMMORTALS = """
import gc, sys, weakref
from yarnling.shared_pages import make_immortal

class Thing:
    def method(self):
        return [lambda: self for _ in range(2)]

def counted(thing):
    before = sys.getrefcount(thing)
    references = [thing] * 1_000
    return sys.getrefcount(thing) - before

early, codes = Thing(), [Thing.method.__code__]
inner = [part for part in codes[0].co_consts if hasattr(part, "co_code")]
shared = [Thing, Thing.method, early, *codes, *inner]
assert inner
make_immortal(codes)
late = Thing()
late.itself, gone = late, weakref.ref(late)
print(*(counted(thing) for thing in shared), counted(late))
del late
gc.collect()
print(gone() is None, [made() is early for made in early.method()])
"""


def test_references_to_what_was_made_immortal_are_counted_no_longer_and_those_to_what_comes_later_are() -> None:
    first, second = output(IMMORTALS).splitlines()
    *shared, late = map(int, first.split())
    assert set(shared) == {0 if HAS_IMMORTALS else 1_000}
    assert late == 1_000
    assert second == "True [True, True]"


def pages_of_new_objects(holes: str) -> int:
    """How many pages 300 objects of 233 bytes take after every second one of many was freed."""
    return int(output(HOLES, holes))


@pytest.mark.skipif(sys.implementation.name != "cpython" or sys.maxsize < 2**32, reason="of CPython's allocator")
def test_what_is_made_after_holes_were_filled_lies_together() -> None:
    assert pages_of_new_objects("leave") > 30
    assert pages_of_new_objects("fill") <= 22


FREED = """
import gc, sys
from yarnling.shared_pages import empty_free_lists

kept = [[number] for number in range(200)]
del kept
gc.freeze()
if sys.argv[1] == "empty":
    empty_free_lists()
sys._debugmallocstats()
"""


def free_lists(mode: str) -> int:
    """How many of 200 freed lists the interpreter keeps for new ones."""
    told = run_apart(FREED, mode).stderr
    (count,) = [int(line.split()[0]) for line in told.splitlines() if "free PyListObjects" in line]
    return count


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="of CPython's allocator")
def test_what_the_interpreter_keeps_of_freed_objects_can_be_given_up() -> None:
    assert free_lists("leave") > 30
    assert free_lists("empty") < 10
