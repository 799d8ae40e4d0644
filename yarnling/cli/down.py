"""`yarnling down` and `yarnling kill-node`: the end of a cluster, and of a part of it."""

from __future__ import annotations

import os
import signal
import sys

from yarn.errors import YarnException
from yarnling.cluster_state import ClusterState, NodeEntry, find_cluster, known_clusters, read_state
from yarnling.leftovers import clean_up
from yarnling.processes import kill, kill_with_descendants, wait_gone

NAMES_MAX = 20
"""Nodes that are named where none is found."""
DOWN_S = 4.0
"""The supervisor promises two seconds; on a machine with other work it may take longer."""


def end_one(name: str) -> None:
    """End the cluster called `name`, or what it has left."""
    _end(read_state(name))


def end_all() -> None:
    """End every cluster that is up."""
    clusters = known_clusters()
    for state in clusters:
        _end(state)
    if not clusters:
        sys.stdout.write("No cluster is up.\n")


def kill_one_node(name: str, node: str, *, containers: bool, with_pack: bool) -> None:
    """SIGKILL to one NodeManager of a cluster; `with_pack`: with all nodes of its process, if it has more."""
    state = find_cluster(name)
    entry = find_node(state, node)
    pack = state.pack_of(entry)
    if len(pack) > 1 and not with_pack:
        raise YarnException(
            f"{entry.name} is one of {len(pack)} nodes of process {entry.process.pid} ({pack[0].name} to "
            f"{pack[-1].name}), which cannot be killed without the others (kill all of them with --pack)"
        )
    process = entry.process.process()
    if process is None:
        raise YarnException(f"{entry.name} ({entry.node_id}) has ended already")
    if containers:
        kill_with_descendants(process.pid)
    else:
        kill(process)
    others = f" with {pack[0].name} to {pack[-1].name}" if len(pack) > 1 else ""
    sys.stdout.write(f"Killed {entry.name} ({entry.node_id}){others}, process {process.pid}.\n")


def _end(state: ClusterState) -> None:
    """TERM to the supervisor, which ends all; if it hangs, KILL to it and to what is left."""
    process = state.supervisor.process()
    if process is None:
        found = clean_up(state)
        left = f"{found} of its processes were left, which were killed" if found else "nothing of it was left"
        sys.stdout.write(f"Cluster {state.name} had ended without a word; {left}.\n")
        return
    os.kill(process.pid, signal.SIGTERM)
    if wait_gone([process], DOWN_S):
        kill(process)
        wait_gone([process], DOWN_S)
        clean_up(state)
    state.remove()
    sys.stdout.write(f"Cluster {state.name} has ended.\n")


def find_node(state: ClusterState, wanted: str) -> NodeEntry:
    """By number, name or id. Raises YarnException, naming those that there are."""
    for entry in state.nodes:
        if wanted in (str(entry.number), entry.name, entry.node_id):
            return entry
    known = ", ".join(entry.name for entry in state.nodes[:NAMES_MAX]) or "none"
    if len(state.nodes) > NAMES_MAX:
        known += f", ... {state.nodes[-1].name}"
    raise YarnException(f"node {wanted}: the cluster {state.name} has {known}")
