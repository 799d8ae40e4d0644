"""Output of commands: tables and lines for people, JSON for programs.

Lines are wrapped to the width of a terminal, but never in a pipe. Names, diagnostics and paths may come from other
users. So they are not interpreted as markup, and their control characters (escape sequences, changes of the writing
direction) are escaped. The output of containers is printed unchanged, as `cat` would.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.text import Text

from wire.files.plain_json import plain
from yarn.errors import YarnException
from yarn.faults import FAULTS_COUNTED
from yarnling.report.escapes import in_line, shown
from yarnling.report.listing import INDENT, PIPE_WIDTH, wrapped

LINES_MAX = 5
"""The most lines of one kind, such as warnings, that a summary shows."""
PROGRESS_LINE_S = 60.0
"""The interval at which a long run says how far it is."""

NOT_AVAILABLE = "N/A"
_RM_PAGE = re.compile(r"https?://(?P<host>[^\s/]+)/(?P<page>proxy|cluster/app)/application_\d+_\d+\S*")
"""The address of a page of a ResourceManager's web server or web proxy."""
_PORT_0 = re.compile(r"(?:https?://)?[^\s/]+:0(?:/\S*)?")
_SEE_PAGE = re.compile(rf"For more detailed output, check the application tracking page: {_RM_PAGE.pattern} Then .*\n?")


class _Output(Console):
    """A console that raises BrokenPipeError when its reader has exited. By default, rich exits the process."""

    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704  called while the BrokenPipeError is handled


def terminal() -> Console:
    """A console for standard output, without highlighting and markup."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return _Output(width=width, highlight=False, markup=False, emoji=False)


def notices() -> Console:
    """A console for standard error, for messages in addition to the result."""
    return Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)


class ProgressLines:
    """The progress of a long run, as a line on standard error every minute, where nobody would see a progress bar.

    So the log of a CI job shows that it goes on; some systems end a job that prints nothing for ten minutes.
    """

    def __init__(self, console: Console, now_s: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._now_s = now_s
        self._due_s = now_s() + PROGRESS_LINE_S

    def show(self, text_of: Callable[[], str]) -> None:
        """Print the text if it is time for a line. Call it often."""
        now_s = self._now_s()
        if now_s >= self._due_s and not self._console.is_terminal:
            self._due_s = now_s + PROGRESS_LINE_S
            self._console.print(in_line(text_of()))


def live(address: str, web: str = "") -> str:
    """A URL or host:port for people; N/A if no server listens there.

    `web`: the host:port of the ResourceManager's pages, "" if it serves none; it reports the same URLs then. There is
    no web proxy. A NodeManager without pages reports port 0. The URL of an ApplicationMaster's own page is kept.
    """
    page = _RM_PAGE.fullmatch(address)
    return NOT_AVAILABLE if (page and not _is_served(page, web)) or _PORT_0.fullmatch(address) else address


def without_dead_pages(diagnostics: str, web: str = "") -> str:
    """The diagnostics of a ResourceManager with N/A in place of its pages that are not served; see `live`."""
    return _RM_PAGE.sub(lambda page: page[0] if _is_served(page, web) else NOT_AVAILABLE, diagnostics)


def without_page_hint(diagnostics: str, web: str = "") -> str:
    """The diagnostics of a ResourceManager without the sentence that refers to its page, if that is not served."""
    return _SEE_PAGE.sub(lambda hint: hint[0] if _is_served(hint, web) else "", diagnostics)


def _is_served(page: re.Match[str], web: str) -> bool:
    return page["page"] != "proxy" and page["host"] == web


def print_indented(console: Console, line: Text) -> None:
    """Print a line; on a narrow terminal it is wrapped between words, with more indentation."""
    if not console.is_terminal or line.cell_len <= console.width:
        console.print(line, soft_wrap=True)
        return
    indent = len(line.plain) - len(line.plain.lstrip(" "))
    for number, part in enumerate(wrapped(line[indent:], console.width - indent - INDENT)):
        console.print(Text.assemble(" " * (indent + (INDENT if number else 0)), part), soft_wrap=True)


def print_lines(title: str, lines: Sequence[str], all_in: str, console: Console) -> None:
    """Print a title and as many lines as fit a summary, if there are any. `all_in`: what has all of them, in words."""
    if not lines:
        return
    console.print(f"\n{title}", style="bold")
    for line in lines[:LINES_MAX]:
        print_indented(console, Text(f"  {in_line(line)}"))
    if len(lines) > LINES_MAX:
        console.print(f"  and {len(lines) - LINES_MAX} more ({all_in})")


def print_json(value: object) -> None:
    """Print `value` as indented JSON. Raises TypeError for a value that `plain` cannot convert."""
    sys.stdout.write(f"{json.dumps(plain(value), indent=2)}\n")
    sys.stdout.flush()


def print_error(error: YarnException, *, are_faults: bool = False) -> None:
    """Print an error message, which may contain text of other users, to standard error.

    `are_faults`: each line is a fault; a long list has their number before and after it.
    """
    text = shown(error.message)
    lines = text.split("\n")
    if not are_faults or len(lines) <= FAULTS_COUNTED:
        sys.stderr.write(f"yarnling: {text}\n")
        return
    warnings = sum(line.startswith("warning: ") for line in lines)
    counts = f"{len(lines) - warnings} errors" + (f" and {warnings} warnings" if warnings else "")
    sys.stderr.write(f"yarnling: {counts}\n{text}\nyarnling: {counts}, listed above\n")
