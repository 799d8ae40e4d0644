"""What nodes say of themselves when they are not well."""

from __future__ import annotations

from collections.abc import Iterable

from yarn.nodes import NodeReport


def complaints(nodes: Iterable[NodeReport]) -> list[str]:
    """A line for each node that is not healthy, with the reason that its NodeManager gives."""
    ill = [node for node in nodes if not node.health.healthy]
    return [f"{node.node_id} {node.state.name}: {node.health.report or 'no reason given'}" for node in ill]
