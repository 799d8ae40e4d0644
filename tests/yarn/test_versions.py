"""The order of version strings is that of Hadoop's VersionUtil; the table was written by it."""

from __future__ import annotations

import pytest

from yarn.java.versions import compare_versions

SIGNS = {"<": -1, "=": 0, ">": 1}


@pytest.mark.parametrize(
    ("left", "order", "right"),
    [
        ("3.4.1", "=", "3.4.1"),
        ("3.4", "=", "3.4.0"),
        ("3.10", ">", "3.9"),
        ("3.4.1", "<", "3.4.2"),
        ("3.4.1", "<", "3.40"),
        ("3.4.01", "=", "3.4.1"),
        ("3.4.1-SNAPSHOT", "<", "3.4.1"),
        ("3.4.1-snapshot", "=", "3.4.1-SNAPSHOT"),
        ("3.4.1-SNAPSHOT", ">", "3.4.0"),
        ("3.4.1.7.2.0", ">", "3.4.1"),
        ("3.4.1.7.2.0", "<", "3.4.2"),
        ("3.1.1.7.1.9.0-387", ">", "3.1.1.7.1.9.0"),
        ("3.1.1.7.1.9.0-387", "<", "3.1.1.7.1.9.0-1000"),
        ("3.4.1-2", ">", "3.4.1"),
        ("3.4.1-2", "<", "3.4.1.2"),
        ("3.4.1-sp", ">", "3.4.1"),
        ("3.4.1-amzn-0", ">", "3.4.1"),
        ("3.4.1-amzn-0", "<", "3.4.1-amzn-1"),
        ("3.4.1-alpha", "<", "3.4.1-beta"),
        ("3.4.1-b2", "=", "3.4.1-beta-2"),
        ("3.4.1-rc1", "=", "3.4.1-cr1"),
        ("3.4.1-RC1", "<", "3.4.1-SNAPSHOT"),
        ("3.4.1-final", "=", "3.4.1"),
        ("3.0.0-alpha4", "<", "3.0.0"),
        ("1-0.1", "=", "1"),
        ("1..2", "=", "1.0.2"),
        (".1", "=", "0.1"),
        ("", "<", "3.4.1"),
        ("", "=", "0"),
        ("unknown", "<", "3.4.1"),
        ("unknown", ">", "0"),
    ],
)
def test_versions_have_the_order_of_hadoop(left: str, order: str, right: str) -> None:
    assert sign(compare_versions(left, right)) == SIGNS[order]
    assert sign(compare_versions(right, left)) == -SIGNS[order]


def test_long_and_deep_versions_are_compared() -> None:
    """A peer may send any text: more digits than Python converts, more hyphens than calls may be nested."""
    assert compare_versions("9" * 100_000, "1" + "0" * 100_000) < 0
    assert compare_versions("-1" * 100_000 + "-2", "-1" * 100_000 + "-1") > 0
    assert compare_versions("3.²", "3.1") < 0


def sign(order: int) -> int:
    return (order > 0) - (order < 0)
