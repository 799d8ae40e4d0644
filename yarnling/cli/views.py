"""What a cluster looks like: asked from the ResourceManager, drawn as tables."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field
from rich.console import Group, RenderableType

from yarn.applications import ApplicationReport
from yarn.nodes import DEFAULT_RACK, NodeReport
from yarn.queues import QueueInfo
from yarn.states import FinalApplicationStatus, NodeState, YarnApplicationState
from yarnling.cli.connection import ResourceManagerDown
from yarnling.cli.terminal import Listing, cell
from yarnling.cluster.client import Client
from yarnling.cluster.nodes import complaints
from yarnling.cluster.state import ClusterState, NodeEntry, read_state

ANSWER_S = 2.0
"""A ResourceManager that takes longer does not answer; it takes milliseconds."""
ALIVE = frozenset({NodeState.RUNNING, NodeState.UNHEALTHY, NodeState.DECOMMISSIONING})
APPLICATIONS_MAX = 20
"""Shown on a terminal, the last ones; --json has all."""

_STATE_STYLES = {
    YarnApplicationState.RUNNING: "green",
    YarnApplicationState.FAILED: "red",
    YarnApplicationState.KILLED: "yellow",
}


class ClusterView(Struct, frozen=True):
    """What the ResourceManager says at one moment.

    `conditions` {node id: "paused" or "ended"} is what is known of processes before it notices.
    """

    nodes: tuple[NodeReport, ...]
    root: QueueInfo
    applications: tuple[ApplicationReport, ...]
    conditions: Mapping[str, str] = field(default_factory=dict)

    def state_of(self, node: NodeReport) -> str:
        """Its state as the ResourceManager has it, and what has become of its process if that is news."""
        return _state_told(node, self.conditions.get(str(node.node_id), ""))

    def strangers(self) -> list[str]:
        """A line for each paused node that a ResourceManager which was started meanwhile has never heard of."""
        known = {str(node.node_id) for node in self.nodes}
        paused = [node_id for node_id, condition in self.conditions.items() if condition == "paused"]
        return [
            f"{node_id} is paused, and unknown to the ResourceManager" for node_id in paused if node_id not in known
        ]


async def look_or_problem(client: Client, name: str) -> ClusterView | str:
    """Ask for everything; if there is nobody to ask, in words why."""
    state = read_state(name)
    if state.rm.process() is None:
        return ResourceManagerDown.of(state).message
    try:
        async with asyncio.timeout(ANSWER_S):
            return await look(client, state)
    except TimeoutError:
        return f"the ResourceManager of the cluster {name!r} does not answer"


async def look(client: Client, state: ClusterState) -> ClusterView:
    """Ask for everything."""
    nodes = await client.nodes()
    root = await client.queue("root")
    return ClusterView(
        tuple(sorted(nodes, key=lambda node: node.node_id.reading_order)),
        root,
        tuple(sorted(await client.applications(), key=lambda app: app.application_id)),
        conditions(state.nodes),
    )


def conditions(nodes: Iterable[NodeEntry]) -> dict[str, str]:
    """{node id: "paused" or "ended"} of those that are."""
    found = {entry.node_id: entry.condition for entry in nodes}
    return {node_id: condition for node_id, condition in found.items() if condition}


def cluster_view(view: ClusterView) -> RenderableType:
    """All three tables."""
    parts: list[RenderableType] = [node_table(view.nodes, view.conditions)]
    parts += [cell(line, "red") for line in (*view.strangers(), *complaints(view.nodes))]
    parts += ["", queue_table(view.root)]
    if view.applications:
        parts += ["", application_table(view.applications)]
    return Group(*parts)


def process_table(nodes: Iterable[NodeEntry]) -> Listing:
    """What there is to tell of nodes without a ResourceManager."""
    table = Listing("Node", "Name", "Process")
    for entry in nodes:
        condition = entry.condition
        table.add_row(entry.node_id, entry.name, cell(condition or f"{entry.process.pid}", "red" if condition else ""))
    return table


def node_table(nodes: Iterable[NodeReport], conditions: Mapping[str, str] | None = None) -> Listing:
    """What is allocated of what there is, and the physical memory that containers really use.

    Racks are left out where there is only the default one: with them the table is too wide for 80 columns.
    """
    listed = list(nodes)
    racks = any(node.rack != DEFAULT_RACK for node in listed)
    table = Listing("Node", "State", *(["Rack"] if racks else []), "Containers", "Memory MB", "Physical MB", "Vcores")
    for node in listed:
        state = _state_told(node, (conditions or {}).get(str(node.node_id), ""))
        table.add_row(
            str(node.node_id),
            cell(state, "green" if state == NodeState.RUNNING.name else "red"),
            *([node.rack] if racks else []),
            str(node.containers),
            _of(node.used.memory_mb, node.capability.memory_mb),
            str(0 if node.containers_utilization is None else node.containers_utilization.physical_memory_mb),
            _of(node.used.vcores, node.capability.vcores),
        )
    return table


def queue_table(root: QueueInfo) -> Listing:
    table = Listing("Queue", "State", "Capacity", "Maximum", "Used", "Running", "Pending", "Memory MB")
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


def application_table(applications: tuple[ApplicationReport, ...]) -> Listing:
    table = Listing("Application", "User", "Name", "Queue", "State", "Outcome", "Progress", "Containers")
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


def _state_told(node: NodeReport, condition: str) -> str:
    is_news = condition == "paused" or (condition and node.state in ALIVE)
    return f"{node.state.name}, {condition}" if is_news else node.state.name


def _of(part: int, whole: int) -> str:
    return f"{part} / {whole}"
