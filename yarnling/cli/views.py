"""What a cluster looks like: asked from the ResourceManager, drawn as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table

from yarn.applications import ApplicationReport
from yarn.nodes import NodeReport
from yarn.queues import QueueInfo
from yarn.states import FinalApplicationStatus, NodeState, YarnApplicationState
from yarnling.cli.terminal import cell
from yarnling.client import Client
from yarnling.node_health import complaints

APPLICATIONS_MAX = 20
"""Shown on a terminal, the last ones; --json has all."""

_STATE_STYLES = {
    YarnApplicationState.RUNNING: "green",
    YarnApplicationState.FAILED: "red",
    YarnApplicationState.KILLED: "yellow",
}


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What the ResourceManager says at one moment."""

    nodes: tuple[NodeReport, ...]
    root: QueueInfo
    applications: tuple[ApplicationReport, ...]


async def look(client: Client) -> ClusterView:
    """Ask for everything."""
    nodes = await client.nodes()
    root = await client.queue("root")
    return ClusterView(
        tuple(sorted(nodes, key=lambda node: node.node_id)),
        root,
        tuple(sorted(await client.applications(), key=lambda app: app.application_id)),
    )


def cluster_view(view: ClusterView) -> RenderableType:
    """All three tables."""
    parts: list[RenderableType] = [node_table(view.nodes)]
    parts += [cell(line, "red") for line in complaints(view.nodes)]
    parts.append(queue_table(view.root))
    if view.applications:
        parts.append(application_table(view.applications))
    return Group(*parts)


def node_table(nodes: Iterable[NodeReport]) -> Table:
    """What containers asked for of what there is, and what they really use."""
    table = _table("Node", "State", "Rack", "Containers", "Memory MB", "Really used MB", "Vcores")
    for node in nodes:
        style = "green" if node.state is NodeState.RUNNING else "red"
        table.add_row(
            str(node.node_id),
            cell(node.state.name, style),
            cell(node.rack),
            str(node.containers),
            _of(node.used.memory_mb, node.capability.memory_mb),
            str(0 if node.containers_utilization is None else node.containers_utilization.physical_memory_mb),
            _of(node.used.vcores, node.capability.vcores),
        )
    return table


def queue_table(root: QueueInfo) -> Table:
    table = _table("Queue", "State", "Capacity", "Maximum", "Used", "Running", "Pending", "Memory MB")
    for depth, queue in queue_tree(root):
        statistics = queue.statistics
        table.add_row(
            cell("  " * depth + queue.name),
            queue.state.name,
            f"{queue.absolute_capacity:.1%}",
            f"{queue.absolute_maximum_capacity:.0%}",
            f"{queue.absolute_used_capacity:.1%}",
            str(statistics.apps_running),
            str(statistics.apps_pending),
            str(statistics.allocated_memory_mb),
        )
    return table


def application_table(applications: tuple[ApplicationReport, ...]) -> Table:
    table = _table("Application", "User", "Name", "Queue", "State", "Outcome", "Progress", "Containers")
    for app in applications[-APPLICATIONS_MAX:]:
        outcome = "" if app.final_status is FinalApplicationStatus.UNDEFINED else app.final_status.name
        table.add_row(
            str(app.application_id),
            cell(app.user),
            cell(app.name),
            cell(app.queue),
            cell(app.state.name, _STATE_STYLES.get(app.state, "")),
            outcome,
            f"{app.progress:.0%}",
            str(max(0, app.usage.used_containers)),
        )
    return table


def queue_tree(queue: QueueInfo, depth: int = 0) -> Iterator[tuple[int, QueueInfo]]:
    """(levels below, queue), parents before their children."""
    yield depth, queue
    for child in queue.children:
        yield from queue_tree(child, depth + 1)


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for number, column in enumerate(columns):
        # On a narrow terminal a cell takes more lines; nothing of it is left out.
        table.add_column(column, no_wrap=number == 0, overflow="fold")
    return table


def _of(part: int, whole: int) -> str:
    return f"{part} / {whole}"
