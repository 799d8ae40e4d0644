"""`yarnling status`."""

from __future__ import annotations

import asyncio
import sys

from yarnling.cli import json_form
from yarnling.cli.connection import ResourceManagerDown, connect
from yarnling.cli.terminal import in_line, terminal
from yarnling.cli.views import ClusterView, cluster_view, conditions, look, process_table
from yarnling.cluster.state import ClusterState, find_cluster


def show(name: str, *, as_json: bool) -> None:
    """Print the cluster's nodes, queues and applications. Raises ResourceManagerDown after what there is without it."""
    state = find_cluster(name)
    view = None if state.rm.process() is None else asyncio.run(_look(name))
    if as_json:
        sys.stdout.write(json_form.text({"cluster": state, **_plain(state, view)}) + "\n")
    else:
        _print(state, view)
    if view is None:
        raise ResourceManagerDown.of(state)


def _plain(state: ClusterState, view: ClusterView | None) -> dict[str, object]:
    if view is None:
        return {"nodes": None, "root": None, "applications": None, "conditions": conditions(state.nodes)}
    plain: dict[str, object] = json_form.plain(view)
    return plain


def _print(state: ClusterState, view: ClusterView | None) -> None:
    console = terminal()
    place = in_line(f"HADOOP_CONF_DIR={state.conf_dir}")
    console.print(f"Cluster {state.name}, process {state.supervisor.pid}, {place}", soft_wrap=True)
    console.print()
    console.print(process_table(state.nodes) if view is None else cluster_view(view), crop=False)


async def _look(name: str) -> ClusterView:
    state, client = connect(name)
    async with client:
        return await look(client, state)
