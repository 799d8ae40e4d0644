"""Records are as the frozen dataclasses of the standard library, but for their price and for who refuses a change."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from yarn import records

ROOT = Path(__file__).parents[2]
PACKAGES = ("yarn", "wire", "rm", "nm", "am", "yarnling")


def kinds(dataclass: Callable[..., Any]) -> dict[str, type]:
    """The same classes by one decorator or the other."""

    @dataclass(frozen=True, slots=True)
    class Empty:
        """Nothing in it."""

    @dataclass(frozen=True, slots=True)
    class One:
        name: str = "ann"

    @dataclass(frozen=True, slots=True)
    class Many:
        """Flags of fields."""

        name: str
        size: int = 5
        secret: bytes = dataclasses.field(default=b"", repr=False)
        when_ms: int = dataclasses.field(default=0, compare=False)
        parts: list[int] = dataclasses.field(default_factory=list, hash=False)

        def __post_init__(self) -> None:
            if self.size < 0:
                raise ValueError("size")

    @dataclass(frozen=True, slots=True)
    class Own:
        name: str
        size: int = 0

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and self.name == other.name

        def __hash__(self) -> int:
            return 7

    @dataclass(frozen=True, slots=True)
    class OnlyEqual:  # noqa: PLW1641  the decorator is to give it one
        name: str

        def __eq__(self, other: object) -> bool:
            return True

    @dataclass(frozen=True, slots=True)
    class Child(Many):
        more: int = 1

    return {kind.__name__: kind for kind in (Empty, One, Many, Own, OnlyEqual, Child)}


OURS, THEIRS = kinds(records.dataclass), kinds(dataclasses.dataclass)
MADE: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Empty", (), {}),
    ("One", (), {}),
    ("One", ("bob",), {}),
    ("Many", ("ann",), {}),
    ("Many", ("ann", 6), {"secret": b"x", "when_ms": 4, "parts": [1]}),
    ("Many", ("ann", 6), {"secret": b"x", "when_ms": 5, "parts": [1]}),
    ("Own", ("ann",), {}),
    ("OnlyEqual", ("ann",), {}),
    ("Child", ("ann",), {"more": 2}),
]


@pytest.mark.parametrize("name", OURS)
def test_a_class_has_what_the_library_gives_it(name: str) -> None:
    ours, theirs = OURS[name], THEIRS[name]
    assert dataclasses.is_dataclass(ours)
    assert [field.name for field in dataclasses.fields(ours)] == [field.name for field in dataclasses.fields(theirs)]
    assert ours.__match_args__ == theirs.__match_args__  # type: ignore[attr-defined]
    assert ours.__slots__ == theirs.__slots__  # type: ignore[attr-defined]
    assert (ours.__doc__ or name) in (theirs.__doc__ or "")
    for method in ("__repr__", "__hash__", "__eq__"):
        assert getattr(ours, method).__qualname__ == getattr(theirs, method).__qualname__


@pytest.mark.parametrize("first", MADE)
@pytest.mark.parametrize("second", MADE)
def test_equality_hash_and_text_are_the_librarys(first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
    (ours, theirs), (our_other, their_other) = (
        (OURS[name](*arguments, **options), THEIRS[name](*arguments, **options))
        for name, arguments, options in (first, second)
    )
    assert (ours == our_other) is (theirs == their_other)
    assert repr(ours) == repr(theirs)
    if first[0] != "OnlyEqual":
        assert hash(ours) == hash(theirs)
        assert (hash(ours) == hash(our_other)) is (hash(theirs) == hash(their_other)) or second[0] == "OnlyEqual"


def test_a_record_whose_equality_is_its_own_hashes_as_the_librarys() -> None:
    assert _hash_or_error(OURS["OnlyEqual"]("ann")) == _hash_or_error(THEIRS["OnlyEqual"]("ann"))


def test_records_are_replaced_and_refused_as_others() -> None:
    many = OURS["Many"]("ann", 6)
    assert dataclasses.replace(many, size=7).size == 7
    with pytest.raises(ValueError, match="size"):
        OURS["Many"]("ann", -1)
    with pytest.raises(TypeError):
        OURS["Many"]()


def test_no_module_of_ours_makes_them_the_slow_way() -> None:
    """An import of the library's decorator beside the two options."""
    slow = [
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if path.name != "records.py"
        and "frozen=True, slots=True" in (text := path.read_text())
        and re.search(r"^from dataclasses import .*\bdataclass\b", text, re.MULTILINE)
    ]
    assert slow == []


def _hash_or_error(record: object) -> object:
    try:
        return hash(record)
    except TypeError as error:
        return type(error)
