"""The file descriptors that a cluster needs, checked before any process is started.

Measured: an idle ResourceManager has 25 (26 with web services), three more for each process of
nodes and each AM, an idle NodeManager 19 to 22, four more for each container; the process
that starts the cluster has 16, or with network faults 20 for one node and five more for each further one. A cluster
that runs in one process has 7 to 10 for each NodeManager.
"""

from __future__ import annotations

from rm.shell.servers import ADDRESSES
from wire.connection_limits import CONNECTIONS_MIN, allow_descriptors, descriptors_needed

OWN_DESCRIPTORS = 64
"""Descriptors of the process that starts the cluster, and of its fork server."""
NODE_IN_PROCESS = 10
"""Descriptors of a NodeManager, or of the proxies to one, that shares this process."""
LISTENERS_OF_NODE = 2
"""Descriptors of a node of a pack: its port and that of its shuffle service."""


def check_open_files(nodes: int, processes: int, *, in_process: bool, proxies: bool) -> None:
    """Raise this process's limit of open files as far as needed. Raises YarnException if the hard limit is too low.

    `nodes` run in so many `processes`, or in this one (`in_process`), or behind `proxies` in this one.
    """
    rm = descriptors_needed(ADDRESSES, processes + CONNECTIONS_MIN)
    own = OWN_DESCRIPTORS
    if in_process:
        own += rm + nodes * LISTENERS_OF_NODE
    if in_process or proxies:
        own += processes * NODE_IN_PROCESS
    user = f"a cluster with {nodes} node{'' if nodes == 1 else 's'}"
    # The ResourceManager raises its own limit, and inherits the hard one.
    allow_descriptors(max(own, rm), user, "; or start fewer nodes, or more of them in a process: --pack", wanted=own)
