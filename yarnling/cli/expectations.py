"""Expectations on the command line: they are checked, printed, and decide the exit status."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from yarnling.cli.shared.output import print_indented
from yarnling.report.escapes import shown
from yarnling.whatif.expectations import Checked

EXIT_HOLDS = 0
EXIT_BROKEN = 1


def print_checked(checked: Sequence[Checked], console: Console) -> None:
    """Print an empty line, then whether each expectation holds, with its warning; nothing without expectations."""
    if checked:
        console.print()
    for each in checked:
        word = Text("holds         ", "green") if each.holds else Text("does not hold ", "red")
        print_indented(console, Text.assemble(word, shown(f"{each.text} ({each.value})")))
        if each.warning:
            warning = Text("  warning: ", "yellow")
            print_indented(console, Text.assemble(warning, shown(each.warning)))


def exit_status(checked: Sequence[Checked]) -> int:
    """0 if all hold."""
    return EXIT_HOLDS if all(each.holds for each in checked) else EXIT_BROKEN
