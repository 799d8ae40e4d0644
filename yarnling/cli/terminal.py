"""Where people's output goes: the terminal at its width, or a pipe, which is never folded.

Names, diagnostics and paths are others' texts. They are no markup, and what a terminal would obey in them (escape
sequences, a change of the direction of writing) is written out instead. What containers have written is passed on as it
is, as `cat` would.
"""

from __future__ import annotations

import re
import sys

from rich.console import Console
from rich.text import Text

PIPE_WIDTH = 240
"""Characters of a line into a pipe: a table's widest key and value on one."""

# C0 but newline and tab, DEL, C1; Unicode's line ends and marks of direction; surrogates, which no encoding takes.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
NOT_AVAILABLE = "N/A"
_RM_PAGE = re.compile(r"https?://[^\s/]+/(?:proxy|cluster/app)/application_\d+_\d+\S*")
"""A page of a ResourceManager's web server, and of its proxy."""
_PORT_0 = re.compile(r"(?:https?://)?[^\s/]+:0(?:/\S*)?")
_SEE_PAGE = re.compile(rf"For more detailed output, check the application tracking page: {_RM_PAGE.pattern} Then .*\n?")


def terminal() -> Console:
    """Standard output; ids and numbers are not coloured, texts are no markup."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)


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


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
