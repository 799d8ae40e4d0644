"""Pictures in block characters: bars, and bands whose height is a value over time."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from yarn.times import short_number
from yarnling.report.curves import Bars, Curve, Curves
from yarnling.report.space_time_text import DrawnLine
from yarnling.report.wording import labels

BLOCKS = " ▁▂▃▄▅▆▇█"
LEVELS = len(BLOCKS) - 1
GUARANTEE_MARK = "┄"
WITHIN, ABOVE = "green", "yellow"
BAND_LINES = 2
"""The height of a band of `curve_lines`."""
_COLUMNS_MIN = 20
_MARKS = "123456789abcdefghijklmnopqrstuvwxyz"


def bar(used: float, guaranteed: float, most: float, chars: int) -> Text:
    """Draw a bar that is filled up to `used`, in yellow above the guarantee, and dotted up to the maximum.

    The character | marks the guarantee.
    """
    drawn = Text()
    mark = round(guaranteed * chars) if 0 < guaranteed < 1 else -1
    for place in range(chars):
        middle = (place + 0.5) / chars
        if middle <= used:
            drawn.append("█", WITHIN if middle <= guaranteed else ABOVE)
        elif place == mark:
            drawn.append("|", "bold")
        else:
            drawn.append("░" if middle <= most else " ", "dim")
    return drawn


def resampled(times: Sequence[float], samples: Sequence[float], columns: int, end: float) -> list[float]:
    """The mean of the samples in each column; a column without samples repeats the previous one."""
    sums, counts = [0.0] * columns, [0] * columns
    for time, sample in zip(times, samples, strict=True):
        column = min(columns - 1, int(time / end * columns))
        sums[column] += sample
        counts[column] += 1
    shares: list[float] = []
    for total, count in zip(sums, counts, strict=True):
        shares.append(total / count if count else (shares[-1] if shares else 0.0))
    return shares


def cell(height: float, guaranteed: float, row: int, lines: int) -> tuple[str, str]:
    """A character of a band of so many lines, and its style. Heights are fractions of the band; row 0 is the lowest."""
    filled = min(LEVELS, max(0, round((height * lines - row) * LEVELS)))
    if filled == 0:
        is_guarantee = row <= guaranteed * lines < row + 1
        return (GUARANTEE_MARK, "dim") if is_guarantee else (" ", "")
    return BLOCKS[filled], ABOVE if (row + 0.5) / lines > guaranteed else WITHIN


def curve_lines(curves: Curves, width: int) -> list[DrawnLine]:
    """Draw a band for each curve, all to one scale, above an axis of time with the marks."""
    top = curves.top
    head = DrawnLine(f"{curves.title} (full height: {short_number(top)} {curves.unit})", "bold")
    figures = [f"{_ranges(each)} {curves.unit}" for each in curves.curves]
    left = max(map(len, [*(each.name for each in curves.curves), *figures])) + 3
    columns = max(_COLUMNS_MIN, width - left - 1)
    lines = [head]
    for each, figure in zip(curves.curves, figures, strict=True):
        lines += _band(each, figure, left, resampled(curves.times_ms, each.values, columns, curves.times_ms[-1]), top)
    return [*lines, *_axis(curves, left, columns)]


def bar_lines(bars: Bars, width: int) -> list[DrawnLine]:
    """Draw a bar for each value, all to one scale; | marks a bound that is not reached."""
    top = bars.top
    names = labels(each.name for each in bars.bars)
    left = max(map(len, names.values())) + 4
    figures = [f"{short_number(each.value)} {bars.unit}" for each in bars.bars]
    chars = max(_COLUMNS_MIN, width - left - max(map(len, figures)) - 1)
    lines = [DrawnLine(bars.title, "bold")]
    for each, figure in zip(bars.bars, figures, strict=True):
        drawn = bar(each.value / top, each.bound / top, 0, chars).plain
        lines.append(DrawnLine(f"  {names[each.name]:<{left - 2}}{drawn} {figure}"))
    return lines


def _ranges(curve: Curve) -> str:
    return f"up to {short_number(max(curve.values))}, at the end {short_number(curve.values[-1])}"


def _band(curve: Curve, figure: str, left: int, heights: Sequence[float], top: float) -> list[DrawnLine]:
    names = [curve.name, figure]
    return [
        DrawnLine(
            f"  {names[BAND_LINES - 1 - row]:<{left - 2}}│"
            + "".join(cell(height / top, (curve.bound or -1) / top, row, BAND_LINES)[0] for height in heights).rstrip()
        )
        for row in reversed(range(BAND_LINES))
    ]


def _axis(curves: Curves, left: int, columns: int) -> list[DrawnLine]:
    """The axis of time, with the numbers of the marks on it, and what they mean."""
    end_ms = curves.times_ms[-1]
    line = ["─"] * columns
    for number, mark in zip(_MARKS, curves.marks, strict=False):
        line[min(columns - 1, int(mark.at_ms / end_ms * columns))] = number
    last = f"{short_number(end_ms / 1000)} s"
    lines = [f"{'':<{left}}└{''.join(line)}", f"{'':<{left}} 0 s{last:>{columns - 3}}"]
    lines += [f"{'':<{left}} {number}: {mark.text}" for number, mark in zip(_MARKS, curves.marks, strict=False)]
    return [DrawnLine(text, "dim") for text in lines]
