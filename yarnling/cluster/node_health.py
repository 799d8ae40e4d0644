"""What nodes say of themselves: that they are not well, or what they cannot do."""

from __future__ import annotations

from collections.abc import Iterable

from yarn.nodes import NodeReport

NAMED_MAX = 3
"""So many nodes are named in one line; the same is often true of all."""


def complaints(nodes: Iterable[NodeReport]) -> list[str]:
    """A line for each thing that NodeManagers say of their nodes, well or not, with the nodes that say it."""
    told: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        report = node.health.report or ("" if node.health.healthy else "no reason given")
        if report:
            told.setdefault((node.state.name, report), []).append(str(node.node_id))
    return [f"{_named(ids)} {state}: {report}" for (state, report), ids in told.items()]


def _named(ids: list[str]) -> str:
    shown = ", ".join(ids[:NAMED_MAX])
    return shown if len(ids) <= NAMED_MAX else f"{shown} and {len(ids) - NAMED_MAX} more"
