"""Queue usage over time, and a chart of it in block characters.

One band for each queue: its height is the fraction of the cluster that the queue used, green up to its guaranteed
capacity, yellow above it. All bands have the same scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.text import Text

from yarnling.report.block_characters import cell, resampled

BAND_LINES = 3
MARK = "bold red"
LABEL_CHARS = 30
SCALE_STEPS = (0.1, 0.2, 0.25, 0.5, 0.75, 1.0)
"""The full height of a band stands for the smallest of these that is not below any value."""


@dataclass
class QueueUsage:
    """A queue: `guaranteed` and `samples` as fractions of the cluster."""

    path: str
    guaranteed: float
    samples: list[float] = field(default_factory=list)


@dataclass
class UsageHistory:
    """Samples of all leaf queues at `times_s`; `marks` {time in s: what happened then}."""

    times_s: list[float] = field(default_factory=list)
    queues: dict[str, QueueUsage] = field(default_factory=dict)
    marks: dict[float, str] = field(default_factory=dict)

    def add(self, time_s: float, used: dict[str, tuple[float, float]]) -> None:
        """A sample: {queue path: (guaranteed, used)}, the same queues each time."""
        for path, (guaranteed, share) in used.items():
            queue = self.queues.setdefault(path, QueueUsage(path, guaranteed, [0.0] * len(self.times_s)))
            queue.samples.append(share)
        self.times_s.append(time_s)


def usage_chart(history: UsageHistory, columns: int) -> Text:
    """The chart with its labels; `columns` is the width of the time axis in characters."""
    if not history.times_s:
        return Text("no samples")
    end_s = max(history.times_s[-1], 0.001)
    busy = [queue for queue in history.queues.values() if max(queue.samples) > 0]
    scale = full_scale(max((share for queue in busy for share in (*queue.samples, queue.guaranteed)), default=1.0))
    chart = Text()
    for queue in busy:
        shares = resampled(history.times_s, queue.samples, columns, end_s)
        chart.append_text(_band(queue, shares, scale))
    chart.append_text(_axis(history, columns, end_s))
    idle = [queue.path for queue in history.queues.values() if queue not in busy]
    if idle:
        chart.append(f"never used: {', '.join(idle)}\n", "dim")
    return chart


def full_scale(largest: float) -> float:
    """The fraction of the cluster that the full height of a band stands for."""
    return next((step for step in SCALE_STEPS if step >= largest), 1.0)


def _band(queue: QueueUsage, shares: Sequence[float], scale: float) -> Text:
    """BAND_LINES lines, the top one first, with the queue's name and figures on the left."""
    labels = [queue.path.removeprefix("root."), f"peak {max(queue.samples):.0%}", f"guaranteed {queue.guaranteed:.0%}"]
    band = Text()
    for row in reversed(range(BAND_LINES)):
        band.append(f"{labels[BAND_LINES - 1 - row]:<{LABEL_CHARS}}│", "" if row == BAND_LINES - 1 else "dim")
        for share in shares:
            band.append(*cell(share / scale, queue.guaranteed / scale, row, BAND_LINES))
        band.append("\n")
    return band


def _axis(history: UsageHistory, columns: int, end_s: float) -> Text:
    line = ["─"] * columns
    axis = Text(f"{'':<{LABEL_CHARS}}└")
    for time_s in history.marks:
        line[min(columns - 1, int(time_s / end_s * columns))] = "✗"
    for letter in line:
        axis.append(letter, MARK if letter == "✗" else "")
    last = f"{end_s:.0f} s"
    axis.append(f"\n{'':<{LABEL_CHARS}} 0 s{last:>{max(0, columns - 3)}}\n", "dim")
    for time_s, text in history.marks.items():
        axis.append(f"{'':<{LABEL_CHARS}} ✗ {time_s:.1f} s: {text}\n", MARK)
    return axis
