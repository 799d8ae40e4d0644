"""`yarnling cluster`: the labels that there are (Hadoop's ClusterCLI)."""

from __future__ import annotations

from yarnling.cli.hadoop.options import Option
from yarnling.cli.hadoop.verb import Call, Verb


async def _run(call: Call) -> int:
    if "list-node-labels" in call.given:
        labels = sorted(await call.client.node_labels(), key=lambda label: label.name)
        call.show(labels, f"Node Labels: {','.join(map(str, labels))}")
    else:
        # There is no way to give a node attributes, so that no node has any.
        call.show((), "")
    return 0


CLUSTER = Verb(
    "cluster",
    (
        Option("list-node-labels", "list the labels that nodes can have", short="lnl"),
        Option("list-node-attributes", "list the attributes that nodes have: none", short="lna"),
        Option(
            "directly-access-node-label-store",
            "of no effect: the ResourceManager is asked, which alone has the labels",
            short="dnl",
        ),
    ),
    _run,
    commands=("list-node-labels", "list-node-attributes"),
    usage_end="\n\n",
)
