"""Short names for ids."""

from __future__ import annotations

import pytest

from yarnling.run.names import short


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("container_1700000000000_0001_01_000002", "c0001_000002"),
        ("container_1700000000000_0001_02_000002", "c0001#2_000002"),
        ("container_e01_1700000000000_0001_02_000002", "c0001#2_e1_000002"),
        ("appattempt_1700000000000_0001_000002", "app 0001 attempt 2"),
        ("AM of application_1700000000000_0003", "AM of app 0003"),
    ],
)
def test_a_short_name_tells_attempts_and_restarts_apart(text: str, expected: str) -> None:
    assert short(text) == expected
