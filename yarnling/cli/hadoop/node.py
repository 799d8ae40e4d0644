"""`yarnling node`: list and show nodes (Hadoop's NodeCLI). `yarnling cluster`: list node labels (ClusterCLI)."""

from __future__ import annotations

from yarn.ids import NodeId
from yarn.nodes import NodeReport
from yarn.states import NodeState
from yarnling.cli.hadoop import form
from yarnling.cli.hadoop.verb import REFUSED, Invocation, Option, Verb
from yarnling.cli.shared.output import live

WIDTHS = (16, 15, 17, 28)
HEADER = ("Node-Id", "Node-State", "Node-Http-Address", "Number-of-Running-Containers")


async def _run(call: Invocation) -> int:
    if "status" in call.given:
        return await _status(call) if call.given.only("status") else call.refuse()
    return await _list(call)


async def _list(call: Invocation) -> int:
    states = frozenset({NodeState.RUNNING})
    if "all" in call.given:
        states = frozenset(NodeState)
    elif "states" in call.given:
        words = call.given.words("states")
        for word in words:
            if word.upper() not in NodeState.__members__:
                call.say(f"The node state {word} is invalid.")
                known = ",".join(NodeState.__members__)
                call.say(f"The valid node state can be one of the following: {known}.")
                return REFUSED
        states = frozenset(NodeState[word.upper()] for word in words)
    nodes = await call.client.nodes(states)
    lines = [f"Total Nodes:{len(nodes)}", form.row(WIDTHS, HEADER)]
    for node in nodes:
        lines.append(form.row(WIDTHS, (node.node_id, node.state.name, live(node.http_address), node.containers)))
        if "showDetails" in call.given:
            lines += _details(node)
    call.show(nodes, "\n".join(lines))
    return 0


def _details(node: NodeReport) -> list[str]:
    return [
        "Detailed Node Information :",
        f"\tConfigured Resources : {node.capability}",
        f"\tAllocated Resources : {node.used}",
        f"\tResource Utilization by Node : {form.utilization(node.node_utilization)}",
        f"\tResource Utilization by Containers : {form.utilization(node.containers_utilization)}",
        f"\tNode-Labels : {','.join(sorted(node.labels))}",
    ]


async def _status(call: Invocation) -> int:
    """Print the report of a node. An unknown node is not an error, as in Hadoop."""
    wanted = NodeId.parse(call.given.one("status"))
    for node in await call.client.nodes():
        if node.node_id == wanted:
            call.show(node, form.report("Node Report", _entries(node)) + "\n")
            return 0
    call.show(None, f"Could not find the node report for node id : {call.given.one('status')}")
    return 0


def _entries(node: NodeReport) -> list[tuple[str, object]]:
    return [
        ("Node-Id", node.node_id),
        ("Rack", node.rack),
        ("Node-State", node.state.name),
        ("Node-Http-Address", live(node.http_address)),
        ("Last-Health-Update", form.health_moment(node.health.reported_ms)),
        ("Health-Report", node.health.report),
        ("Containers", node.containers),
        ("Memory-Used", f"{node.used.memory_mb}MB"),
        ("Memory-Capacity", f"{node.capability.memory_mb}MB"),
        ("CPU-Used", f"{node.used.vcores} vcores"),
        ("CPU-Capacity", f"{node.capability.vcores} vcores"),
        ("Node-Labels", ",".join(sorted(node.labels))),
        ("Node Attributes", ""),
        ("Resource Utilization by Node", form.utilization(node.node_utilization)),
        ("Resource Utilization by Containers", form.utilization(node.containers_utilization)),
    ]


NODE = Verb(
    "node",
    (
        Option("list", "list nodes; by default only those that are RUNNING"),
        Option("states", "with -list: only nodes in these states, comma-separated", "STATES", many=True),
        Option("all", "with -list: nodes in all states"),
        Option("showDetails", "with -list: resources, utilization and labels too"),
        Option("status", "print the report of a node", "NODE_ID"),
    ),
    _run,
    commands=("list", "status"),
)


async def _run_cluster(call: Invocation) -> int:
    if "list-node-labels" in call.given:
        labels = sorted(await call.client.node_labels(), key=lambda label: label.name)
        call.show(labels, f"Node Labels: {','.join(map(str, labels))}")
    else:
        # Node attributes are not supported, so no node has any.
        call.show((), "")
    return 0


CLUSTER = Verb(
    "cluster",
    (
        Option("list-node-labels", "list the node labels of the cluster", short="lnl"),
        Option("list-node-attributes", "list node attributes; there are none", short="lna"),
        Option(
            "directly-access-node-label-store",
            "no effect: labels are always read from the ResourceManager",
            short="dnl",
        ),
    ),
    _run_cluster,
    commands=("list-node-labels", "list-node-attributes"),
    usage_end="\n\n",
)
