"""`yarnling down`: the end of a cluster."""

from __future__ import annotations

import os
import signal
import sys

from yarnling.cluster_state import ClusterState, known_clusters, read_state
from yarnling.leftovers import clean_up
from yarnling.processes import kill, wait_gone

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
