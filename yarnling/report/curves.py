"""The curves of a queue over time, and the names and colours that pictures of queues share."""

from __future__ import annotations

from msgspec import Struct

POINTS_MAX = 240
"""The most points of a curve: a picture is some 400 pixels wide."""
PANELS_MAX = 24
"""The most queues that get a picture of their own: those that were used or waited for most."""
QUEUE_LEGEND = (
    ("used", "used"), ("reserved", "reserved"), ("pending", "pending (cut off at the top)"),
    ("guarantee", "guarantee"), ("maximum", "maximum"),
)  # fmt: skip
OTHERS = "others"
"""The name of the colour that all queues without a colour of their own share."""
OTHER_QUEUES = "other queues"


class QueueSeries(Struct, frozen=True):
    """The curves of a queue in one partition, all of the same length, in the measured resource type."""

    queue: str
    label: str
    times_ms: tuple[int, ...]
    used: tuple[float, ...]
    reserved: tuple[float, ...]
    pending: tuple[float, ...]
    guaranteed: tuple[float, ...]
    maximum: tuple[float, ...]


class HeadroomSeries(Struct, frozen=True):
    """The curves of an application, all of the same length, in MB: what its user uses, the application's own part of
    that (`used`), its user's limit, the headroom that the application learns, and the guarantee of its queue.
    """

    application: str
    user: str
    queue: str
    times_ms: tuple[int, ...]
    used: tuple[float, ...]
    user_used: tuple[float, ...]
    limit: tuple[float, ...]
    headroom: tuple[float, ...]
    guaranteed: tuple[float, ...]


class Curve(Struct, frozen=True):
    """A value over time. `bound`: a line to compare it with, such as a guarantee; 0: none."""

    name: str
    values: tuple[float, ...]
    bound: float = 0.0


class Mark(Struct, frozen=True):
    """A moment on the axis of time, and what happened then."""

    at_ms: int
    text: str


class Curves(Struct, frozen=True, tag=True):
    """A picture of values over time, all of one unit and sampled at `times_ms`.

    `is_stacked`: the values add up to a whole, such as the use of the users of a queue.
    """

    title: str
    unit: str
    times_ms: tuple[int, ...]
    curves: tuple[Curve, ...]
    marks: tuple[Mark, ...] = ()
    is_stacked: bool = False

    @property
    def top(self) -> float:
        """The largest value or bound of a curve; 1 if all are 0."""
        return max(max(*each.values, each.bound) for each in self.curves) or 1.0


class Bar(Struct, frozen=True):
    """A value. `bound`: a line to compare it with, such as a limit; 0: none."""

    name: str
    value: float
    bound: float = 0.0


class Bars(Struct, frozen=True, tag=True):
    """A picture of values of one unit beside one another."""

    title: str
    unit: str
    bars: tuple[Bar, ...]

    @property
    def top(self) -> float:
        """The largest value or bound; 1 if all are 0."""
        return max(max(each.value, each.bound) for each in self.bars) or 1.0
