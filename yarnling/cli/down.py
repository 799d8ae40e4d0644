"""`yarnling down` and `yarnling kill-node`: the end of a cluster, and of a part of it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from yarn.errors import YarnException
from yarnling.cluster_state import ClusterState, NodeEntry, find_cluster, living_clusters
from yarnling.processes import kill, kill_with_descendants, those_that_name, wait_gone

DOWN_S = 4.0
"""The supervisor promises two seconds; on a machine with other work it may take longer."""
KILL_S = 1.0


def end_one(name: str) -> None:
    """End the cluster called `name`."""
    _end(find_cluster(name))


def end_all() -> None:
    """End every cluster that is up."""
    clusters = living_clusters()
    for state in clusters:
        _end(state)
    if not clusters:
        sys.stdout.write("No cluster is up.\n")


def kill_one_node(name: str, node: str, *, containers: bool) -> None:
    """SIGKILL to one NodeManager of a cluster."""
    entry = _find_node(find_cluster(name), node)
    process = entry.process.process()
    if process is None:
        raise YarnException(f"{entry.name} ({entry.node_id}) has ended already")
    if containers:
        kill_with_descendants(process.pid)
    else:
        kill(process)
    sys.stdout.write(f"Killed {entry.name} ({entry.node_id}), process {process.pid}.\n")


def _end(state: ClusterState) -> None:
    """TERM to the supervisor, which ends all; if it hangs, KILL to it and to what is left."""
    process = state.supervisor.process()
    if process is not None:
        os.kill(process.pid, signal.SIGTERM)
        if wait_gone([process], DOWN_S):
            kill(process)
            _sweep(Path(state.directory))
    state.remove()
    sys.stdout.write(f"Cluster {state.name} has ended.\n")


def _sweep(directory: Path) -> None:
    rest = those_that_name(directory)
    for leftover in rest:
        kill(leftover)
    if survivors := wait_gone(rest, KILL_S):
        raise YarnException(f"processes {', '.join(str(left.pid) for left in survivors)} did not end (kill them)")


def _find_node(state: ClusterState, wanted: str) -> NodeEntry:
    for entry in state.nodes:
        if wanted in (str(entry.number), entry.name, entry.node_id):
            return entry
    known = ", ".join(entry.name for entry in state.nodes) or "none"
    raise YarnException(f"node {wanted}: the cluster {state.name} has {known}")
