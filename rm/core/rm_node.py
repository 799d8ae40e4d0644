"""RMNode: a NodeManager as the ResourceManager sees it (Hadoop's RMNodeImpl).

It turns what an NM reports into what is new since its last report, and keeps what the NM is to be told with its next
heartbeat. A node that was lost, rebooted or shut down never comes back: an NM that registers again is a new node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rm.core.lifecycle_events import NodeReconnected, NodeStarted, RMAppEventType, RMNodeEventType
from rm.core.rm_node_leaving import (
    deactivate,
    decommission_gracefully,
    forget_updates,
    recommission,
    reconnect_leaving,
    tell_unusable,
    update_leaving,
)
from yarn.containers import Container, ContainerStatus, NMContainerStatus
from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.lifecycle import Lifecycle, Machine, Row
from yarn.nodes import NodeHealth, ResourceUtilization
from yarn.protocols.tracker import NodeHeartbeatRequest, NodeHeartbeatResponse, RegisterNodeManagerRequest
from yarn.resource import Resource
from yarn.states import (
    ContainerExitStatus,
    ContainerState,
    ExecutionType,
    NodeAction,
    NodeState,
    NodeUpdateType,
    SignalContainerCommand,
)

if TYPE_CHECKING:
    from rm.core.context import RMContext

RESPONSE_ID_MAX = 0x7FFFFFFF
NO_TIMEOUT = -1
"""A node on its way out waits for its containers for ever."""


def next_response_id(response_id: int) -> int:
    """The id after `response_id`; after the largest Java int comes 0 (AMRMClientUtils.getNextResponseId)."""
    return (response_id + 1) & RESPONSE_ID_MAX


class RMNode:
    """One node. Dicts without values are sets that keep their order.

    `launched`: containers reported RUNNING and not over. `completed`: those whose end was reported, until the NM is
    told to forget them. `newly_*`: what the scheduler has not been told yet. `to_*`: orders for the next heartbeat's
    reply; they are moved into it, not copied, so `last_response` is the only place where a sent order can be found.
    `original_capability`: its size before it was to empty itself; None unless it is.
    """

    def __init__(self, context: RMContext, request: RegisterNodeManagerRequest, rack: str) -> None:
        self.context = context
        self.node_id: NodeId = request.node_id
        self.rack = rack
        self.http_port = request.http_port
        self.capability: Resource = request.resource
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
        self.machine: Machine[NodeState, RMNodeEventType] = Machine(LIFECYCLE)

    @property
    def state(self) -> NodeState:
        return self.machine.state

    @property
    def http_address(self) -> str:
        return f"{self.node_id.host}:{self.http_port}"

    def __str__(self) -> str:
        return str(self.node_id)

    def story(self) -> str:
        """What a change of state says besides itself."""
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
        """The NM's process began anew, and so does its counting."""
        self.last_response = NodeHeartbeatResponse(response_id=0, action=NodeAction.NORMAL)

    def pull_updates(self) -> tuple[Sequence[ContainerId], Sequence[Container], Sequence[ContainerStatus]]:
        """What the scheduler has not been told: containers that run, that have grown, and that ended."""
        if not (self.newly_launched or self.newly_increased or self.newly_completed):
            return (), (), ()
        updates = self.newly_launched, list(self.newly_increased.values()), self.newly_completed
        self.newly_launched, self.newly_completed = [], []
        self.newly_increased.clear()
        return updates


# Coming and going


def _start(node: RMNode, started: NodeStarted) -> NodeState:
    """A node that was not known, or not any more; only of one never seen are its containers believed."""
    known = node.context.inactive_nodes.pop(node.node_id, None)
    containers = started.containers if known is None else ()
    for container in containers:
        if container.state is ContainerState.RUNNING:
            node.launched[container.container_id] = None
    for application_id in started.running_applications:
        _note_running_app(node, application_id)
    node.health = started.health
    if not started.health.healthy:
        tell_unusable(node)
        return NodeState.UNHEALTHY
    _tell_usable(node, containers)
    return NodeState.RUNNING


def _reconnect(node: RMNode, again: NodeReconnected) -> None:
    """The NM registers though the RM thought it connected: without applications it lost all it ran."""
    context = node.context
    if not again.running_applications:
        forget_updates(node)
        context.send(context.remove_node, node.node_id)
        node.capability = again.capability
        if node.state is NodeState.RUNNING:
            context.send(context.add_node, node)
        return
    changed = node.capability != again.capability
    node.http_port = again.http_port
    node.capability = again.capability
    statuses = [
        ContainerStatus(c.container_id, c.state, exit_status=c.exit_status, diagnostics=c.diagnostics)
        for c in again.containers
    ]
    _take_statuses(node, tuple(statuses))
    for application_id in again.running_applications:
        _note_running_app(node, application_id)
    if changed and node.state is NodeState.RUNNING:
        context.send(context.update_node_resource, node)


