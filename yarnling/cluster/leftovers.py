"""What is left of a cluster whose supervisor was killed: nothing after a moment, unless its fork server was killed too.

The fork server ends everything when its owner ends, and daemons end with the fork server. After that no process knows
the containers: they are found by the variables that their NodeManager gave them.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable
from pathlib import Path

from yarn.errors import YarnException
from yarnling.cluster.directory import DirectoryInUse, DirectoryLock
from yarnling.cluster.processes import daemons_of_cluster, kill, those_of_cluster, wait_gone
from yarnling.cluster.state import ClusterState, NodeEntry

ROUNDS_MAX = 20
"""Each takes what forked while the last one killed."""
KILL_S = 1.0
GRACE_S = 2.0
"""How long daemons have to end by themselves: their fork server ends them in order when its owner was killed, and an
orderly end is stored, so that applications need not wait for the expiry of their ApplicationMasters when resumed."""


def clean_up(state: ClusterState) -> int:
    """End the processes of a cluster that has lost its supervisor, delete its files; how many processes were killed.

    Files in a directory that the user named stay, and so does everything if another cluster uses that directory now.
    Raises YarnException if a process cannot be ended.
    """
    directories = [Path(state.directory), *(Path(path) for node in state.nodes for path in node.log_dirs)]
    with contextlib.ExitStack() as stack:
        try:
            stack.callback(DirectoryLock.take(directories[0], state.name).release)
        except FileNotFoundError:
            # A temporary directory is deleted with its cluster.
            pass
        except DirectoryInUse:
            state.remove()
            return 0
        killed = end_processes(directories, state.nodes)
        if state.temporary:
            shutil.rmtree(state.directory, ignore_errors=True)
    state.remove()
    return killed


def end_processes(directories: Iterable[Path], nodes: Iterable[NodeEntry] = ()) -> int:
    """End the daemons and containers of a dead cluster; how many had to be killed.

    The caller holds the lock of the cluster's directory. Raises YarnException if a process does not end.
    """
    directories, nodes = tuple(directories), tuple(nodes)
    wait_gone(daemons_of_cluster(*directories), GRACE_S)
    killed: set[int] = set()
    for _ in range(ROUNDS_MAX):
        of_nodes = [process for node in nodes if (process := node.process.process()) is not None]
        rest = [*those_of_cluster(*directories), *of_nodes]
        if not rest:
            break
        for leftover in rest:
            kill(leftover)
        if survivors := wait_gone(rest, KILL_S):
            raise YarnException(f"processes {', '.join(str(left.pid) for left in survivors)} did not end (kill them)")
        killed |= {process.pid for process in rest}
    return len(killed)
