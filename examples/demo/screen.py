"""The output of the demonstration: a live view on a terminal, otherwise lines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from examples.demo.observation import Observations, Snapshot
from examples.demo.usage_history import LABEL_CHARS, usage_chart
from examples.demo.workload import Submitted
from yarn.nodes import NodeReport
from yarn.states import FINAL_APPLICATION_STATES, NodeState

BAR_CHARS = 24
LINE_EVERY_S = 2.0
"""The seconds between two progress lines if there is no live view."""
CHART_CHARS_MAX = 100


class Screen:
    """Prints lines and shows snapshots. Use `showing` around the part that has a live view."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live: Live | None = None
        self._last_line_s = -LINE_EVERY_S

    def say(self, text: str) -> None:
        """Print one line, above the live view."""
        self.console.print(text, markup=False, soft_wrap=True)

    @contextlib.contextmanager
    def showing(self) -> Iterator[None]:
        """Keep the live view on the screen while the context is open; does nothing if this is not a terminal."""
        if not self.console.is_terminal:
            yield
            return
        with Live(console=self.console, auto_refresh=False, transient=True) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def show(self, snapshot: Snapshot, submitted: list[Submitted], observed: Observations) -> None:
        """Update the live view, or print a progress line from time to time."""
        if self._live is not None:
            chart = usage_chart(observed.usage, self.chart_columns)
            view = Group(application_table(snapshot, submitted), node_table(snapshot.nodes), chart)
            self._live.update(view, refresh=True)
        elif snapshot.time_s - self._last_line_s >= LINE_EVERY_S or snapshot.all_ended:
            self._last_line_s = snapshot.time_s
            self.say(progress_line(snapshot, submitted))

    def print(self, *parts: RenderableType) -> None:
        for part in parts:
            self.console.print(part)

    @property
    def chart_columns(self) -> int:
        return max(20, min(CHART_CHARS_MAX, self.console.width - LABEL_CHARS - 2))


def progress_line(snapshot: Snapshot, submitted: list[Submitted]) -> str:
    """`12.0 s  alice RUNNING 43%  ...  nodes 4 of 5`."""
    parts = [
        f"{one.job.user} {report.state.name} {report.progress:.0%}"
        for one, report in zip(submitted, snapshot.reports, strict=True)
    ]
    running = sum(node.state is NodeState.RUNNING for node in snapshot.nodes)
    return f"{snapshot.time_s:5.1f} s  {'   '.join(parts)}   nodes {running} of {len(snapshot.nodes)}"


def application_table(snapshot: Snapshot, submitted: list[Submitted]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("User", "Work", "Queue", "State", "Progress", "Containers", "Memory MB"):
        table.add_column(column)
    for one, report in zip(submitted, snapshot.reports, strict=True):
        style = "" if report.state not in FINAL_APPLICATION_STATES else "dim"
        table.add_row(
            one.job.user,
            one.job.what,
            report.queue.removeprefix("root."),
            report.state.name,
            ProgressBar(total=1.0, completed=report.progress, width=BAR_CHARS),
            str(max(0, report.usage.used_containers)),
            str(max(0, report.usage.used.memory_mb)),
            style=style,
        )
    return table


def node_table(nodes: tuple[NodeReport, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("Node", "State", "Containers", "Memory"):
        table.add_column(column)
    for node in nodes:
        is_running = node.state is NodeState.RUNNING
        table.add_row(
            str(node.node_id),
            Text(node.state.name, "green" if is_running else "bold red"),
            str(node.containers),
            ProgressBar(total=max(1, node.capability.memory_mb), completed=node.used.memory_mb, width=BAR_CHARS),
        )
    return table
