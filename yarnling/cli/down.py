"""`yarnling down`: stop clusters."""

from __future__ import annotations

import os
import signal

import typer
from msgspec import Struct

from yarnling.cli.shared.output import print_json
from yarnling.cluster.processes import kill, wait_gone
from yarnling.cluster.state import ClusterState, clean_up, known_clusters, read_state

DOWN_S = 4.0
"""The time to wait for the supervisor, in seconds. The supervisor normally stops within two; a busy machine may take
longer."""


class Stopped(Struct, frozen=True):
    """The result of stopping a cluster.

    `killed` is None if the supervisor was alive. If the supervisor had died, `killed` is the number of remaining
    processes, which were killed.
    """

    name: str
    killed: int | None = None

    def __str__(self) -> str:
        if self.killed is None:
            return f"Cluster {self.name} has stopped."
        left = f"{self.killed} remaining processes were killed" if self.killed else "no processes remained"
        return f"The supervisor of cluster {self.name} had already died; {left}."


def stop_one(name: str, *, as_json: bool) -> None:
    """Stop the cluster called `name`. If its supervisor has died, kill the remaining processes."""
    stopped = _stop(read_state(name))
    if as_json:
        print_json(stopped)
    else:
        typer.echo(str(stopped))


def stop_all(*, as_json: bool) -> None:
    """Stop every cluster that is up."""
    stopped = []
    for state in known_clusters():
        stopped.append(_stop(state))
        if not as_json:
            typer.echo(str(stopped[-1]))
    if as_json:
        print_json(stopped)
    elif not stopped:
        typer.echo("No cluster is up.")


def _stop(state: ClusterState) -> Stopped:
    """Send SIGTERM to the supervisor, which stops the cluster.

    If the supervisor hangs, kill it and the remaining processes.
    """
    process = state.supervisor.process()
    if process is None:
        return Stopped(state.name, killed=clean_up(state))
    os.kill(process.pid, signal.SIGTERM)
    if wait_gone([process], DOWN_S):
        kill(process)
        wait_gone([process], DOWN_S)
        clean_up(state)
    state.remove()
    return Stopped(state.name)
