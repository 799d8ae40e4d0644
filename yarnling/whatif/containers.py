"""The outcomes of all containers of a run, in columns: a busy day has millions.

A container takes 50 bytes here. As a ContainerOutcome it takes some 300: its numbers are objects of 32 bytes each.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import repeat
from typing import Generic, TypeVar

from msgspec import Struct

from yarn.resource import Resource


class End(Enum):
    """The end of a container."""

    COMPLETED = "completed"
    PREEMPTED = "preempted"
    FAILED = "failed"
    """The container was released, or its AM ended before it."""
    RUNNING = "running"
    """The container still ran when the simulation ended."""
    LOST = "lost"
    """Its node was lost or decommissioned, or that of its AM."""


class ContainerOutcome(Struct, frozen=True):
    """A request for one container. `application`: its position in `WhatIfResult.applications`.

    `withdrawn_ms`: when its application ended, or the attempt that requested it, before it was allocated.
    `allocated_ms` is None for those, and if it was still waiting at the end; `ended_ms` is None for all of these, and
    for RUNNING ones. `locality`: NODE_LOCAL, RACK_LOCAL or OFF_SWITCH; "" without a wanted host.
    """

    application: int
    requested_ms: int
    allocated_ms: int | None
    withdrawn_ms: int | None
    ended_ms: int | None
    end: End | None
    resource: Resource
    is_am: bool = False
    locality: str = ""
    host: str = ""


_NEVER = -(1 << 63)
"""In a column of times: a time that did not come."""
_ENDS: tuple[End | None, ...] = (None, *End)
_END_NUMBERS = {end: number for number, end in enumerate(_ENDS)}
_Value = TypeVar("_Value", str, Resource)


class ContainerOutcomes:
    """The containers of a run by position, in the order of their requests. Rows are made as they are read.

    `of` takes whole rows; the other methods follow a container through its life.
    """

    __slots__ = (
        "_allocated_ms",
        "_applications",
        "_are_ams",
        "_ended_ms",
        "_ends",
        "_hosts",
        "_localities",
        "_requested_ms",
        "_resources",
        "_withdrawn_ms",
    )

    def __init__(self) -> None:
        self._applications = array("i")
        self._are_ams = array("b")
        self._requested_ms, self._allocated_ms = array("q"), array("q")
        self._withdrawn_ms, self._ended_ms = array("q"), array("q")
        self._ends = array("b")
        self._resources: _Repeated[Resource] = _Repeated()
        self._localities: _Repeated[str] = _Repeated()
        self._hosts: _Repeated[str] = _Repeated()

    @staticmethod
    def of(rows: Iterable[ContainerOutcome]) -> ContainerOutcomes:
        """The containers of these rows. Raises OverflowError as `extend` does."""
        outcomes = ContainerOutcomes()
        outcomes.extend(rows)
        return outcomes

    def extend(self, rows: Iterable[ContainerOutcome]) -> None:
        """Append containers. Raises OverflowError for a number of more than 64 bits."""
        for row in rows:
            self._append(row, 1)

    def _append(self, row: ContainerOutcome, count: int) -> None:
        """Append `count` equal containers."""
        self._applications.extend(repeat(row.application, count))
        self._are_ams.extend(repeat(row.is_am, count))
        self._requested_ms.extend(repeat(row.requested_ms, count))
        self._allocated_ms.extend(repeat(_number(row.allocated_ms), count))
        self._withdrawn_ms.extend(repeat(_number(row.withdrawn_ms), count))
        self._ended_ms.extend(repeat(_number(row.ended_ms), count))
        self._ends.extend(repeat(_END_NUMBERS[row.end], count))
        self._resources.append(row.resource, count)
        self._localities.append(row.locality, count)
        self._hosts.append(row.host, count)

    def __len__(self) -> int:
        return len(self._applications)

    def __iter__(self) -> Iterator[ContainerOutcome]:
        columns = zip(
            self._applications,
            self._requested_ms,
            _times(self._allocated_ms),
            _times(self._withdrawn_ms),
            _times(self._ended_ms),
            map(_ENDS.__getitem__, self._ends),
            self._resources,
            map(bool, self._are_ams),
            self._localities,
            self._hosts,
            strict=True,
        )
        return (ContainerOutcome(*row) for row in columns)

    def __getitem__(self, position: int) -> ContainerOutcome:
        return ContainerOutcome(
            self._applications[position],
            self._requested_ms[position],
            _time(self._allocated_ms[position]),
            _time(self._withdrawn_ms[position]),
            _time(self._ended_ms[position]),
            _ENDS[self._ends[position]],
            self._resources[position],
            bool(self._are_ams[position]),
            self._localities[position],
            self._hosts[position],
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ContainerOutcomes):
            return NotImplemented
        return len(self) == len(other) and all(mine == its for mine, its in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def requested_ms(self, position: int) -> int:
        return self._requested_ms[position]

    def has_ended(self, position: int) -> bool:
        return self._ended_ms[position] != _NEVER

    def ended_as(self, position: int) -> End | None:
        return _ENDS[self._ends[position]]

    def host(self, position: int) -> str:
        return self._hosts[position]

    def request(
        self, application: int, requested_ms: int, resource: Resource, *, count: int = 1, is_am: bool = False
    ) -> range:
        """Add containers that were requested; returns their positions."""
        row = ContainerOutcome(application, requested_ms, None, None, None, None, resource, is_am)
        self._append(row, count)
        return range(len(self) - count, len(self))

    def withdraw(self, position: int, withdrawn_ms: int) -> None:
        """Note that nobody waits for the container any more."""
        self._withdrawn_ms[position] = withdrawn_ms

    def allocate(self, position: int, allocated_ms: int, resource: Resource, host: str) -> None:
        """Note that the container was allocated, and runs."""
        self._allocated_ms[position] = allocated_ms
        self._resources[position] = resource
        self._hosts[position] = host
        self._ends[position] = _END_NUMBERS[End.RUNNING]

    def locate(self, position: int, locality: str) -> None:
        self._localities[position] = locality

    def end(self, position: int, end: End, ended_ms: int | None = None) -> None:
        """Note the container's end. `ended_ms` None: the time is known already."""
        self._ends[position] = _END_NUMBERS[end]
        if ended_ms is not None:
            self._ended_ms[position] = ended_ms


class _Repeated(Generic[_Value]):
    """A column of values of which few differ: each is kept once, and a row has its number."""

    __slots__ = ("_numbers", "_rows", "_values")

    def __init__(self) -> None:
        self._numbers: dict[_Value, int] = {}
        self._values: list[_Value] = []
        self._rows = array("i")

    def append(self, value: _Value, count: int) -> None:
        """Append the value `count` times."""
        self._rows.extend(repeat(self._number(value), count))

    def __setitem__(self, position: int, value: _Value) -> None:
        self._rows[position] = self._number(value)

    def __getitem__(self, position: int) -> _Value:
        return self._values[self._rows[position]]

    def __iter__(self) -> Iterator[_Value]:
        return map(self._values.__getitem__, self._rows)

    def _number(self, value: _Value) -> int:
        number = self._numbers.setdefault(value, len(self._values))
        if number == len(self._values):
            self._values.append(value)
        return number


def _times(column: array[int]) -> Iterator[int | None]:
    return (None if ms == _NEVER else ms for ms in column)


def _number(ms: int | None) -> int:
    return _NEVER if ms is None else ms


def _time(ms: int) -> int | None:
    return None if ms == _NEVER else ms
