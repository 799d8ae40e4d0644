"""Waiting for conditions: what they give, what is raised, and what is told when they do not come true."""

from __future__ import annotations

import itertools

import pytest

from yarnling.client import WaitTimeout
from yarnling.conditions import until, until_blocking


async def test_the_value_is_given_as_soon_as_it_is_true() -> None:
    counted = itertools.count()
    assert await until(lambda: next(counted) >= 2 and "done") == "done"
    assert next(counted) == 3


async def test_a_condition_may_be_a_coroutine_function() -> None:
    counted = itertools.count()

    async def counts() -> bool:
        return next(counted) == 2

    assert await until(counts) is True


async def test_what_it_gave_last_is_told() -> None:
    with pytest.raises(WaitTimeout, match=r"after 0 s still \[\]"):
        await until(list, timeout_s=0)


async def test_what_a_condition_raises_is_raised() -> None:
    def fails() -> bool:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        await until(fails)


def test_without_asyncio() -> None:
    counted = itertools.count()
    assert until_blocking(lambda: next(counted) >= 2 and "done") == "done"
    with pytest.raises(WaitTimeout, match=r"after 0 s still 0"):
        until_blocking(int, timeout_s=0)
