"""Where tables go: the terminal at its width, or a pipe, which is never folded."""

from __future__ import annotations

import sys

from rich.console import Console

PIPE_WIDTH = 240
"""Characters of a line into a pipe: a table's widest key and value on one."""


def terminal() -> Console:
    """Standard output; ids and numbers are not coloured."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(width=width, highlight=False)
