"""Tables and lines for a terminal, which never split a word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from yarnling.report.escapes import in_line

PIPE_WIDTH = 1_000_000
"""The line width that rich uses for output in a pipe: longer than any line, so that no line is wrapped."""
INDENT = 2
GAP = 2
"""The number of spaces between two cells of a line."""
HEADER_STYLE = "bold"
RULE = "─"


def cell(text: str, style: str = "") -> Text:
    """Make the cell of a table from `text`."""
    return Text(in_line(text), style)


class Listing:
    """A table that never splits a word.

    On a terminal too narrow for the table, each row becomes several lines: the first cell alone, then the other cells,
    each after its column's name. Print it with `crop=False`, so that the terminal wraps a word longer than the line.
    """

    def __init__(self, *columns: str) -> None:
        self.columns = columns
        self.rows: list[tuple[Text, ...]] = []

    def add_row(self, *cells: str | Text) -> None:
        """Add a row; `cells` has one cell for each column."""
        self.rows.append(tuple(cell(text) if isinstance(text, str) else text for text in cells))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType | Segment]:
        header = [Text(column, HEADER_STYLE) for column in self.columns]
        widths = [max(text.cell_len for text in column) for column in zip(header, *self.rows, strict=True)]
        needed = sum(widths) + GAP * (len(widths) - 1)
        if needed <= options.max_width:
            yield from _segments(console, header, widths)
            yield Segment(f"{RULE * needed}\n")
            for row in self.rows:
                yield from _segments(console, row, widths)
            return
        for first, *others in self.rows:
            yield _unwrapped(first)
            named = zip(self.columns[1:], others, strict=True)
            pairs = [Text.assemble((f"{column}: ", "dim"), text) for column, text in named if text.plain]
            yield from _filled(pairs, options.max_width - INDENT)


def _segments(console: Console, cells: Sequence[Text], widths: Sequence[int]) -> Iterator[Segment]:
    """A line of the table. rich's own Table takes ten times as long, which shows with thousands of rows."""
    for number, (text, width) in enumerate(zip(cells, widths, strict=True), 1):
        yield from Segment.apply_style(text.render(console), console.get_style(text.style))
        yield Segment(" " * (width - text.cell_len + (GAP if number < len(cells) else 0)))
    yield Segment.line()


def _filled(phrases: Iterable[Text], width: int) -> Iterator[Text]:
    """Fill indented lines of at most `width` columns with phrases.

    A phrase longer than a line is wrapped between words.
    """
    line: Text | None = None
    for phrase in phrases:
        for part in wrapped(phrase, width):
            if line is not None and line.cell_len + GAP + part.cell_len <= width:
                line = Text.assemble(line, " " * GAP, part)
                continue
            if line is not None:
                yield _unwrapped(Text.assemble(" " * INDENT, line))
            line = part
    if line is not None:
        yield _unwrapped(Text.assemble(" " * INDENT, line))


def wrapped(text: Text, width: int) -> Iterator[Text]:
    """Wrap a text into lines of at most `width` columns. A longer word is not split."""
    line: Text | None = None
    for word in text.split(" "):
        if line is not None and line.cell_len + 1 + word.cell_len > width:
            yield line
            line = None
        line = word if line is None else Text.assemble(line, " ", word)
    if line is not None:
        yield line


def _unwrapped(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ignore"
    return text
