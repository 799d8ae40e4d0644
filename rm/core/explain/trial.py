"""Tries a change on a copy of the scheduler: would the request then get a container?

The copy shares nothing that changes with the scheduler. Its nodes send heartbeats one after another, in the order in
which they joined. The order to clean up a container is in the reply to its node's next heartbeat, and the container has
ended at the one after. Nothing else happens meanwhile: no application requests or releases anything. With heartbeats in
another order another request may be served first.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy

from rm.scheduler.capacity_scheduler import CapacityScheduler
from rm.scheduler.model.notices import CleanUpContainer, NodesRemapped, Notice, PreemptionDecided, ReleaseTemporary
from rm.scheduler.model.requests import SchedulerKey
from yarn.containers import ContainerStatus
from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.states import ContainerExitStatus, ContainerState

PASSES = 4
"""Heartbeats of each node. The first two clean up an application that ends, the others place containers."""


def size_of(scheduler: CapacityScheduler) -> int:
    """The number of objects that make a copy expensive: nodes, containers and applications; 0.1 ms each."""
    nodes = scheduler.nodes.values()
    return len(nodes) + len(scheduler.applications) + sum(len(node.containers) for node in nodes)


class Trial:
    """A copy of the scheduler. `idle`: nodes that send no heartbeats. `preempted`: containers killed by preemption."""

    __slots__ = ("_ended", "_idle", "_ordered", "_remapped", "_temporaries", "now_ms", "preempted", "scheduler")

    def __init__(self, scheduler: CapacityScheduler, idle: Iterable[NodeId] = ()) -> None:
        self._ordered: dict[NodeId, list[ContainerStatus]] = {}
        self._ended: dict[NodeId, list[ContainerStatus]] = {}
        self._remapped: list[NodesRemapped] = []
        self._temporaries: list[ReleaseTemporary] = []
        self._idle = set(idle)
        self.preempted: list[ContainerId] = []
        self.now_ms = scheduler.context.now_ms
        notify = scheduler.context.notify
        self.scheduler = deepcopy(scheduler, {id(notify): self._note})
        # Heartbeats place the containers of a trial also if walks over the nodes do so in the cluster.
        self.scheduler.walks.is_on = False

    def gets_container(self, application_id: ApplicationId, key: SchedulerKey, passes: int = PASSES) -> NodeId | None:
        """Run heartbeats until a node gives the request a container; returns the node, None if the limit is reached."""
        self._settle()
        wanted = self._count(application_id, key)
        for _ in range(passes):
            for node_id in list(self.scheduler.nodes):
                if node_id not in self._idle:
                    self._heartbeat(node_id)
                    if self._count(application_id, key) < wanted:
                        return node_id
        return None

    def wake(self, node_id: NodeId) -> None:
        """Let an idle node send heartbeats."""
        self._idle.discard(node_id)

    def _count(self, application_id: ApplicationId, key: SchedulerKey) -> int:
        """The number of containers still requested; of an application that has gone, very many, as it is not served."""
        attempt = self.scheduler.attempt_of(application_id)
        return 1 << 62 if attempt is None or attempt.is_stopped else attempt.requests.count(key)

    def _heartbeat(self, node_id: NodeId) -> None:
        completed, self._ended[node_id] = self._ended.get(node_id, ()), self._ordered.pop(node_id, [])
        self.scheduler.node_update(node_id, (), completed, self.now_ms)
        self._settle()

    def _settle(self) -> None:
        while self._remapped:
            self.scheduler.nodes_remapped(self._remapped.pop(0).changes, self.now_ms)
        while self._temporaries:
            self.scheduler.release_temporary(self._temporaries.pop(0).container_id, self.now_ms)

    def _note(self, notice: Notice) -> None:
        match notice:
            case CleanUpContainer(node_id, container_id):
                status = ContainerStatus(container_id, ContainerState.COMPLETE, ContainerExitStatus.ABORTED)
                self._ordered.setdefault(node_id, []).append(status)
            case PreemptionDecided(container_id, _, "killed" | "killable"):
                self.preempted.append(container_id)
            case NodesRemapped():
                self._remapped.append(notice)
            case ReleaseTemporary():
                self._temporaries.append(notice)
            case _:
                pass
