"""`yarnling cluster`: list node labels (Hadoop's ClusterCLI)."""

from __future__ import annotations

from yarnling.cli.hadoop.options import Option
from yarnling.cli.hadoop.verb import Call, Verb


async def _run(call: Call) -> int:
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
    _run,
    commands=("list-node-labels", "list-node-attributes"),
    usage_end="\n\n",
)
