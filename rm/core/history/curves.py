"""Numbers that change in steps, kept as their changes: a quiet queue costs one row, however long it is quiet."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

CURVES_MAX = 1_000
"""The number of queues, and of nodes, whose curves are kept; those beyond it have none."""


class Resolution(Struct, frozen=True):
    """The time between two samples of a curve, and the time for which its changes are kept, both in ms."""

    step_ms: int
    kept_ms: int

    @property
    def rows_max(self) -> int:
        """The number of rows of a curve that changes at every sample; the first is what held when the time began."""
        return self.kept_ms // self.step_ms + 1


class StepCurve:
    """The rows of one queue or node, each with the time from which it held; at most `rows_max`, the last ones."""

    __slots__ = ("_rows_max", "_times", "_values", "_width")

    def __init__(self, width: int, rows_max: int) -> None:
        self._width, self._rows_max = width, rows_max
        self._times = array("q")
        self._values = array("q")

    def note(self, at_ms: int, row: Sequence[int]) -> None:
        """Note the row at a sample; nothing is kept of one that equals the last."""
        width = self._width
        noted = array("q", row)
        if self._times and self._values[-width:] == noted:
            return
        self._times.append(at_ms)
        self._values.extend(noted)
        if len(self._times) > self._rows_max:
            del self._times[0]
            del self._values[:width]

    def rows(self, from_ms: int) -> Iterator[tuple[int, ...]]:
        """Yield (time, *row): the row that held at `from_ms`, if it is known, then each later one."""
        times, values, width = self._times, self._values, self._width
        for index, at_ms in enumerate(times):
            is_over = index + 1 < len(times) and times[index + 1] <= from_ms
            if not is_over:
                yield (at_ms, *values[index * width : (index + 1) * width])

    @property
    def last_ms(self) -> int:
        """The time of the last change."""
        return self._times[-1]


class StepCurves:
    """The curves of all queues, or of all nodes, by name; at most CURVES_MAX of them. `width`: numbers in a row."""

    __slots__ = ("_by_name", "_kept_ms", "_rows_max", "_width")

    def __init__(self, width: int, resolution: Resolution) -> None:
        self._width = width
        self._rows_max, self._kept_ms = resolution.rows_max, resolution.kept_ms
        self._by_name: dict[str, StepCurve] = {}

    def note(self, at_ms: int, rows: Mapping[str, Sequence[int]]) -> None:
        """Note one sample. A name that is missing has gone: zeros are noted, and its curve is dropped in time."""
        curves = self._by_name
        for name, row in rows.items():
            curve = curves.get(name)
            if curve is None:
                if len(curves) >= CURVES_MAX:
                    continue
                curve = curves[name] = StepCurve(self._width, self._rows_max)
            curve.note(at_ms, row)
        for name in [name for name in curves if name not in rows]:
            curves[name].note(at_ms, (0,) * self._width)
            if curves[name].last_ms < at_ms - self._kept_ms:
                del curves[name]

    def rows(self, name: str, from_ms: int) -> list[tuple[int, ...]] | None:
        """The rows from a time on; None for a name without a curve."""
        curve = self._by_name.get(name)
        return None if curve is None else list(curve.rows(from_ms))
