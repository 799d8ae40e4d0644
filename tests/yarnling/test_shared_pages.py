"""Memory that forked processes go on sharing: what moves does as before, what is made later lies together."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from yarnling.shared_pages import executed, move_together

PROJECT = Path(__file__).resolve().parent.parent.parent


def outer(values: list[int]) -> Callable[[int], list[int]]:
    def inner(factor: int) -> list[int]:
        return [value * factor for value in values]

    return inner


def never_called() -> int:
    return 1


def test_executed_code_is_that_of_every_function_called_and_of_no_other() -> None:
    names = [code.co_name for code in executed(lambda: outer([1])(2))]
    assert names[:3] == ["<lambda>", "outer", "inner"]
    assert "never_called" not in names


def test_a_failure_ends_the_recording() -> None:
    with pytest.raises(ZeroDivisionError):
        executed(lambda: 1 // 0)
    assert sys.getprofile() is None


def test_functions_whose_code_was_moved_do_as_before() -> None:
    before, untouched = outer.__code__, never_called.__code__
    move_together(executed(lambda: outer([1, 2])(3)))
    assert outer.__code__ is not before
    assert never_called.__code__ is untouched
    assert outer([1, 2])(3) == [3, 6]


def test_the_code_within_a_code_that_stays_moves_too() -> None:
    made = outer([5])
    before = outer.__code__
    move_together(executed(lambda: made(2)))
    assert outer.__code__ is not before
    assert outer([5])(2) == [10]


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


def pages_of_new_objects(holes: str) -> int:
    """How many pages 300 objects of 233 bytes take after every second one of many was freed."""
    command = [sys.executable, "-P", "-c", HOLES, holes]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return int(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(sys.implementation.name != "cpython" or sys.maxsize < 2**32, reason="of CPython's allocator")
def test_what_is_made_after_holes_were_filled_lies_together() -> None:
    assert pages_of_new_objects("leave") > 30
    assert pages_of_new_objects("fill") <= 22
