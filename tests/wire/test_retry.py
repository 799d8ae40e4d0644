"""When a call is tried again: on definite failures alone, within the policy's time."""

from __future__ import annotations

import asyncio

import pytest

from wire.retry import FOR_EVER, NO_RETRY, RetryPolicy, retried
from yarn.configuration import Configuration
from yarn.errors import AccessControlException, CallOutcomeUnknown, ServerUnavailable, YarnException


class Attempts:
    """Fails with the given errors, one per attempt, then succeeds; `pauses` are the times slept in between (s)."""

    def __init__(self, *errors: YarnException) -> None:
        self.errors = list(errors)
        self.count = 0
        self.pauses: list[float] = []

    async def __call__(self) -> str:
        self.count += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Attempts:
    attempts = Attempts(*(ServerUnavailable("no") for _ in range(3)))
    monkeypatch.setattr("wire.retry.asyncio.sleep", attempts.sleep)
    return attempts


async def test_an_unreachable_server_is_tried_again_with_jitter(refused: Attempts) -> None:
    assert await retried(RetryPolicy(10_000, 1000), refused, reads=False) == "done"
    assert refused.count == 4
    assert all(0.5 <= pause <= 1.0 for pause in refused.pauses)
    assert len(set(refused.pauses)) > 1, "callers that lost one server do not come back in step"


async def test_the_last_failure_is_raised_when_the_time_is_over(refused: Attempts) -> None:
    with pytest.raises(ServerUnavailable):
        await retried(NO_RETRY, refused, reads=False)
    assert (refused.count, refused.pauses) == (1, [])


async def test_a_wait_shorter_than_the_interval_is_a_single_try(refused: Attempts) -> None:
    """RMProxy: with wait < interval there is one try."""
    with pytest.raises(ServerUnavailable):
        await retried(RetryPolicy(999, 1000), refused, reads=False)
    assert refused.count == 1


async def test_minus_one_is_for_ever(refused: Attempts) -> None:
    assert await retried(RetryPolicy(FOR_EVER, 3_600_000), refused, reads=False) == "done"


@pytest.mark.parametrize("error", [CallOutcomeUnknown("?"), AccessControlException("no")])
async def test_a_call_that_may_have_had_an_effect_or_was_refused_is_not_repeated(error: YarnException) -> None:
    attempts = Attempts(error)
    with pytest.raises(type(error)):
        await retried(RetryPolicy(FOR_EVER, 1), attempts, reads=False)
    assert attempts.count == 1


async def test_a_call_that_only_reads_is_repeated_after_any_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = Attempts(CallOutcomeUnknown("?"))
    monkeypatch.setattr("wire.retry.asyncio.sleep", attempts.sleep)
    assert await retried(RetryPolicy(FOR_EVER, 1), attempts, reads=True) == "done"


async def test_cancelling_ends_the_wait() -> None:
    attempts = Attempts(ServerUnavailable("no"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await retried(RetryPolicy(FOR_EVER, 3_600_000), attempts, reads=False)
    assert attempts.count == 1


def test_the_policy_is_read_from_its_keys() -> None:
    assert RetryPolicy.read(Configuration()) == RetryPolicy(900_000, 30_000)
    conf = Configuration.of({"yarn.resourcemanager.connect.max-wait.ms": "-1"})
    assert RetryPolicy.read(conf).max_wait_ms == FOR_EVER
