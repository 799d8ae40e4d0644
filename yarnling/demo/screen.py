"""The demonstration on the screen: a live view on a terminal, a line for each thing that happens elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from yarn.nodes import NodeReport
from yarn.states import FINAL_APPLICATION_STATES, NodeState
from yarnling.demo.observation import Memory, Sight
from yarnling.demo.usage_history import LABEL_CHARS, usage_chart
from yarnling.demo.workload import Submitted

BAR_CHARS = 24
LINE_EVERY_S = 2.0
"""How often progress is told where there is no live view."""
CHART_CHARS_MAX = 100


class Screen:
    """Shows what is told and seen. Use `showing` around the part that has a live view."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live: Live | None = None
        self._lined_s = -LINE_EVERY_S

    def say(self, text: str) -> None:
        """One line of the story; it stays above the live view."""
        self.console.print(text, markup=False, soft_wrap=True)

    @contextlib.contextmanager
    def showing(self) -> Iterator[None]:
        """The live view is on the screen while the context is open; on a terminal only."""
        if not self.console.is_terminal:
            yield
            return
        with Live(console=self.console, auto_refresh=False, transient=True) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def show(self, sight: Sight, submitted: list[Submitted], memory: Memory) -> None:
        """The newest sight."""
        if self._live is not None:
            chart = usage_chart(memory.usage, self.chart_columns)
            view = Group(application_table(sight, submitted), node_table(sight.nodes), chart)
            self._live.update(view, refresh=True)
        elif sight.time_s - self._lined_s >= LINE_EVERY_S or sight.all_ended:
            self._lined_s = sight.time_s
            self.say(progress_line(sight, submitted))

    def print(self, *parts: RenderableType) -> None:
        for part in parts:
            self.console.print(part)

    @property
    def chart_columns(self) -> int:
        return max(20, min(CHART_CHARS_MAX, self.console.width - LABEL_CHARS - 2))


def progress_line(sight: Sight, submitted: list[Submitted]) -> str:
    """`12.0 s  alice RUNNING 43%  ...  nodes 4 of 5`."""
    parts = [
        f"{one.work.user} {report.state.name} {report.progress:.0%}"
        for one, report in zip(submitted, sight.reports, strict=True)
    ]
    running = sum(node.state is NodeState.RUNNING for node in sight.nodes)
    return f"{sight.time_s:5.1f} s  {'   '.join(parts)}   nodes {running} of {len(sight.nodes)}"


def application_table(sight: Sight, submitted: list[Submitted]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("User", "Work", "Queue", "State", "Progress", "Containers", "Memory MB"):
        table.add_column(column)
    for one, report in zip(submitted, sight.reports, strict=True):
        style = "" if report.state not in FINAL_APPLICATION_STATES else "dim"
        table.add_row(
            one.work.user,
            one.work.what,
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
