"""A snapshot of a cluster from its ResourceManager, and the tables of its nodes, queues and applications."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from rich.console import Group, RenderableType
from rich.text import Text

from yarn.applications import ApplicationReport
from yarn.nodes import DEFAULT_RACK, NODES_NAMED_MAX, NodeGroup, NodeReport, node_groups
from yarn.queues import QueueInfo
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus, NodeState, YarnApplicationState
from yarnling.cluster.client import Client
from yarnling.cluster.nodes import complaints, named
from yarnling.cluster.state import ClusterState, NodeEntry, conditions
from yarnling.report.listing import Listing, cell

ANSWER_S = 2.0
"""The time to wait for the ResourceManager, in seconds; it normally answers within milliseconds."""
ALIVE = frozenset({NodeState.RUNNING, NodeState.UNHEALTHY, NodeState.DECOMMISSIONING})
_LASTING = frozenset({"paused", "partitioned"})
"""Conditions that a node can be in whatever the ResourceManager reports of it: it comes back when they are undone."""
NODES_MAX = 100
"""The largest number of nodes of which each is shown on a terminal; of more nodes, a summary is shown."""
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


class ClusterSummary(Struct, frozen=True):
    """A snapshot of a cluster with many nodes, which has no report of each node.

    `conditions` as in ClusterSnapshot.
    """

    groups: tuple[NodeGroup, ...]
    root: QueueInfo
    applications: tuple[ApplicationReport, ...]
    conditions: Mapping[str, str]

    def counts(self) -> dict[str, int]:
        """{name of a state: the number of nodes in it}."""
        found: dict[str, int] = {}
        for group in self.groups:
            found[group.state.name] = found.get(group.state.name, 0) + group.nodes
        return found

    def exceptions(self) -> list[str]:
        """A line for each group of nodes that are not RUNNING, each different health report, and each condition."""
        states = [
            f"{named(group.node_ids, group.nodes, NODES_NAMED_MAX)} {group.state.name}"
            for group in self.groups
            if group.state is not NodeState.RUNNING and not group.health_report
        ]
        reported = complaints(group for group in self.groups if group.health_report)
        return [*states, *reported, *_condition_lines(self.conditions)]


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


async def summary(client: Client, state: ClusterState) -> ClusterSummary:
    """Query the ResourceManager for a summary of the cluster; the replies do not grow with the number of nodes."""
    groups = await client.node_groups()
    root = await client.queue("root")
    applications = tuple(sorted(await client.applications(), key=lambda app: app.application_id))
    return ClusterSummary(groups, root, applications, conditions(state.nodes))


async def overview(client: Client, state: ClusterState) -> ClusterSnapshot | ClusterSummary:
    """Query the ResourceManager for a snapshot of the cluster, or for a summary if the cluster has many nodes."""
    return await (summary if len(state.nodes) > NODES_MAX else snapshot)(client, state)


def cluster_tables(view: ClusterSnapshot | ClusterSummary) -> RenderableType:
    """The tables of nodes, queues and applications."""
    parts: list[RenderableType] = []
    if isinstance(view, ClusterSummary):
        parts += [state_table(view.groups), *(cell(line, "red") for line in view.exceptions())]
    else:
        parts += [node_table(view.nodes, view.conditions)]
        parts += [cell(line, "red") for line in (*view.unregistered(), *complaints(node_groups(view.nodes)))]
    parts += ["", queue_table(view.root)]
    if view.applications:
        parts += ["", application_table(view.applications)]
    return Group(*parts)


def process_table(nodes: Iterable[NodeEntry]) -> Listing:
    """A table of the nodes without data from the ResourceManager."""
    entries = list(nodes)
    found = conditions(entries)
    table = Listing("Node", "Name", "Process")
    for entry in entries:
        condition = found.get(entry.node_id)
        table.add_row(entry.node_id, entry.name, cell(condition or f"{entry.process.pid}", "red" if condition else ""))
    return table


def process_lines(nodes: Sequence[NodeEntry]) -> list[str]:
    """The number of nodes without data from the ResourceManager, and a line for each condition of some of them."""
    return [f"{len(nodes)} nodes", *_condition_lines(conditions(nodes))]


def state_table(groups: Iterable[NodeGroup]) -> Listing:
    """A table of the states of nodes: the number of nodes in each, with the sums of what `node_table` shows."""
    table = Listing("State", "Nodes", "Containers", "Memory MB", "Physical MB", "Vcores")
    of_state: dict[NodeState, list[NodeGroup]] = {}
    for group in groups:
        of_state.setdefault(group.state, []).append(group)
    for state, found in of_state.items():
        used = sum((group.used for group in found), Resource(0, 0))
        capability = sum((group.capability for group in found), Resource(0, 0))
        table.add_row(
            _state_cell(state.name),
            str(sum(group.nodes for group in found)),
            str(sum(group.containers for group in found)),
            _of(used.memory_mb, capability.memory_mb),
            str(sum(group.physical_memory_mb for group in found)),
            _of(used.vcores, capability.vcores),
        )
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
            _state_cell(state),
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


def _state_cell(state: str) -> Text:
    return cell(state, "green" if state == NodeState.RUNNING.name else "red")


def _condition_lines(conditions: Mapping[str, str]) -> list[str]:
    """A line for each condition, with the nodes that are in it."""
    found: dict[str, list[str]] = {}
    for node_id, condition in conditions.items():
        found.setdefault(condition, []).append(node_id)
    return [f"{named(node_ids, len(node_ids), NODES_NAMED_MAX)}: {condition}" for condition, node_ids in found.items()]


def _of(part: int, whole: int) -> str:
    return f"{part} / {whole}"
