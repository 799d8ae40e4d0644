"""Damages the bytes of a message, with a seeded random generator."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

NESTING_MAX = 200
"""The depth to which a message is nested in itself at most. protobuf refuses more than a hundred levels."""
REPEATS_MAX = 200
LARGEST_VARINT = b"\xff" * 9 + b"\x01"
TOO_LONG_VARINT = b"\xff" * 11


def mutated(rng: Random, data: bytes) -> bytes:
    """`data` with one to three faults."""
    for _ in range(rng.randint(1, 3)):
        data = rng.choice(_FAULTS)(rng, data)
    return data


def _flip(rng: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(rng: Random, data: bytes) -> bytes:
    return data[: rng.randint(0, len(data))]


def _append(rng: Random, data: bytes) -> bytes:
    return data + rng.randbytes(rng.choice([1, 5, 100]))


def _twice(rng: Random, data: bytes) -> bytes:
    """Repeat fields: the last value counts, submessages are merged, lists grow."""
    return data * rng.choice([2, 2, 3])


def _repeat_part(rng: Random, data: bytes) -> bytes:
    first = rng.randint(0, len(data))
    last = rng.randint(first, min(len(data), first + 40))
    return data[:last] + data[first:last] * rng.randint(1, REPEATS_MAX) + data[last:]


def _swap(rng: Random, data: bytes) -> bytes:
    first, second = sorted((rng.randint(0, len(data)), rng.randint(0, len(data))))
    return data[second:] + data[first:second] + data[:first]


def _field(rng: Random, data: bytes) -> bytes:
    """Add a field: a number that is too large, a text that is not UTF-8, a wrong length."""
    key = bytes([rng.randint(1, 15) << 3 | rng.choice([0, 1, 2, 5])])
    text = rng.choice([b"", b"\xff\xfe", b"\x00", b"..", b"../../x", b"\x1b[2J\n", "é𝄞".encode(), b"x" * 5000])
    value = rng.choice(
        [LARGEST_VARINT, TOO_LONG_VARINT, b"\x80", bytes([min(len(text), 127)]) + text, b"\xff\xff\xff\xff\x0f" + text]
    )
    place = rng.choice([0, len(data)])
    return data[:place] + key + value + data[place:]


def _nest(rng: Random, data: bytes) -> bytes:
    """Nest the message in itself many times."""
    number = rng.randint(1, 8)
    for _ in range(rng.randint(1, NESTING_MAX)):
        data = bytes([number << 3 | 2]) + _varint(len(data)) + data
    return data


def _noise(rng: Random, data: bytes) -> bytes:
    return rng.randbytes(rng.choice([1, 10, 1000]))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


_FAULTS: tuple[Callable[[Random, bytes], bytes], ...] = (
    _flip,
    _flip,
    _cut,
    _append,
    _twice,
    _repeat_part,
    _swap,
    _field,
    _field,
    _nest,
    _noise,
)
