"""RMNode: what the ResourceManager knows of a NodeManager (Hadoop's RMNodeImpl).

A node holds what its NM reported, and the orders for the reply to the NM's next heartbeat. Its transitions are in
rm_node_lifecycle.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rm.core.service_context import RESPONSE_ID_MAX, RMServiceContext, next_response_id
from yarn.containers import Container, ContainerStatus
from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.java.versions import VERSION_CHARS_SHOWN
from yarn.machine import Machine
from yarn.nodes import NodeHealth, ResourceUtilization
from yarn.protocols.tracker import NodeHeartbeatResponse, RegisterNodeManagerRequest
from yarn.resource import Resource
from yarn.states import NodeAction, NodeState, SignalContainerCommand

NO_TIMEOUT = -1
"""The timeout of a decommissioning node that waits for its containers without limit."""


class RMNode:
    """A node. Dicts without values are sets that keep their order.

    `launched`: containers reported RUNNING that have not ended. `completed`: containers reported as ended, until the NM
    may forget them. `newly_*`: reports that the scheduler has not processed yet. `to_*`: orders for the reply to the
    next heartbeat. They are moved into the reply, not copied, so orders that were sent are found only in
    `last_response`. `original_capability`: the size before decommissioning, None for any other node.
    `known_applications`: the ids of all applications of the ResourceManager.
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
        self.nm_version = request.nm_version[:VERSION_CHARS_SHOWN]
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
        """Details for the log of a state change."""
        return f"capability={self.capability} health={self.health.report or 'no report'}"

    def respond(self, interval_ms: int) -> NodeHeartbeatResponse:
        """Create the reply to a heartbeat.

        All orders are moved into it; it is kept because it may have to be sent again.
        """
        response_id = next_response_id(self.last_response.response_id)
        if not self.has_orders:
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

    @property
    def has_orders(self) -> bool:
        """True if the reply to the next heartbeat contains an order."""
        return bool(
            self.to_clean_up
            or self.apps_to_clean_up
            or self.to_forget
            or self.to_signal
            or self.to_update
            or self.capability_changed
        )

    @property
    def needs_only_news(self) -> bool:
        """True if a heartbeat may leave out what the last one reported, and its reply only ends or forgets something.

        A container that runs is reported again if its application is to be cleaned up: that may be ordered again.
        """
        return not (self.to_signal or self.to_update or self.capability_changed) and not (
            self.apps_to_clean_up and any(one.application_id in self.apps_to_clean_up for one in self.launched)
        )

    def skip_heartbeats(self, count: int, interval_ms: int) -> None:
        """Advance the response id as `count` heartbeats that change nothing would (see rm.core.quiet_nodes)."""
        response_id = (self.last_response.response_id + count) & RESPONSE_ID_MAX
        self.last_response = NodeHeartbeatResponse(response_id, NodeAction.NORMAL, interval_ms)

    def reset_response_id(self) -> None:
        """Start again at response id 0, for a new NM process."""
        self.last_response = NodeHeartbeatResponse(response_id=0, action=NodeAction.NORMAL)

    def pull_updates(self) -> tuple[Sequence[ContainerId], Sequence[Container], Sequence[ContainerStatus]]:
        """Take the news for the scheduler: containers that were launched, that have grown, and that have ended."""
        if not (self.newly_launched or self.newly_increased or self.newly_completed):
            return (), (), ()
        updates = self.newly_launched, list(self.newly_increased.values()), self.newly_completed
        self.newly_launched, self.newly_completed = [], []
        self.newly_increased.clear()
        return updates

    def forget_updates(self) -> None:
        """Drop the news for the scheduler."""
        self.newly_launched.clear()
        self.newly_completed.clear()
        self.newly_increased.clear()
