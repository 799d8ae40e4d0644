"""Hosts on which an application's masters failed: its next master goes elsewhere (SimpleBlacklistManager).

Off unless configured. It is a wish with a bound: once the hosts are too many of those that the master could have, all
of them are allowed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.usage import NO_LABEL
from yarn.asks import ANY, ResourceRequest
from yarn.states import ContainerExitStatus

NOT_THE_NODES_FAULT = frozenset(
    {
        ContainerExitStatus.SUCCESS,
        ContainerExitStatus.PREEMPTED,
        ContainerExitStatus.ABORTED,
        ContainerExitStatus.DISKS_FAILED,
        ContainerExitStatus.KILLED_BY_RESOURCEMANAGER,
        ContainerExitStatus.KILLED_BY_APPMASTER,
        ContainerExitStatus.KILLED_AFTER_APP_COMPLETION,
        ContainerExitStatus.KILLED_EXCEEDED_VMEM,
        ContainerExitStatus.KILLED_EXCEEDED_PMEM,
    }
)
"""Ends of a master that say nothing about its node (Apps.shouldCountTowardsNodeBlacklisting). A node whose disks
failed gets nothing anyway, since it is unhealthy."""


class MasterBlacklist:
    """The hosts of one application, kept from attempt to attempt. `threshold`: the share of hosts that is too many."""

    __slots__ = ("_hosts", "_threshold")

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._hosts: dict[str, None] = {}

    def note_end(self, exit_status: int, node: SchedulerNode | None) -> None:
        """A master ended on `node`, None if the scheduler has it no more."""
        if node is not None and exit_status not in NOT_THE_NODES_FAULT:
            self._hosts[node.name] = None

    def updates(self, applicable_nodes: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(additions, removals) for the next master, which `applicable_nodes` could have."""
        hosts = tuple(self._hosts)
        return (hosts, ()) if len(hosts) < self._threshold * applicable_nodes else ((), hosts)


def applicable_nodes(requests: Sequence[ResourceRequest], nodes: Iterable[SchedulerNode]) -> int:
    """How many nodes a master could have that is asked for so (RMServerUtils.getApplicableNodeCountForAM)."""
    names = {request.resource_name for request in requests if request.relax_locality and request.resource_name != ANY}
    partition = requests[0].label or NO_LABEL
    known = list(nodes)
    wanted = [node for node in known if node.name in names or node.rack in names]
    labelled = [node for node in known if node.partition == partition]
    if wanted and labelled:
        return sum(node.partition == partition for node in wanted)
    return len(wanted or labelled or known)
