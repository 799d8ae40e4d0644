"""`yarnling status`."""

from __future__ import annotations

import asyncio
import sys

from yarnling.cli import json_form
from yarnling.cli.connection import connect
from yarnling.cli.terminal import in_line, terminal
from yarnling.cli.views import ClusterView, cluster_view, look
from yarnling.cluster_state import ClusterState


def show(name: str, *, as_json: bool) -> None:
    """Print the cluster's nodes, queues and applications."""
    state, view = asyncio.run(_look(name))
    if as_json:
        sys.stdout.write(json_form.text({"cluster": state, **json_form.plain(view)}) + "\n")
        return
    console = terminal()
    place = in_line(f"HADOOP_CONF_DIR={state.conf_dir}")
    console.print(f"Cluster {state.name}, process {state.supervisor.pid}, {place}", soft_wrap=True)
    console.print(cluster_view(view))


async def _look(name: str) -> tuple[ClusterState, ClusterView]:
    state, client = connect(name)
    async with client:
        return state, await look(client)
