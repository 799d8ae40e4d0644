"""`yarnling status`: nodes, queues and applications."""

from __future__ import annotations

import asyncio

from wire.files.plain_json import plain
from yarnling.cli.shared.connection import ResourceManagerDown, connect
from yarnling.cli.shared.output import print_json, terminal
from yarnling.cluster.client import Client
from yarnling.cluster.snapshot import ANSWER_S, ClusterSnapshot, cluster_tables, conditions, process_table, snapshot
from yarnling.cluster.state import find_cluster, read_state
from yarnling.report.escapes import in_line


def show(name: str, *, as_json: bool) -> None:
    """Print nodes, queues and applications.

    If the ResourceManager is down, print what is known without it, and raise ResourceManagerDown.
    """
    state = find_cluster(name)
    view = None if state.rm.process() is None else asyncio.run(_view(name))
    if as_json:
        unknown = {"nodes": None, "root": None, "applications": None, "conditions": conditions(state.nodes)}
        print_json({"cluster": state, **(unknown if view is None else plain(view))})
    else:
        console = terminal()
        place = in_line(f"HADOOP_CONF_DIR={state.conf_dir}")
        console.print(f"Cluster {state.name}, process {state.supervisor.pid}, {place}", soft_wrap=True)
        console.print()
        console.print(process_table(state.nodes) if view is None else cluster_tables(view), crop=False)
    if view is None:
        raise ResourceManagerDown.of(state)


async def _view(name: str) -> ClusterSnapshot:
    state, client = connect(name)
    async with client:
        return await snapshot(client, state)


async def snapshot_or_problem(client: Client, name: str) -> ClusterSnapshot | str:
    """A snapshot, or a sentence that says why the ResourceManager could not give one."""
    state = read_state(name)
    if state.rm.process() is None:
        return ResourceManagerDown.of(state).message
    try:
        async with asyncio.timeout(ANSWER_S):
            return await snapshot(client, state)
    except TimeoutError:
        return f"the ResourceManager of the cluster {name!r} does not answer"
