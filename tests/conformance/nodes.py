"""The NodeManagers of a recording: they report what the steps order, as those of the recordings' driver do.

What an AM has acquired on a node runs there from the node's next heartbeat on, a master once it was launched. What
ended, by itself or on the ResourceManager's order, is reported once.
"""

from __future__ import annotations

from collections.abc import Iterable

from rm.scheduler.model.rm_container import RMContainer
from yarn.containers import ContainerStatus, NMContainerStatus
from yarn.ids import ContainerId, NodeId, container_hash
from yarn.java.hash_order import hash_order
from yarn.nodes import NodeHealth
from yarn.protocols.tracker import NodeHeartbeatRequest, NodeHeartbeatResponse, RegisterNodeManagerRequest
from yarn.resource import Resource
from yarn.states import ContainerExitStatus, ContainerState, NodeAction

PORT = 1
HTTP_PORT = 2


class RecordedNode:
    """A NodeManager. `lost`: the ResourceManager considers it lost, and it is silent until it registers again.

    It reports in the order of Hadoop's MockNM, a HashMap's: what ends give back are floats, whose sum has an order.
    """

    def __init__(self, host: str, rack: str, resource: Resource) -> None:
        self.node_id = NodeId(host, PORT)
        self.rack = rack
        self.resource = resource
        self.lost = False
        self._response_id = 0
        self._containers: dict[ContainerId, ContainerStatus] = {}
        self._peak = 0
        self._known: dict[ContainerId, RMContainer] = {}

    def registration(self, *, healthy: bool = True) -> RegisterNodeManagerRequest:
        return RegisterNodeManagerRequest(self.node_id, HTTP_PORT, self.resource, health=NodeHealth(healthy=healthy))

    def registration_again(self) -> RegisterNodeManagerRequest:
        """The registration of a NodeManager that kept what it has."""
        reported = sorted(self._containers.values(), key=lambda status: status.container_id)
        running = [status for status in reported if status.state is not ContainerState.COMPLETE]
        self._peak = max(self._peak, len(running))
        self._response_id = 0
        return RegisterNodeManagerRequest(
            self.node_id,
            HTTP_PORT,
            self.resource,
            containers=tuple(_report(self._known[status.container_id], status) for status in reported),
            running_applications=tuple(dict.fromkeys(status.container_id.application_id for status in reported)),
        )

    def end_all(self) -> None:
        """End the running containers, as a NodeManager does that may not keep them when it registers again."""
        for status in list(self._containers.values()):
            if status.state is not ContainerState.COMPLETE:
                self.complete(status.container_id, ContainerExitStatus.ABORTED)

    def know(self, containers: Iterable[RMContainer]) -> None:
        """Note what the tokens of these containers say: their sizes, priorities, labels."""
        self._known.update((container.id, container) for container in containers)

    def start(self, container_ids: Iterable[ContainerId]) -> None:
        """Containers whose AM had time to start them are running now."""
        for container_id in container_ids:
            self._containers.setdefault(container_id, ContainerStatus(container_id, ContainerState.RUNNING))

    def complete(self, container_id: ContainerId, exit_status: int) -> None:
        """A container ended; the next heartbeat reports it."""
        self._containers[container_id] = ContainerStatus(container_id, ContainerState.COMPLETE, exit_status=exit_status)

    def heartbeat(self, *, healthy: bool) -> NodeHeartbeatRequest:
        self._peak = max(self._peak, len(self._containers))
        reported = hash_order(self._containers, container_hash, peak=self._peak)
        return NodeHeartbeatRequest(
            self.node_id,
            self._response_id,
            containers=tuple(self._containers[container_id] for container_id in reported),
            health=NodeHealth(healthy=healthy),
        )

    def obey(self, response: NodeHeartbeatResponse) -> None:
        """Forget the containers that were reported as ended, and end those to be cleaned up.

        A node that has to register again does neither.
        """
        if response.action is NodeAction.RESYNC:
            return
        self._response_id = response.response_id
        self.resource = response.resource or self.resource
        applications = set(response.applications_to_clean_up)
        ordered = set(response.containers_to_clean_up)
        for container_id, status in list(self._containers.items()):
            if status.state is ContainerState.COMPLETE:
                del self._containers[container_id]
            elif container_id in ordered or container_id.application_id in applications:
                self.complete(container_id, ContainerExitStatus.KILLED_BY_APPMASTER)

    def lose(self) -> None:
        """The ResourceManager considers the node lost; its containers are gone."""
        self.lost = True
        self._containers.clear()


def _report(container: RMContainer, status: ContainerStatus) -> NMContainerStatus:
    token = container.container
    return NMContainerStatus(
        status.container_id,
        status.state,
        container.resource,
        container.priority,
        status.exit_status,
        creation_time_ms=container.started_ms,
        version=token.version,
        node_label_expression=container.partition,
        execution_type=token.execution_type,
        allocation_request_id=token.allocation_request_id,
    )