def _tell_usable(node: RMNode, containers: tuple[NMContainerStatus, ...] = ()) -> None:
    node.context.send(node.context.add_node, node, containers)
    node.context.send(node.context.tell_apps_of_node, node, NodeUpdateType.USABLE)


def _note_running_app(node: RMNode, application_id: ApplicationId) -> None:
    """The application knows its nodes by this; one that the RM does not know is to be cleaned up."""
    if application_id not in node.context.apps:
        node.apps_to_clean_up[application_id] = None
        node.running_apps.pop(application_id, None)
        return
    node.running_apps[application_id] = None
    node.context.send_app(application_id, RMAppEventType.APP_RUNNING_ON_NODE, node.node_id)


# Heartbeats


def _update(node: RMNode, heartbeat: NodeHeartbeatRequest) -> NodeState:
    """A running node's report: what is new goes to the scheduler, which then serves the node."""
    _note_health(node, heartbeat)
    if not heartbeat.health.healthy:
        tell_unusable(node)
        return NodeState.UNHEALTHY
    _take_report(node, heartbeat)
    node.context.send(node.context.update_node, node)
    return NodeState.RUNNING


def _take_report(node: RMNode, heartbeat: NodeHeartbeatRequest) -> None:
    _take_statuses(node, heartbeat.containers)
    for container in heartbeat.increased_containers:
        if not _is_to_end(node, container.id):
            node.newly_increased[container.id] = container


def _update_unhealthy(node: RMNode, heartbeat: NodeHeartbeatRequest) -> NodeState:
    """An unhealthy node's report: only its health counts."""
    _note_health(node, heartbeat)
    if not heartbeat.health.healthy:
        return NodeState.UNHEALTHY
    _tell_usable(node)
    return NodeState.RUNNING


def _note_health(node: RMNode, heartbeat: NodeHeartbeatRequest) -> None:
    node.health = heartbeat.health
    node.containers_utilization = heartbeat.containers_utilization
    node.node_utilization = heartbeat.node_utilization


def _take_statuses(node: RMNode, statuses: tuple[ContainerStatus, ...]) -> None:
    """Find out which of the reported containers began to run, which ended, and which are missing."""
    running = 0
    for status in statuses:
        container_id = status.container_id
        application_id = container_id.application_id
        if _is_to_end(node, container_id):
            continue
        if application_id not in node.running_apps:
            _note_running_app(node, application_id)
        if status.state is ContainerState.RUNNING:
            running += 1
            if container_id not in node.launched:
                node.launched[container_id] = None
                node.newly_launched.append(container_id)
                node.context.heard_of_container(container_id)
        else:
            node.launched.pop(container_id, None)
            node.context.heard_of_container(container_id)
            _note_completed(node, status)
    if running < len(node.launched):
        _find_lost(node, statuses)


def _is_to_end(node: RMNode, container_id: ContainerId) -> bool:
    return container_id in node.to_clean_up or container_id.application_id in node.apps_to_clean_up


def _note_completed(node: RMNode, status: ContainerStatus) -> None:
    if status.container_id not in node.completed:
        node.completed.add(status.container_id)
        node.newly_completed.append(status)


def _find_lost(node: RMNode, statuses: tuple[ContainerStatus, ...]) -> None:
    """Containers that ran and are not reported any more are over; with them, as in Hadoop, opportunistic ones."""
    reported = {
        status.container_id
        for status in statuses
        if status.state is ContainerState.RUNNING and status.execution_type is ExecutionType.GUARANTEED
    }
    for container_id in [launched for launched in node.launched if launched not in reported]:
        del node.launched[container_id]
        diagnostics = f"Container {container_id} was running but not reported from {node}"
        node.context.warn(diagnostics)
        _note_completed(
            node,
            ContainerStatus(
                container_id,
                ContainerState.COMPLETE,
                exit_status=ContainerExitStatus.ABORTED,
                diagnostics=diagnostics,
            ),
        )


# Orders for the next heartbeat


def _clean_up_app(node: RMNode, application_id: ApplicationId) -> None:
    node.apps_to_clean_up[application_id] = None
    node.running_apps.pop(application_id, None)


def _clean_up_container(node: RMNode, container_id: ContainerId) -> None:
    node.to_clean_up.add(container_id)


def _forget_containers(node: RMNode, container_ids: tuple[ContainerId, ...]) -> None:
    node.to_forget.update(container_ids)


def _update_container(node: RMNode, container: Container) -> None:
    node.to_update[container.id] = container


def _signal(node: RMNode, signal: tuple[ContainerId, SignalContainerCommand]) -> None:
    node.to_signal.append(signal)


