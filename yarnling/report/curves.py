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
