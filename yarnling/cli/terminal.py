"""Where people's output goes: the terminal at its width, or a pipe, which is never folded.

Names, diagnostics and paths are others' texts. They are no markup, and what a terminal would obey in them (escape
sequences, a change of the direction of writing) is written out instead. What containers have written is passed on as it
is, as `cat` would.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 1_000_000
"""Columns of a pipe. rich needs a number; this one is longer than any line of ours, so that none is folded."""
INDENT = 2
GAP = 2
"""Blanks between two cells of a list."""

# C0 but newline and tab, DEL, C1; Unicode's line ends and marks of direction; surrogates, which no encoding takes.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
NOT_AVAILABLE = "N/A"
_RM_PAGE = re.compile(r"https?://[^\s/]+/(?:proxy|cluster/app)/application_\d+_\d+\S*")
"""A page of a ResourceManager's web server, and of its proxy."""
_PORT_0 = re.compile(r"(?:https?://)?[^\s/]+:0(?:/\S*)?")
_SEE_PAGE = re.compile(rf"For more detailed output, check the application tracking page: {_RM_PAGE.pattern} Then .*\n?")


class _Output(Console):
    """Raises BrokenPipeError once nobody reads it. rich exits the process instead, from wherever it prints."""

    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704  called while the BrokenPipeError is handled


def terminal() -> Console:
    """Standard output; ids and numbers are not coloured, texts are no markup."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return _Output(width=width, highlight=False, markup=False, emoji=False)


def notices() -> Console:
    """Standard error, for what is told beside the result."""
    return Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)


def shown(text: str) -> str:
    """`text` with its control characters written out, such as `\\x1b`; newlines and tabs stay."""
    return _OBEYED.sub(_written_out, text)


def in_line(text: str) -> str:
    """`text` for one line: newlines and tabs are written out too."""
    return shown(text).replace("\n", "\\x0a").replace("\t", "\\x09")


def cell(text: str, style: str = "") -> Text:
    """`text` for a table."""
    return Text(in_line(text), style)


def live(address: str) -> str:
    """A URL, or host:port, for people; N/A where no server listens.

    yarnling has no web servers: its ResourceManager reports the pages that Hadoop's would have, and a NodeManager
    reports port 0. An ApplicationMaster's own page is shown.
    """
    return NOT_AVAILABLE if _RM_PAGE.fullmatch(address) or _PORT_0.fullmatch(address) else address


def without_pages(diagnostics: str) -> str:
    """A ResourceManager's diagnostics with N/A for its web pages."""
    return _RM_PAGE.sub(NOT_AVAILABLE, diagnostics)


def without_page_hint(diagnostics: str) -> str:
    """A ResourceManager's diagnostics without the sentence that sends people to its web page."""
    return _SEE_PAGE.sub("", diagnostics)


class Listing:
    """Rows under columns, for people. No word is split: a row that does not fit takes several lines.

    On a terminal too narrow for the table, each row's first cell has a line of its own, and the other cells follow it,
    each after its column's name. Print it with `crop=False`: a word longer than the line is then left to the terminal.
    """

    def __init__(self, *columns: str) -> None:
        self._columns = columns
        self._rows: list[tuple[Text, ...]] = []

    def add_row(self, *cells: str | Text) -> None:
        """`cells`: as many as there are columns."""
        self._rows.append(tuple(cell(text) if isinstance(text, str) else text for text in cells))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        table = self._table()
        needed = Measurement.get(console, options.update(width=PIPE_WIDTH), table).maximum
        if needed <= options.max_width:
            yield table
            return
        for first, *others in self._rows:
            yield _unfolded(first)
            named = zip(self._columns[1:], others, strict=True)
            pairs = [Text.assemble((f"{column}: ", "dim"), text) for column, text in named if text.plain]
            yield from _filled(pairs, options.max_width - INDENT)

    def _table(self) -> Table:
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for column in self._columns:
            table.add_column(column, no_wrap=True)
        for row in self._rows:
            table.add_row(*row)
        return table


def print_indented(console: Console, line: Text) -> None:
    """Print a line; on a terminal that is too narrow it continues, with more indentation, between two words."""
    if not console.is_terminal or line.cell_len <= console.width:
        console.print(line, soft_wrap=True)
        return
    indent = len(line.plain) - len(line.plain.lstrip(" "))
    for number, part in enumerate(_wrapped(line[indent:], console.width - indent - INDENT)):
        console.print(Text.assemble(" " * (indent + (INDENT if number else 0)), part), soft_wrap=True)


def _filled(phrases: Iterable[Text], width: int) -> Iterator[Text]:
    """Indented lines of at most `width` columns with as many phrases as fit; a longer one is split between words."""
    line: Text | None = None
    for phrase in phrases:
        for part in _wrapped(phrase, width):
            if line is not None and line.cell_len + GAP + part.cell_len <= width:
                line = Text.assemble(line, " " * GAP, part)
                continue
            if line is not None:
                yield _unfolded(Text.assemble(" " * INDENT, line))
            line = part
    if line is not None:
        yield _unfolded(Text.assemble(" " * INDENT, line))


def _wrapped(text: Text, width: int) -> Iterator[Text]:
    """Lines of at most `width` columns, but for words longer than that: none is split."""
    line: Text | None = None
    for word in text.split(" "):
        if line is not None and line.cell_len + 1 + word.cell_len > width:
            yield line
            line = None
        line = word if line is None else Text.assemble(line, " ", word)
    if line is not None:
        yield line


def _unfolded(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ignore"
    return text


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
