"""`dataclass` for records: frozen to the type checkers, plain at run time.

    from yarn.records import dataclass

    @dataclass(frozen=True, slots=True)
    class Tick: ...

The standard library's frozen dataclasses set each field by a call, so an instance costs three times as much as one that
is not frozen, and each class has seven functions made of text, half a millisecond whenever a process starts. Heartbeats
and containers are such instances, and a daemon imports two hundred such classes. So nothing looks at run time whether
somebody changes a record: mypy and pyright do before. All else is as there: equality, hash, fields, replace, patterns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, **options: bool) -> Any:
        """The decorator as dataclasses has it; with these two options alone it makes a record."""
        if frozen and slots and not options:
            return _record
        return dataclasses.dataclass(cls, frozen=frozen, slots=slots, **options)


def _record(cls: type) -> type:
    own, doc = dict(cls.__dict__), cls.__doc__
    # Where there is none the library makes one of the signature, which takes as long as all the rest.
    cls.__doc__ = doc or cls.__name__
    record: type = dataclasses.dataclass(slots=True, repr=False)(cls)
    record.__doc__ = doc
    fields = dataclasses.fields(record)
    # A class that says what is equal has None for a hash, until it is given one.
    if own.get("__hash__") is None and ("__hash__" not in own or "__eq__" in own):
        hashed = [field.name for field in fields if (field.compare if field.hash is None else field.hash)]
        _set(record, "__hash__", _hash_of(hashed))
    if "__repr__" not in own:
        _set(record, "__repr__", _repr_of([field.name for field in fields if field.repr]))
    return record


def _set(record: type, name: str, method: Callable[[Any], object]) -> None:
    method.__name__, method.__qualname__ = name, f"{record.__qualname__}.{name}"
    setattr(record, name, method)


def _hash_of(names: Sequence[str]) -> Callable[[Any], int]:
    values = _values_of(names)
    return lambda record: hash(values(record))


def _repr_of(names: Sequence[str]) -> Callable[[Any], str]:
    values = _values_of(names)

    def shown(record: Any) -> str:
        parts = [f"{name}={value!r}" for name, value in zip(names, values(record), strict=True)]
        return f"{type(record).__qualname__}({', '.join(parts)})"

    return shown


def _values_of(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """All of them as a tuple, also if there is one or none."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple([getattr(record, name) for name in names])