def _resize(node: RMNode, capability: Resource) -> None:
    _resize_unusable(node, capability)
    node.context.send(node.context.update_node_resource, node)


def _resize_unusable(node: RMNode, capability: Resource) -> None:
    """The scheduler learns it when the node comes back."""
    node.capability = capability
    node.capability_changed = True


_S = NodeState
_E = RMNodeEventType
_IN_USE = (_S.RUNNING, _S.UNHEALTHY)

_ROWS: list[Row[NodeState, RMNodeEventType]] = [
    Row(_S.NEW, _E.STARTED, _IN_USE, _start, "an NM registered"),
    Row(_S.NEW, _E.RESOURCE_UPDATE, _S.NEW, _resize_unusable, "resized by an administrator"),
    Row(_S.NEW, _E.FINISHED_CONTAINERS_PULLED_BY_AM, _S.NEW, _forget_containers, "its AM knows of their end"),
    Row(_S.RUNNING, _E.STATUS_UPDATE, _IN_USE, _update, "a heartbeat: what is new, and whether it is healthy"),
    Row(_S.UNHEALTHY, _E.STATUS_UPDATE, _IN_USE, _update_unhealthy, "a heartbeat: healthy again?"),
    Row(
        _S.DECOMMISSIONING,
        _E.STATUS_UPDATE,
        (_S.DECOMMISSIONING, _S.DECOMMISSIONED),
        update_leaving(_note_health, _take_report),
        "a heartbeat: does anything still run there?",
    ),
    Row(
        _S.DECOMMISSIONING,
        _E.RECONNECTED,
        (_S.DECOMMISSIONING, _S.DECOMMISSIONED),
        reconnect_leaving(_reconnect),
        "its NM began anew",
    ),
    Row(_S.DECOMMISSIONING, _E.RECOMMISSION, _S.RUNNING, recommission, "not excluded any more"),
    Row(_S.DECOMMISSIONING, _E.RESOURCE_UPDATE, _S.DECOMMISSIONING, _resize, "no room for anything new"),
    Row(_S.RUNNING, _E.RESOURCE_UPDATE, _S.RUNNING, _resize, "resized by an administrator"),
    Row(_S.UNHEALTHY, _E.RESOURCE_UPDATE, _S.UNHEALTHY, _resize_unusable, "resized by an administrator"),
]
for _state in (*_IN_USE, _S.DECOMMISSIONING):
    _ROWS += [
        Row(_state, _E.DECOMMISSION, _S.DECOMMISSIONED, deactivate(_S.DECOMMISSIONED), "excluded, or done waiting"),
        Row(
            _state, _E.GRACEFUL_DECOMMISSION, _S.DECOMMISSIONING, decommission_gracefully, "excluded, when it is empty"
        ),
        Row(_state, _E.EXPIRE, _S.LOST, deactivate(_S.LOST), "not heard of for too long"),
        Row(_state, _E.REBOOTING, _S.REBOOTED, deactivate(_S.REBOOTED), "its response id makes no sense"),
        Row(_state, _E.SHUTDOWN, _S.SHUTDOWN, deactivate(_S.SHUTDOWN), "its NM said goodbye"),
        Row(_state, _E.CLEANUP_APP, _state, _clean_up_app, "the application is over"),
        Row(_state, _E.CLEANUP_CONTAINER, _state, _clean_up_container, "the container is over for the RM"),
        Row(_state, _E.FINISHED_CONTAINERS_PULLED_BY_AM, _state, _forget_containers, "its AM knows of their end"),
    ]
for _state in _IN_USE:
    _ROWS += [
        Row(_state, _E.RECONNECTED, _state, _reconnect, "its NM began anew"),
        Row(_state, _E.UPDATE_CONTAINER, _state, _update_container, "the container has another size, or another type"),
        Row(_state, _E.SIGNAL_CONTAINER, _state, _signal, "asked for by a client"),
    ]
for _event in (_E.UPDATE_CONTAINER, _E.SIGNAL_CONTAINER):
    _ROWS.append(Row(_S.DECOMMISSIONING, _event, _S.DECOMMISSIONING, None, "dropped: Hadoop has no row for it"))
for _state in (_S.LOST, _S.REBOOTED, _S.SHUTDOWN, _S.DECOMMISSIONED):
    _ROWS.append(Row(_state, _E.RESOURCE_UPDATE, _state, _resize_unusable, "resized though it is gone"))
for _state in (_S.LOST, _S.SHUTDOWN, _S.DECOMMISSIONED):
    _ROWS.append(Row(_state, _E.FINISHED_CONTAINERS_PULLED_BY_AM, _state, None, "its NM forgot them with its end"))

LIFECYCLE: Lifecycle[NodeState, RMNodeEventType] = Lifecycle("RMNode", initial=NodeState.NEW, rows=_ROWS)
