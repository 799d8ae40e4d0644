"""The fuzzer as a command: its progress, its summary, its exit status (scripts/soak --fuzz)."""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from tests.cluster.rpc_fuzz.run import Figures, fuzz

WIDTH = 220
"""Columns where the output is not a terminal."""


def run(options: argparse.Namespace) -> int:
    """Fuzz a cluster; returns 1 if a check failed, and keeps the files then."""
    directory = options.directory or Path(tempfile.mkdtemp(prefix="rpc-fuzz-"))
    replay = f"scripts/soak --fuzz --seed {options.seed} --messages {options.messages}"
    console = Console(stderr=True, soft_wrap=True)
    console.print(f"seed {options.seed}, {options.messages} messages; to repeat: {replay}", highlight=False)
    console.print(f"files: {directory}", highlight=False)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("messages"), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=options.messages)
        figures = asyncio.run(
            fuzz(options.seed, options.messages, directory, lambda sent: progress.update(bar, completed=sent))
        )
    if options.json:
        sys.stdout.write(json.dumps(figures.summary(), indent=1) + "\n")
    else:
        # Lines are not wrapped in a pipe or a file.
        _print(figures, Console() if sys.stdout.isatty() else Console(width=WIDTH))
    if not figures.wrong and options.directory is None:
        shutil.rmtree(directory, ignore_errors=True)
    return 1 if figures.wrong else 0


def _print(figures: Figures, console: Console) -> None:
    table = Table("RPC", "calls", "ok", "refused", "slowest ms", box=None)
    for column in table.columns[1:3]:
        column.justify = "right"
    table.columns[4].justify = "right"
    for name, counts in sorted(figures.outcomes.by_rpc.items()):
        refused = ", ".join(f"{outcome} {count}" for outcome, count in counts.most_common() if outcome != "ok")
        slowest = f"{figures.outcomes.slowest_ms[name]:.0f}"
        table.add_row(name, str(counts.total()), str(counts["ok"]), Text(refused), slowest)
    console.print(table)
    summary = figures.summary()
    console.print(
        f"{summary['messages']} messages in {summary['rounds']} rounds, {summary['seconds']} s "
        f"({summary['messages_a_second']} a second); {summary['withheld']} not sent because they were not harmless",
        highlight=False,
    )
    console.print("all checks held" if not figures.wrong else f"{len(figures.wrong)} faults:", highlight=False)
    for text in figures.wrong:
        console.print(Text(f"  {text}"))
