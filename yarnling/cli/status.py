"""`yarnling status`: nodes, queues and applications."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from wire.files.plain_json import plain
from yarnling.cli.shared.connection import ResourceManagerDown, connect
from yarnling.cli.shared.output import print_json, terminal
from yarnling.cluster.client import Client
from yarnling.cluster.snapshot import (
    ANSWER_S,
    NODES_MAX,
    cluster_tables,
    overview,
    process_lines,
    process_table,
    snapshot,
)
from yarnling.cluster.state import ClusterState, conditions, find_cluster, name_option, read_state
from yarnling.report.escapes import in_line

View = TypeVar("View")


def show(name: str, *, all_nodes: bool, as_json: bool) -> None:
    """Print nodes, queues and applications. Many nodes are summarised, except with `all_nodes` or `as_json`.

    If the ResourceManager is down, print what is known without it, and raise ResourceManagerDown.
    """
    state = find_cluster(name)
    query = snapshot if all_nodes or as_json else overview
    view = None if state.rm_is_down else asyncio.run(_view(name, query))
    if as_json:
        unknown = {"nodes": None, "root": None, "applications": None, "conditions": conditions(state.nodes)}
        print_json({"cluster": state, **(unknown if view is None else plain(view))})
    else:
        console = terminal()
        place = in_line(f"HADOOP_CONF_DIR={state.conf_dir}")
        console.print(f"Cluster {state.name}, process {state.supervisor.pid}, {place}", soft_wrap=True)
        console.print()
        is_summary = not all_nodes and len(state.nodes) > NODES_MAX
        if view is not None:
            console.print(cluster_tables(view), crop=False)
        elif is_summary:
            console.print("\n".join(process_lines(state.nodes)), soft_wrap=True)
        else:
            console.print(process_table(state.nodes), crop=False)
        if is_summary:
            console.print(f"\nList all nodes: yarnling status --nodes{name_option(name)}", soft_wrap=True)
    if view is None:
        raise ResourceManagerDown.of(state)


async def _view(name: str, query: Callable[[Client, ClusterState], Awaitable[View]]) -> View:
    state, client = connect(name)
    async with client:
        return await query(client, state)


async def view_or_problem(
    client: Client, name: str, query: Callable[[Client, ClusterState], Awaitable[View]]
) -> View | str:
    """The result of `query`, or a sentence that says why the ResourceManager could not give one."""
    state = read_state(name)
    if state.rm_is_down:
        return ResourceManagerDown.of(state).message
    try:
        async with asyncio.timeout(ANSWER_S):
            return await query(client, state)
    except TimeoutError:
        return f"the ResourceManager of the cluster {name!r} does not answer"
