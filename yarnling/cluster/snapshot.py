"""A snapshot of a cluster from its ResourceManager, and the tables of its nodes, queues and applications."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field
from rich.console import Group, RenderableType

from yarn.applications import ApplicationReport
from yarn.nodes import DEFAULT_RACK, NodeReport
from yarn.queues import QueueInfo
from yarn.states import FinalApplicationStatus, NodeState, YarnApplicationState
from yarnling.cluster.client import Client
from yarnling.cluster.nodes import complaints
from yarnling.cluster.state import ClusterState, NodeEntry
from yarnling.report.listing import Listing, cell

ANSWER_S = 2.0
"""The time to wait for the ResourceManager, in seconds; it normally answers within milliseconds."""
ALIVE = frozenset({NodeState.RUNNING, NodeState.UNHEALTHY, NodeState.DECOMMISSIONING})
_LASTING = frozenset({"paused", "partitioned"})
"""Conditions that a node can be in whatever the ResourceManager reports of it: it comes back when they are undone."""
APPLICATIONS_MAX = 20
"""The number of applications that are shown on a terminal, the newest ones; --json shows all."""

_STATE_STYLES = {
    YarnApplicationState.RUNNING: "green",
    YarnApplicationState.FAILED: "red",
    YarnApplicationState.KILLED: "yellow",
}


class ClusterSnapshot(Struct, frozen=True):
    """A snapshot of the cluster from the ResourceManager.

    `conditions` is {node id: "ended", "paused" or "partitioned"} of nodes that do not work; the ResourceManager may not
    have noticed yet.
    """

    nodes: tuple[NodeReport, ...]
    root: QueueInfo
    applications: tuple[ApplicationReport, ...]
    conditions: Mapping[str, str] = field(default_factory=dict)

    def state_of(self, node: NodeReport) -> str:
        """The state that the ResourceManager reports, and the condition of the process if that adds something."""
        return _node_state(node, self.conditions.get(str(node.node_id), ""))

    def unregistered(self) -> list[str]:
        """A line for each node that runs and could not register with a restarted ResourceManager."""
        known = {str(node.node_id) for node in self.nodes}
        return [
            f"{node_id} is {condition}, and unknown to the ResourceManager"
            for node_id, condition in self.conditions.items()
            if condition in _LASTING and node_id not in known
        ]


async def snapshot(client: Client, state: ClusterState) -> ClusterSnapshot:
    """Query the ResourceManager for a snapshot of the cluster."""
    nodes = await client.nodes()
    root = await client.queue("root")
    return ClusterSnapshot(
        tuple(sorted(nodes, key=lambda node: node.node_id.reading_order)),
        root,
        tuple(sorted(await client.applications(), key=lambda app: app.application_id)),
        conditions(state.nodes),
    )


def conditions(nodes: Iterable[NodeEntry]) -> dict[str, str]:
    """{node id: "ended", "paused" or "partitioned"} of the nodes that do not work."""
    found = {entry.node_id: entry.condition for entry in nodes}
    return {node_id: condition for node_id, condition in found.items() if condition}


def cluster_tables(view: ClusterSnapshot) -> RenderableType:
    """The tables of nodes, queues and applications."""
    parts: list[RenderableType] = [node_table(view.nodes, view.conditions)]
    parts += [cell(line, "red") for line in (*view.unregistered(), *complaints(view.nodes))]
    parts += ["", queue_table(view.root)]
    if view.applications:
        parts += ["", application_table(view.applications)]
    return Group(*parts)


def process_table(nodes: Iterable[NodeEntry]) -> Listing:
    """A table of the nodes without data from the ResourceManager."""
    table = Listing("Node", "Name", "Process")
    for entry in nodes:
        condition = entry.condition
        table.add_row(entry.node_id, entry.name, cell(condition or f"{entry.process.pid}", "red" if condition else ""))
    return table


def node_table(nodes: Iterable[NodeReport], conditions: Mapping[str, str] | None = None) -> Listing:
    """A table of the nodes with allocated and total resources, and the physical memory that containers actually use.

    Racks are left out if there is only the default one, so that the table fits into 80 columns.
    """
    listed = list(nodes)
    racks = any(node.rack != DEFAULT_RACK for node in listed)
    table = Listing("Node", "State", *(["Rack"] if racks else []), "Containers", "Memory MB", "Physical MB", "Vcores")
    for node in listed:
        state = _node_state(node, (conditions or {}).get(str(node.node_id), ""))
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
    """Yield (depth, queue) for the queue and all queues below it, parents before their children."""
    yield depth, queue
    for child in queue.children:
        yield from queue_tree(child, depth + 1)


def _node_state(node: NodeReport, condition: str) -> str:
    adds_something = condition in _LASTING or (condition and node.state in ALIVE)
    return f"{node.state.name}, {condition}" if adds_something else node.state.name


def _of(part: int, whole: int) -> str:
    return f"{part} / {whole}"
