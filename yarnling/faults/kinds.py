"""The table of faults: the part of a cluster that each kind concerns, what it prevents, and its parameters. Pure.

What each kind does is in yarnling.faults.actions; in yarnling.simulation.faults, if only the simulation has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct


class FaultScope(Enum):
    """The part of a cluster that a fault is injected into."""

    NODE = "a node"
    RM = "the ResourceManager"
    MASTER = "a running ApplicationMaster"
    CONTAINER = "a running container"
    CLIENTS = "the connections from clients to the ResourceManager"


class FaultKind(Struct, frozen=True):
    """A kind of fault. `links`: the links of the network that it impairs (yarnling.cluster.network), of each node if it
    is a fault of nodes.

    `hides_node`: while the fault lasts, the ResourceManager cannot stop containers on the node (on any node, if the
    scope is RM). `isolates_master`: while it lasts, an ApplicationMaster cannot learn that its application has ended,
    and the ResourceManager waits for the AM. `delays_starts`: a call that starts a container may reach the node only
    when the fault is over. `parameters`: what a plan may set in addition to time and target.
    `forgets`: the ResourceManager loses the applications that it knew. `restarts_node`: at its end a NodeManager is
    restarted; not while another fault `decommissions` the node. `only_simulated`: why processes cannot have it.
    """

    name: str
    about: str
    scope: FaultScope
    links: tuple[str, ...] = ()
    hides_node: bool = False
    isolates_master: bool = False
    delays_starts: bool = False
    parameters: tuple[str, ...] = ()
    has_end: bool = True
    forgets: bool = False
    restarts_node: bool = False
    decommissions: bool = False
    only_simulated: str = ""


_LINKS_OF_NODE = ("tracker", "scheduler", "node")
_PARTITION = ("lost", "how")
"""The parameters of a partition."""
_NO_SUCH_DISK = "it would need a disk that can be slowed down or emptied below a running process"
_ONE_CLOCK = "all processes have the clock of this machine"
_NO_SUCH_REQUESTS = "the ApplicationMasters of plans make no such requests"

_KINDS = (
    FaultKind(
        "kill-node",
        "SIGKILL to a NodeManager and its containers, as if the machine had failed; restarted afterwards",
        FaultScope.NODE,
        hides_node=True,
        restarts_node=True,
        parameters=("containers",),
    ),
    FaultKind(
        "stop-node",
        "SIGTERM to a NodeManager, which stops its containers and unregisters; restarted afterwards",
        FaultScope.NODE,
        delays_starts=True,
        restarts_node=True,
    ),
    FaultKind("pause-node", "SIGSTOP to a NodeManager; its containers keep running", FaultScope.NODE, hides_node=True),
    FaultKind(
        "decommission-node",
        "graceful decommissioning: no new containers, then the NodeManager exits; recommissioned afterwards",
        FaultScope.NODE,
        delays_starts=True,
        parameters=("timeout",),
        decommissions=True,
    ),
    FaultKind("full-disk", "the disk of a node's local directory is full", FaultScope.NODE),
    FaultKind(
        "kill-rm", "SIGKILL to the ResourceManager; restarted on the same state store", FaultScope.RM, hides_node=True
    ),
    FaultKind("pause-rm", "SIGSTOP to the ResourceManager", FaultScope.RM, hides_node=True),
    FaultKind("full-store", "the disk of the ResourceManager's state store is full", FaultScope.RM, hides_node=True),
    FaultKind("kill-master", "SIGKILL to an ApplicationMaster", FaultScope.MASTER, has_end=False),
    FaultKind("pause-master", "SIGSTOP to an ApplicationMaster", FaultScope.MASTER, isolates_master=True),
    FaultKind(
        "kill-container", "SIGKILL to a container other than an ApplicationMaster", FaultScope.CONTAINER, has_end=False
    ),
    FaultKind(
        "partition-node",
        "a node is cut off: its NodeManager and AMs from the ResourceManager, all other processes from the node",
        FaultScope.NODE,
        links=_LINKS_OF_NODE,
        hides_node=True,
        parameters=_PARTITION,
    ),
    FaultKind(
        "partition-nm-from-rm",
        "a NodeManager is cut off from the ResourceManager; ApplicationMasters reach both",
        FaultScope.NODE,
        links=("tracker",),
        hides_node=True,
        parameters=_PARTITION,
    ),
    FaultKind(
        "partition-masters-from-rm",
        "the ApplicationMasters on a node are cut off from the ResourceManager; its NodeManager is not",
        FaultScope.NODE,
        links=("scheduler",),
        isolates_master=True,
        parameters=_PARTITION,
    ),
    FaultKind(
        "partition-nm-from-masters",
        "no calls reach a NodeManager, which still reaches the ResourceManager itself",
        FaultScope.NODE,
        links=("node",),
        delays_starts=True,
        parameters=_PARTITION,
    ),
    FaultKind(
        "partition-clients",
        "clients are cut off from the ResourceManager",
        FaultScope.CLIENTS,
        links=("clients",),
        parameters=_PARTITION,
    ),
    FaultKind(
        "slow-node",
        "calls from and to a node are delayed, lose packets that are retransmitted, or are limited in rate",
        FaultScope.NODE,
        links=_LINKS_OF_NODE,
        hides_node=True,
        parameters=("delay", "loss", "kilobytes", "breaks"),
    ),
    FaultKind(
        "lose-store",
        "SIGKILL to the ResourceManager; restarted without its state store: all applications are forgotten",
        FaultScope.RM,
        hides_node=True,
        forgets=True,
        only_simulated=_NO_SUCH_DISK,
    ),
    FaultKind(
        "kill-rm-at-write",
        "SIGKILL to the ResourceManager before or after its `nth` write to the state store from then on; restarted",
        FaultScope.RM,
        hides_node=True,
        parameters=("write", "nth"),
        only_simulated="a process cannot be killed at an exact write",
    ),
    FaultKind(
        "slow-store",
        "each write to the state store takes `delay` seconds",
        FaultScope.RM,
        parameters=("delay",),
        only_simulated=_NO_SUCH_DISK,
    ),
    FaultKind(
        "lose-node-disk",
        "SIGKILL to a NodeManager and its containers; restarted with empty directories",
        FaultScope.NODE,
        hides_node=True,
        restarts_node=True,
        only_simulated=_NO_SUCH_DISK,
    ),
    FaultKind(
        "late-heartbeat",
        "a NodeManager is killed and restarted; then a heartbeat of the killed one reaches the ResourceManager",
        FaultScope.NODE,
        hides_node=True,
        restarts_node=True,
        only_simulated="a call of a process that was killed cannot be held back",
    ),
    FaultKind(
        "wrong-clock",
        "a machine's clock is wrong by `ahead` seconds from a restart of its NodeManager on",
        FaultScope.NODE,
        hides_node=True,
        restarts_node=True,
        parameters=("ahead",),
        only_simulated=_ONE_CLOCK,
    ),
    FaultKind(
        "drifting-clock",
        "a machine's clock gains the share `drift` of the time, or loses it",
        FaultScope.NODE,
        parameters=("drift",),
        only_simulated=_ONE_CLOCK,
    ),
    FaultKind(
        "old-node",
        "a NodeManager is killed and restarted in an older version; afterwards it is upgraded",
        FaultScope.NODE,
        hides_node=True,
        restarts_node=True,
        only_simulated="all processes are of this version",
    ),
    FaultKind(
        "fail-container",
        "a container other than an ApplicationMaster ends with `exit`",
        FaultScope.CONTAINER,
        parameters=("exit",),
        has_end=False,
        only_simulated="nobody can choose how a running process exits",
    ),
    FaultKind(
        "exceed-memory",
        "a container other than an ApplicationMaster is found above its memory limit",
        FaultScope.CONTAINER,
        has_end=False,
        only_simulated="the containers of plans use little memory",
    ),
    FaultKind(
        "exceed-logs",
        "a container other than an ApplicationMaster is found to have too many bytes of logs",
        FaultScope.CONTAINER,
        has_end=False,
        only_simulated="the containers of plans log little",
    ),
    FaultKind(
        "roll-keys",
        "new keys for all tokens; those before them stay valid",
        FaultScope.RM,
        has_end=False,
        only_simulated="no call makes a ResourceManager roll its keys",
    ),
    FaultKind(
        "refresh-queues",
        "refreshQueues with a good or a bad file",
        FaultScope.RM,
        parameters=("file",),
        has_end=False,
        only_simulated="the configuration of a plan's cluster is not a file",
    ),
    FaultKind(
        "move-application",
        "a running application is moved to another queue, with its containers",
        FaultScope.MASTER,
        has_end=False,
        only_simulated="the clusters of plans have one queue",
    ),
    FaultKind(
        "resize-node",
        "an administrator gives a node half of its memory; at the end all of it again",
        FaultScope.NODE,
        only_simulated="no administrator is part of a plan's cluster",
    ),
    FaultKind(
        "resize-container",
        "an ApplicationMaster asks for twice the memory of a running container; at the end for its first size again",
        FaultScope.CONTAINER,
        only_simulated=_NO_SUCH_REQUESTS,
    ),
    FaultKind(
        "avoid-node",
        "an ApplicationMaster puts the node that it runs on on its blacklist; at the end it takes it off again",
        FaultScope.MASTER,
        only_simulated=_NO_SUCH_REQUESTS,
    ),
)

KINDS: Mapping[str, FaultKind] = {kind.name: kind for kind in _KINDS}
