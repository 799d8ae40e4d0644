"""SlidingWindowRetryPolicy: which exit codes are retried, and how often."""

from __future__ import annotations

import pytest

from nm.core.container import SlidingWindowRetryPolicy
from yarn.containers import ContainerRetryContext
from yarn.states import ContainerRetryPolicy

ALL = ContainerRetryPolicy.RETRY_ON_ALL_ERRORS
SPECIFIC = ContainerRetryPolicy.RETRY_ON_SPECIFIC_ERROR_CODES


def policy(context: ContainerRetryContext) -> SlidingWindowRetryPolicy:
    return SlidingWindowRetryPolicy(context, minimum_interval_ms=1000)


@pytest.mark.parametrize("code", [0, 137, 143])
def test_success_and_the_codes_of_kills_are_never_retried(code: int) -> None:
    assert not policy(ContainerRetryContext(ALL, max_retries=-1)).should_retry(code, 0)


def test_without_a_policy_nothing_is_retried() -> None:
    never = policy(ContainerRetryContext(max_retries=5))
    assert not never.is_set
    assert not never.should_retry(1, 0)


def test_only_specific_codes_are_retried() -> None:
    some = policy(ContainerRetryContext(SPECIFIC, frozenset({4, 5}), max_retries=1))
    assert [some.should_retry(code, 0) for code in (3, 4, 5)] == [False, True, True]


def test_retries_are_limited_by_the_context() -> None:
    twice = policy(ContainerRetryContext(ALL, max_retries=2))
    tried = []
    for _ in range(4):
        tried.append(twice.should_retry(1, 0))
        twice.count_restart(0)
    assert tried == [True, True, False, False]


def test_retries_can_be_unlimited() -> None:
    always = policy(ContainerRetryContext(ALL, max_retries=-1))
    for _ in range(100):
        assert always.should_retry(1, 0)
        always.count_restart(0)


def test_with_a_validity_interval_only_recent_restarts_count() -> None:
    recent = policy(ContainerRetryContext(ALL, max_retries=2, failures_validity_interval_ms=10_000))
    for now_ms in (0, 5_000):
        assert recent.should_retry(1, now_ms)
        recent.count_restart(now_ms)
    assert not recent.should_retry(1, 10_000)
    assert recent.should_retry(1, 10_001)


def test_a_short_interval_is_raised_to_the_minimum() -> None:
    assert policy(ContainerRetryContext(ALL, retry_interval_ms=100)).interval_ms == 1000
    assert policy(ContainerRetryContext(ALL, retry_interval_ms=5000)).interval_ms == 5000
