"""RMNode: what the ResourceManager knows of a NodeManager (Hadoop's RMNodeImpl).

It keeps what an NM reported, and the orders for the reply to its next heartbeat. What happens to it is in the table of
rm_node_lifecycle.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rm.core.service_context import RMServiceContext, next_response_id
from yarn.containers import Container, ContainerStatus
from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.machine import Machine
from yarn.nodes import NodeHealth, ResourceUtilization
from yarn.protocols.tracker import NodeHeartbeatResponse, RegisterNodeManagerRequest
from yarn.resource import Resource
from yarn.states import NodeAction, NodeState, SignalContainerCommand

NO_TIMEOUT = -1
"""A decommissioning node waits for its containers without end."""


class RMNode:
    """One node. Dicts without values are sets that keep their order.

    `launched`: containers reported RUNNING and not over. `completed`: those whose end was reported, until the NM may
    forget them. `newly_*`: what the scheduler has not taken yet. `to_*`: orders for the next heartbeat's reply; they
    are moved into it, not copied, so `last_response` is the only place where a sent order can be found.
    `original_capability`: its size before it was decommissioning; None unless it is. `known_applications`: the ids of
    the applications that the ResourceManager knows.
    """

    def __init__(
        self,
        context: RMServiceContext,
        known_applications: Collection[ApplicationId],
        request: RegisterNodeManagerRequest,
        rack: str,
    ) -> None:
        self.context = context
        self.known_applications = known_applications
        self.node_id: NodeId = request.node_id
        self.rack = rack
        self.http_port = request.http_port
        self.capability: Resource = request.resource
        self.physical: Resource | None = request.physical_resource
        self.capability_changed = False
        self.original_capability: Resource | None = None
        self.decommissioning_timeout_s = NO_TIMEOUT
        self.nm_version = request.nm_version
        self.health = NodeHealth(healthy=True, report="Healthy", reported_ms=context.now_ms)
        self.containers_utilization: ResourceUtilization | None = None
        self.node_utilization: ResourceUtilization | None = None
        self.running_apps: dict[ApplicationId, None] = {}
        self.launched: dict[ContainerId, None] = {}
        self.completed: set[ContainerId] = set()
        self.newly_launched: list[ContainerId] = []
        self.newly_completed: list[ContainerStatus] = []
        self.newly_increased: dict[ContainerId, Container] = {}
        self.to_clean_up: set[ContainerId] = set()
        self.to_forget: set[ContainerId] = set()
        self.apps_to_clean_up: dict[ApplicationId, None] = {}
        self.to_update: dict[ContainerId, Container] = {}
        self.to_signal: list[tuple[ContainerId, SignalContainerCommand]] = []
        self.last_response = NodeHeartbeatResponse(response_id=0, action=NodeAction.NORMAL)
        self.machine = Machine(NodeState.NEW)

    @property
    def state(self) -> NodeState:
        return self.machine.state

    @property
    def http_address(self) -> str:
        return f"{self.node_id.host}:{self.http_port}"

    def __str__(self) -> str:
        return str(self.node_id)

    def describe(self) -> str:
        """What the log of a state change says besides."""
        return f"capability={self.capability} health={self.health.report or 'no report'}"

    def respond(self, interval_ms: int) -> NodeHeartbeatResponse:
        """The next heartbeat reply, with all orders moved into it; kept in case the NM does not get it."""
        response_id = next_response_id(self.last_response.response_id)
        if not self._has_orders():
            self.last_response = NodeHeartbeatResponse(response_id, NodeAction.NORMAL, interval_ms)
            return self.last_response
        self.completed -= self.to_forget
        response = NodeHeartbeatResponse(
            response_id=response_id,
            action=NodeAction.NORMAL,
            next_heartbeat_ms=interval_ms,
            containers_to_clean_up=tuple(sorted(self.to_clean_up)) if self.to_clean_up else (),
            applications_to_clean_up=tuple(self.apps_to_clean_up),
            containers_to_forget=tuple(sorted(self.to_forget)) if self.to_forget else (),
            containers_to_signal=tuple(self.to_signal),
            containers_to_update=tuple(self.to_update.values()),
            resource=self.capability if self.capability_changed else None,
        )
        self.to_clean_up.clear()
        self.apps_to_clean_up.clear()
        self.to_forget.clear()
        self.to_signal.clear()
        self.to_update.clear()
        self.capability_changed = False
        self.last_response = response
        return response

    def _has_orders(self) -> bool:
        return bool(
            self.to_clean_up
            or self.apps_to_clean_up
            or self.to_forget
            or self.to_signal
            or self.to_update
            or self.capability_changed
        )

    def reset_response_id(self) -> None:
        """The NM's process is a new one, which counts from 0."""
        self.last_response = NodeHeartbeatResponse(response_id=0, action=NodeAction.NORMAL)

    def pull_updates(self) -> tuple[Sequence[ContainerId], Sequence[Container], Sequence[ContainerStatus]]:
        """What the scheduler has not taken yet: containers that run, that have grown, and that ended."""
        if not (self.newly_launched or self.newly_increased or self.newly_completed):
            return (), (), ()
        updates = self.newly_launched, list(self.newly_increased.values()), self.newly_completed
        self.newly_launched, self.newly_completed = [], []
        self.newly_increased.clear()
        return updates

    def forget_updates(self) -> None:
        """Drop what the scheduler has not taken yet."""
        self.newly_launched.clear()
        self.newly_completed.clear()
        self.newly_increased.clear()
