"""Parses values like Hadoop's Configuration, which uses Java's parsers.

Python's int() and float() accept some texts that Java refuses (`1_000`, other digits) and refuse some that Java accepts
(`0x10`, `1.5f`). Java's sizes matter too: an int that does not fit in 32 bits is refused, a float is rounded to 32
bits. Each function raises ValueError with a text that completes "value: ...".
"""

from __future__ import annotations

import re
import struct

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1

_DECIMAL = re.compile(r"[+-]?[0-9]+\Z")
_HEXADECIMAL = re.compile(r"(-?)0[xX]([0-9a-fA-F]+)\Z")
_FLOAT = re.compile(r"([+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|NaN|Infinity))[fFdD]?\Z")
_TRIMMED = "".join(map(chr, range(0x21)))
"""The characters that String.trim removes: more than spaces, but not all of Unicode's white space."""
_STRING_SEPARATOR = re.compile(r"\s*[,\n]\s*")

# In the order of Configuration.ParsedTimeDuration: "ms" is tried before "s" and "m".
_TIME_SUFFIXES_NS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}


def parse_int(text: str) -> int:
    """The 32-bit integer in `text` (decimal, or hexadecimal after 0x), like Configuration.getInt."""
    return _parse_integer(text, INT_MIN, INT_MAX)


def parse_long(text: str) -> int:
    """The 64-bit integer in `text` (decimal, or hexadecimal after 0x), like Configuration.getLong."""
    return _parse_integer(text, LONG_MIN, LONG_MAX)


def parse_float(text: str) -> float:
    """The number in `text` rounded to a 32-bit float, like Configuration.getFloat.

    It is rounded to 64 bits first: the last bit can differ from Java's for texts of more than 16 digits.
    """
    return to_float32(parse_double(text))


def parse_double(text: str) -> float:
    """The number in `text`, like Configuration.getDouble."""
    match = _FLOAT.match(text.strip())
    if match is None:
        raise ValueError("not a number")
    return float(match.group(1))


def to_float32(number: float) -> float:
    """`number` rounded to the nearest 32-bit float; infinity beyond its range, as in Java."""
    try:
        (rounded,) = struct.unpack("<f", struct.pack("<f", number))
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
    return float(rounded)


def parse_bool(text: str) -> bool:
    """`true` or `false` in any case; anything else is refused (Hadoop falls back to its default)."""
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError("neither true nor false")
    return lowered == "true"


def parse_time_ms(text: str, unit: str = "ms") -> int:
    """The duration in `text`, in whole milliseconds truncated towards zero.

    The text is an integer with one of Hadoop's suffixes (ns us ms s m h d); without a suffix it is in `unit`. Source:
    Configuration.getTimeDuration.
    """
    lowered = text.strip().lower()
    suffix = next((s for s in _TIME_SUFFIXES_NS if lowered.endswith(s)), None)
    number = lowered if suffix is None else lowered[: -len(suffix)]
    try:
        raw = parse_long(number)
    except ValueError as error:
        raise ValueError(f"not a duration ({error})") from None
    nanoseconds = abs(raw) * _TIME_SUFFIXES_NS[suffix or unit]
    milliseconds = nanoseconds // 1_000_000
    return milliseconds if raw >= 0 else -milliseconds


def trim(text: str) -> str:
    """`text` without leading and trailing characters up to U+0020, like String.trim."""
    return text.strip(_TRIMMED)


def split_strings(text: str) -> tuple[str, ...]:
    """The parts of a text separated by commas or line breaks, trimmed, like StringUtils.getTrimmedStrings.

    Empty parts are kept except at the end, as Java's split does.
    """
    trimmed = text.strip()
    if not trimmed:
        return ()
    parts = _STRING_SEPARATOR.split(trimmed)
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def split_at_commas(text: str) -> tuple[str, ...]:
    """The parts of a comma-separated text, trimmed, like StringUtils.getStrings and String.trim.

    Empty parts are dropped, blank ones are kept: `a,,b` has two parts, `a, ,b` has three.
    """
    return tuple(trim(part) for part in text.split(",") if part)


def _parse_integer(text: str, lowest: int, highest: int) -> int:
    trimmed = text.strip()
    hexadecimal = _HEXADECIMAL.match(trimmed)
    if hexadecimal is not None:
        number = int(hexadecimal.group(1) + hexadecimal.group(2), 16)
    elif _DECIMAL.match(trimmed):
        number = int(trimmed)
    else:
        raise ValueError("not a whole number")
    if not lowest <= number <= highest:
        raise ValueError(f"outside {lowest}..{highest}")
    return number
