"""Formats numbers, times and tables as Hadoop's commands do, which use Java's formatters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal

from yarn.java.binary32 import shortest
from yarn.java.values import to_float32
from yarn.nodes import ResourceUtilization
from yarnling.cli.shared.output import NOT_AVAILABLE

_HUNDREDTH = Decimal("0.01")


def progress(fraction: float) -> str:
    """Format a progress as Java's DecimalFormat `###.##%` does: `50%`, `12.35%`, `.5%`, `0%`."""
    text = f"{Decimal(fraction * 100).quantize(_HUNDREDTH, ROUND_HALF_EVEN):f}".rstrip("0").rstrip(".")
    return f"{text[1:] if text.startswith('0.') else text}%"


def hundredths(number: float) -> str:
    """Format a number as Java's DecimalFormat `#.00` does: `50.00`, `-1.00`, `.00`."""
    text = f"{Decimal(number).quantize(_HUNDREDTH, ROUND_HALF_EVEN):f}"
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    return sign + (digits[1:] if digits.startswith("0.") else digits)


def percent(fraction: float) -> str:
    """Format a queue's share as a percentage, computed in 32-bit floats as in Hadoop."""
    return f"{hundredths(to_float32(to_float32(fraction) * 100))}%"


def moment(ms: int) -> str:
    """Format a time as Hadoop's Times.format does: `Sat Nov 21 00:59:00 +0000 2026`, in the local time zone.

    A time of 0 means that the event has not happened, and gives N/A.
    """
    if ms <= 0:
        return NOT_AVAILABLE
    return f"{datetime.fromtimestamp(ms / 1000).astimezone():%a %b %d %H:%M:%S %z %Y}"


def health_moment(ms: int) -> str:
    """Format the time of a health report: `Sat 21/Nov/26 12:59:00:125UTC`, with a 12-hour clock."""
    local = datetime.fromtimestamp(ms // 1000).astimezone()
    return f"{local:%a %d/%b/%y %I:%M:%S}:{ms % 1000:02d}{local:%Z}"


def utilization(use: ResourceUtilization | None) -> str:
    if use is None:
        return ""
    cpu = shortest(to_float32(use.cpu))
    return f"PMem:{use.physical_memory_mb} MB, VMem:{use.virtual_memory_mb} MB, VCores:{cpu}"


def row(widths: Sequence[int], cells: Sequence[object]) -> str:
    """Format cells right-aligned, separated by tabs. A cell that is too wide is not cut."""
    return "\t".join(f"{cell!s:>{width}}" for width, cell in zip(widths, cells, strict=True))


def listing(title: str, widths: Sequence[int], header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Format a title, then the header and the rows in columns."""
    return "\n".join([title, *(row(widths, cells) for cells in (header, *rows))])


def report(title: str, entries: Sequence[tuple[str, object]]) -> str:
    """Format a report: `title : `, then a line for each entry, indented by a tab."""
    return "\n".join([f"{title} : ", *(f"\t{name} : {value}" for name, value in entries)])


def box(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format a table with borders and centred cells (FormattingCLIUtils).

    A table without rows lacks the last border.
    """
    table = [[str(cell) for cell in line] for line in (header, *rows)]
    widths = [max(len(line[column]) for line in table) + 2 for column in range(len(header))]
    whole = sum(widths) + len(widths) - 1
    border = "+" + "+".join("-" * width for width in widths) + "+"
    lines = ["+" + "-" * whole + "+", f"|{_centred(title[: whole - 2], whole)}|", border]
    for number, line in enumerate(table):
        lines.append("|" + "|".join(_centred(cell, width) for cell, width in zip(line, widths, strict=True)) + "|")
        if number == 0 or number == len(table) - 1:
            lines.append(border)
    return "\n".join(lines)


def _centred(text: str, width: int) -> str:
    """Centre a text; an odd space goes to the right."""
    left = (width - len(text)) // 2
    return (" " * left + text).ljust(width)
