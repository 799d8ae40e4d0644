"""What a cluster has left whose supervisor was killed: nothing, unless its fork server was killed with it.

The fork server ends everything when its owner goes, and daemons end with the fork server. Containers then have nobody
left who knows them: they are found by what their NodeManager gave them.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from yarn.errors import YarnException
from yarnling.cluster_state import ClusterState
from yarnling.processes import kill, those_that_name, wait_gone

ROUNDS_MAX = 20
"""Each takes what forked while the last one killed."""
KILL_S = 1.0


def clean_up(state: ClusterState) -> int:
    """End the processes of a cluster that has lost its supervisor, delete its files; how many processes there were.

    Files in a directory that the user named stay. Raises YarnException if a process cannot be ended.
    """
    directories = [Path(state.directory), *(Path(path) for node in state.nodes for path in node.log_dirs)]
    ended: set[int] = set()
    for _ in range(ROUNDS_MAX):
        nodes = [process for node in state.nodes if (process := node.process.process()) is not None]
        rest = [*those_that_name(*directories), *nodes]
        if not rest:
            break
        for leftover in rest:
            kill(leftover)
        if survivors := wait_gone(rest, KILL_S):
            raise YarnException(f"processes {', '.join(str(left.pid) for left in survivors)} did not end (kill them)")
        ended |= {process.pid for process in rest}
    if state.temporary:
        shutil.rmtree(state.directory, ignore_errors=True)
    state.remove()
    return len(ended)
