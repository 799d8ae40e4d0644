"""Numbers, durations and lists are parsed as by Java and Hadoop's Configuration."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarn.java.values import (
    INT_MAX,
    INT_MIN,
    parse_bool,
    parse_float,
    parse_int,
    parse_long,
    parse_time_ms,
    split_strings,
    to_float32,
)


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), (" 42 ", 42), ("+7", 7), ("-3", -3), ("0x10", 16), ("-0XfF", -255), (str(INT_MIN), INT_MIN)],
)
def test_int(text: str, number: int) -> None:
    assert parse_int(text) == number


@pytest.mark.parametrize("text", ["", " ", "1.0", "1_000", "ten", "0x", "٣", "1 2", "--1", str(INT_MAX + 1)])
def test_int_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"whole number|outside"):
        parse_int(text)


def test_long_accepts_more_than_32_bits() -> None:
    assert parse_long(str(INT_MAX + 1)) == INT_MAX + 1
    with pytest.raises(ValueError, match="outside"):
        parse_long(str(2**63))


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1.0), ("0.5f", 0.5), ("2.", 2.0), (".25d", 0.25), ("1e2", 100.0), ("Infinity", math.inf)],
)
def test_float(text: str, number: float) -> None:
    assert parse_float(text) == number


def test_float_is_rounded_to_32_bits() -> None:
    assert parse_float("0.1") == 0.10000000149011612
    assert parse_float("33.3") != 33.3
    assert parse_float("-1e39") == -math.inf


@pytest.mark.parametrize("text", ["", "half", "1,5", "0x1p3", "50%", "inf", "1_0"])
def test_float_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        parse_float(text)


@given(st.floats(width=32, allow_nan=False))
def test_a_32_bit_float_stays_unchanged(number: float) -> None:
    assert to_float32(number) == number


def test_bool() -> None:
    assert parse_bool(" TRUE ") is True
    assert parse_bool("False") is False
    with pytest.raises(ValueError, match="neither true nor false"):
        parse_bool("yes")


@pytest.mark.parametrize(
    ("text", "unit", "milliseconds"),
    [
        ("1000", "ms", 1000),
        ("1000", "s", 1_000_000),
        ("10s", "ms", 10_000),
        ("5M", "ms", 300_000),
        ("2h", "s", 7_200_000),
        ("1d", "ms", 86_400_000),
        ("250ms", "s", 250),
        ("1500us", "ms", 1),
        ("999999ns", "ms", 0),
        ("-1", "ms", -1),
        ("-1500us", "ms", -1),
    ],
)
def test_time(text: str, unit: str, milliseconds: int) -> None:
    assert parse_time_ms(text, unit) == milliseconds


@pytest.mark.parametrize("text", ["", "s", "1.5s", "10 s x", "ten", "5w"])
def test_time_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_time_ms(text)


def test_strings_keep_empty_parts_but_not_at_the_end() -> None:
    assert split_strings(" a , b\n c ") == ("a", "b", "c")
    assert split_strings("a,,b,,") == ("a", "", "b")
    assert split_strings("  ") == ()
