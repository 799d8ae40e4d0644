"""`yarnling down`: the end of a cluster."""

from __future__ import annotations

import os
import signal
import sys

from msgspec import Struct

from yarnling.cli import json_form
from yarnling.cluster.processes import kill, wait_gone
from yarnling.cluster.state import ClusterState, clean_up, known_clusters, read_state

DOWN_S = 4.0
"""The supervisor promises two seconds; on a machine with other work it may take longer."""


class Ended(Struct, frozen=True):
    """How a cluster ended; `killed`: processes that it had left when it ended without a word, None if it did not."""

    name: str
    killed: int | None = None

    def __str__(self) -> str:
        if self.killed is None:
            return f"Cluster {self.name} has ended."
        left = (
            f"{self.killed} of its processes were left, which were killed" if self.killed else "nothing of it was left"
        )
        return f"Cluster {self.name} had ended without a word; {left}."


def end_one(name: str, *, as_json: bool) -> None:
    """End the cluster called `name`, or what it has left."""
    ended = _end(read_state(name))
    sys.stdout.write(f"{json_form.text(ended) if as_json else ended}\n")


def end_all(*, as_json: bool) -> None:
    """End every cluster that is up."""
    ended = []
    for state in known_clusters():
        ended.append(_end(state))
        if not as_json:
            sys.stdout.write(f"{ended[-1]}\n")
    if as_json:
        sys.stdout.write(json_form.text(ended) + "\n")
    elif not ended:
        sys.stdout.write("No cluster is up.\n")


def _end(state: ClusterState) -> Ended:
    """TERM to the supervisor, which ends all; if it hangs, KILL to it and to what is left."""
    process = state.supervisor.process()
    if process is None:
        return Ended(state.name, killed=clean_up(state))
    os.kill(process.pid, signal.SIGTERM)
    if wait_gone([process], DOWN_S):
        kill(process)
        wait_gone([process], DOWN_S)
        clean_up(state)
    state.remove()
    return Ended(state.name)
