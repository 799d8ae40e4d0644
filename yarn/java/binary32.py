"""Java's `float`: where Hadoop computes in 32 bits, one bit more or less can cost a queue a container.

70 percent of 102400 MB is 71679 MB in Hadoop, because 0.7 has no exact 32-bit form and the product is truncated. So
every capacity, ratio and limit that Hadoop keeps in a `float` goes through `f32` after each operation. Sums, products
and quotients of two 32-bit values are rounded correctly this way, because a double has more than twice their digits.
"""

from __future__ import annotations

import math
from array import array
from typing import Final

from yarn.java.values import LONG_MAX, LONG_MIN

_SURE_LOW, _SURE_HIGH = -9e18, 9e18
"""Bounds between which a cast needs no special handling; nearly all numbers are."""

_cell: Final = array("f", (0.0,))


def f32(number: float) -> float:
    """`number` rounded to the nearest 32-bit float; infinity beyond its range."""
    _cell[0] = number
    return _cell[0]


def truncated(number: float) -> int:
    """Java's cast of a double to a long: towards zero, NaN to 0, infinities to the ends of the range."""
    if _SURE_LOW < number < _SURE_HIGH:
        return int(number)
    if number != number:
        return 0
    if math.isinf(number):
        return LONG_MAX if number > 0 else LONG_MIN
    return min(max(int(number), LONG_MIN), LONG_MAX)


def ceiled(number: float) -> int:
    """Java's `(long) Math.ceil(number)`."""
    return math.ceil(number) if math.isfinite(number) else truncated(number)


def quotient(a: int, b: int) -> int:
    """Java's integer division, truncated towards zero. Raises ZeroDivisionError if `b` is 0."""
    if a >= 0 and b > 0:
        return a // b
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def java_quotient(a: float, b: float) -> float:
    """Java's division of two doubles: 0 / 0 is NaN, x / 0 is infinite."""
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a)
    return a / b


def shortest(number: float) -> str:
    """The shortest decimal that reads back as this 32-bit float, as Java prints it (`1.1`, `1.0E-4`)."""
    if not math.isfinite(number):
        return "NaN" if number != number else ("Infinity" if number > 0 else "-Infinity")
    digits = next(text for n in range(1, 10) if f32(float(text := f"{number:.{n}g}")) == number)
    value = float(digits)
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, exponent = f"{value:.8e}".split("e")
    return f"{float(mantissa)!r}E{int(exponent)}"


def double_text(number: float) -> str:
    """The decimal that Java prints for a 64-bit float (`1.0`, `1.9900000095367432`, `1.0E-4`)."""
    if not math.isfinite(number):
        return "NaN" if number != number else ("Infinity" if number > 0 else "-Infinity")
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    short = next(text for n in range(1, 18) if float(text := f"{number:.{n - 1}e}") == number)
    mantissa, _, exponent = short.partition("e")
    return f"{float(mantissa)!r}E{int(exponent)}"
