"""The lifecycle of a node, from the registration of its NM until it is lost or leaves (Hadoop's RMNodeImpl).

The actions compare an NM's report with its last one and pass on what is new. A node that was lost, rebooted, shut down
or decommissioned stays so: an NM that registers again becomes a new node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rm.core.lifecycle_events import (
    AppRunningOnNode,
    FinishedContainersPulledByAM,
    NodeAdded,
    NodeChanged,
    NodeRemoved,
    NodeResourceUpdate,
    NodeUpdate,
    RMNodeCleanupApp,
    RMNodeCleanupContainer,
    RMNodeDecommission,
    RMNodeEvent,
    RMNodeExpire,
    RMNodeGracefulDecommission,
    RMNodeRebooting,
    RMNodeRecommission,
    RMNodeReconnected,
    RMNodeResourceUpdate,
    RMNodeShutdown,
    RMNodeSignalContainer,
    RMNodeStarted,
    RMNodeStatusUpdate,
)
from rm.core.rm_node import RMNode
from rm.scheduler.model.notices import UpdateContainer
from yarn.containers import ContainerStatus, NMContainerStatus
from yarn.ids import ApplicationId, ContainerId
from yarn.machine import Lifecycle, Row
from yarn.protocols.tracker import NodeHeartbeatRequest
from yarn.states import ContainerExitStatus, ContainerState, ExecutionType, NodeState, NodeUpdateType

S = NodeState
INACTIVE = frozenset({S.LOST, S.REBOOTED, S.SHUTDOWN, S.DECOMMISSIONED})
"""States of a node that is out of use for good."""


def _start(node: RMNode, started: RMNodeStarted) -> NodeState:
    """Add the node with the containers that its NM reports at registration."""
    for container in started.containers:
        if container.state is ContainerState.RUNNING:
            node.launched[container.container_id] = None
    for application_id in started.running_applications:
        _note_running_app(node, application_id)
    node.health = started.health
    if not started.health.healthy:
        _report_unusable(node)
        return NodeState.UNHEALTHY
    _report_usable(node, started.containers)
    return NodeState.RUNNING


def _reconnect(node: RMNode, again: RMNodeReconnected) -> None:
    """Handle an NM that registers again. If it reports no applications, its earlier containers are lost."""
    context = node.context
    if not again.running_applications:
        node.forget_updates()
        context.send(NodeRemoved(node.node_id))
        node.capability = again.capability
        if node.state is NodeState.RUNNING:
            context.send(NodeAdded(node.node_id))
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
        context.send(NodeResourceUpdate(node.node_id))


def _report_usable(node: RMNode, containers: tuple[NMContainerStatus, ...] = ()) -> None:
    node.context.send(NodeAdded(node.node_id, containers))
    node.context.send(NodeChanged(node.node_id, NodeUpdateType.USABLE))


def _report_unusable(node: RMNode) -> None:
    """Report to AMs that the node is unusable; the scheduler does not have an unhealthy node, nor a new one."""
    node.forget_updates()
    if node.state is not NodeState.UNHEALTHY:
        node.context.send(NodeRemoved(node.node_id))
    node.context.send(NodeChanged(node.node_id, NodeUpdateType.UNUSABLE))


def _note_running_app(node: RMNode, application_id: ApplicationId) -> None:
    """Add the node to the application that runs there; an application unknown to the RM is to be cleaned up."""
    if application_id not in node.known_applications:
        node.apps_to_clean_up[application_id] = None
        node.running_apps.pop(application_id, None)
        return
    node.running_apps[application_id] = None
    node.context.send(AppRunningOnNode(application_id, node.node_id))


def _update(node: RMNode, event: RMNodeStatusUpdate) -> NodeState:
    """Process the heartbeat of a RUNNING node, after which the scheduler places containers on the node."""
    _note_health(node, event.heartbeat)
    if not event.heartbeat.health.healthy:
        _report_unusable(node)
        return NodeState.UNHEALTHY
    _take_report(node, event.heartbeat)
    node.context.send(NodeUpdate(node.node_id))
    return NodeState.RUNNING


def _take_report(node: RMNode, heartbeat: NodeHeartbeatRequest) -> None:
    _take_statuses(node, heartbeat.containers)
    for container in heartbeat.increased_containers:
        if not _is_to_end(node, container.id):
            node.newly_increased[container.id] = container


def _update_unhealthy(node: RMNode, event: RMNodeStatusUpdate) -> NodeState:
    """Process the heartbeat of an UNHEALTHY node: only the health is considered."""
    _note_health(node, event.heartbeat)
    if not event.heartbeat.health.healthy:
        return NodeState.UNHEALTHY
    _report_usable(node)
    return NodeState.RUNNING


def _update_decommissioning(node: RMNode, event: RMNodeStatusUpdate) -> NodeState:
    """Process the heartbeat of a DECOMMISSIONING node.

    The node leaves once it is empty and no application needs it. If it is unhealthy it stays, and its report is
    ignored.
    """
    _note_health(node, event.heartbeat)
    if not node.running_apps and not node.context.scheduler.has_master_on(node.node_id):
        return _decommission(node, event)
    if event.heartbeat.health.healthy:
        _take_report(node, event.heartbeat)
        node.context.send(NodeUpdate(node.node_id))
    return NodeState.DECOMMISSIONING


def _note_health(node: RMNode, heartbeat: NodeHeartbeatRequest) -> None:
    node.health = heartbeat.health
    node.containers_utilization = heartbeat.containers_utilization
    node.node_utilization = heartbeat.node_utilization


def _take_statuses(node: RMNode, statuses: tuple[ContainerStatus, ...]) -> None:
    """Compare reported container statuses with the known ones: which containers started, ended or are missing."""
    if take_news(node, statuses) < len(node.launched):
        _find_lost(node, statuses)


def take_news(node: RMNode, statuses: tuple[ContainerStatus, ...]) -> int:
    """Note which containers started or ended; returns how many run. A status that is known changes nothing, unless the
    node's application is to be cleaned up.
    """
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
                node.context.stop_expiry(container_id)
        else:
            node.launched.pop(container_id, None)
            node.context.stop_expiry(container_id)
            _note_completed(node, status)
    return running


def _is_to_end(node: RMNode, container_id: ContainerId) -> bool:
    return container_id in node.to_clean_up or container_id.application_id in node.apps_to_clean_up


def _note_completed(node: RMNode, status: ContainerStatus) -> None:
    if status.container_id not in node.completed:
        node.completed.add(status.container_id)
        node.newly_completed.append(status)


def _find_lost(node: RMNode, statuses: tuple[ContainerStatus, ...]) -> None:
    """End the containers that ran and are no longer reported; as in Hadoop also opportunistic ones."""
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


def _clean_up_app(node: RMNode, event: RMNodeCleanupApp) -> None:
    node.apps_to_clean_up[event.application_id] = None
    node.running_apps.pop(event.application_id, None)


def _clean_up_container(node: RMNode, event: RMNodeCleanupContainer) -> None:
    node.to_clean_up.add(event.container_id)


def _forget_containers(node: RMNode, event: FinishedContainersPulledByAM) -> None:
    node.to_forget.update(event.container_ids)


def _update_container(node: RMNode, event: UpdateContainer) -> None:
    node.to_update[event.container.id] = event.container


def _signal(node: RMNode, event: RMNodeSignalContainer) -> None:
    node.to_signal.append((event.container_id, event.command))


def _resize(node: RMNode, event: RMNodeResourceUpdate) -> None:
    _resize_unusable(node, event)
    node.context.send(NodeResourceUpdate(node.node_id, event.over_commit_timeout_ms))


def _resize_unusable(node: RMNode, event: RMNodeResourceUpdate) -> None:
    """Resize a node that is unusable; the scheduler is informed when it becomes usable again."""
    node.capability = event.capability
    node.capability_changed = True


def _decommission_gracefully(node: RMNode, event: RMNodeGracefulDecommission) -> None:
    """Let the node run empty, and report that to its applications. Its size is kept in case it is recommissioned."""
    node.decommissioning_timeout_s = event.timeout_s
    if node.state is NodeState.DECOMMISSIONING:
        return
    node.context.send(NodeChanged(node.node_id, NodeUpdateType.DECOMMISSIONING))
    if node.original_capability is None:
        node.original_capability = node.capability


def _recommission(node: RMNode, _: RMNodeRecommission) -> None:
    """Restore the size that the node had before it was decommissioning. What does not fit any more is killed."""
    if node.original_capability is not None:
        node.capability = node.original_capability
        node.original_capability = None
        node.capability_changed = True
    node.context.send(NodeResourceUpdate(node.node_id, over_commit_timeout_ms=0))
    node.context.send(NodeChanged(node.node_id, NodeUpdateType.USABLE))


def _reconnect_decommissioning(node: RMNode, event: RMNodeReconnected) -> NodeState:
    """Handle a decommissioning NM that registers again. Without applications it leaves at once."""
    if not event.running_applications:
        return _decommission(node, event)
    _reconnect(node, event)
    return NodeState.DECOMMISSIONING


def _deactivate(target: NodeState) -> Callable[[RMNode, RMNodeEvent], NodeState]:
    """An action that takes a node out of use for good; its state becomes `target`."""

    def leave(node: RMNode, _: RMNodeEvent) -> NodeState:
        _report_unusable(node)
        node.context.node_liveness.unregister(node.node_id)
        return target

    return leave


_decommission = _deactivate(NodeState.DECOMMISSIONED)


_IN_USE = (S.RUNNING, S.UNHEALTHY)

_ROWS: list[Row[RMNode, NodeState, Any]] = [
    Row(S.NEW, RMNodeStarted, _IN_USE, _start, "an NM registered"),
    Row(S.NEW, RMNodeResourceUpdate, S.NEW, _resize_unusable, "resized by an administrator"),
    Row(S.NEW, FinishedContainersPulledByAM, S.NEW, _forget_containers, "their end is known to their AM"),
    Row(
        S.RUNNING,
        RMNodeStatusUpdate,
        _IN_USE,
        _update,
        "heartbeat: report what is new; the node may have become unhealthy",
    ),
    Row(S.UNHEALTHY, RMNodeStatusUpdate, _IN_USE, _update_unhealthy, "heartbeat: the node may be healthy again"),
    Row(
        S.DECOMMISSIONING,
        RMNodeStatusUpdate,
        (S.DECOMMISSIONING, S.DECOMMISSIONED),
        _update_decommissioning,
        "heartbeat: the node leaves if nothing runs there any more",
    ),
    Row(
        S.DECOMMISSIONING,
        RMNodeReconnected,
        (S.DECOMMISSIONING, S.DECOMMISSIONED),
        _reconnect_decommissioning,
        "its NM registered again",
    ),
    Row(S.DECOMMISSIONING, RMNodeRecommission, S.RUNNING, _recommission, "not excluded any more"),
    Row(
        S.DECOMMISSIONING, RMNodeResourceUpdate, S.DECOMMISSIONING, _resize, "its size becomes what is allocated on it"
    ),
    Row(S.RUNNING, RMNodeResourceUpdate, S.RUNNING, _resize, "resized by an administrator"),
    Row(S.UNHEALTHY, RMNodeResourceUpdate, S.UNHEALTHY, _resize_unusable, "resized by an administrator"),
]
for _state in (*_IN_USE, S.DECOMMISSIONING):
    _ROWS.extend(
        [
            Row(
                _state,
                RMNodeDecommission,
                S.DECOMMISSIONED,
                _deactivate(S.DECOMMISSIONED),
                "excluded, or nothing is left to wait for",
            ),
            Row(
                _state,
                RMNodeGracefulDecommission,
                S.DECOMMISSIONING,
                _decommission_gracefully,
                "excluded; it leaves when it is empty",
            ),
            Row(_state, RMNodeExpire, S.LOST, _deactivate(S.LOST), "no heartbeat for too long"),
            Row(_state, RMNodeRebooting, S.REBOOTED, _deactivate(S.REBOOTED), "its response id does not fit"),
            Row(_state, RMNodeShutdown, S.SHUTDOWN, _deactivate(S.SHUTDOWN), "its NM unregistered"),
            Row(_state, RMNodeCleanupApp, _state, _clean_up_app, "the application is over"),
            Row(_state, RMNodeCleanupContainer, _state, _clean_up_container, "the container is over for the RM"),
            Row(_state, FinishedContainersPulledByAM, _state, _forget_containers, "their end is known to their AM"),
        ]
    )
for _state in _IN_USE:
    _ROWS.extend(
        [
            Row(_state, RMNodeReconnected, _state, _reconnect, "its NM registered again"),
            Row(_state, UpdateContainer, _state, _update_container, "the container has another size, or another type"),
            Row(_state, RMNodeSignalContainer, _state, _signal, "ordered by a client"),
        ]
    )
for _event in (UpdateContainer, RMNodeSignalContainer):
    _ROWS.append(Row(S.DECOMMISSIONING, _event, S.DECOMMISSIONING, None, "dropped: Hadoop has no row for it"))
for _state in (S.LOST, S.REBOOTED, S.SHUTDOWN, S.DECOMMISSIONED):
    _ROWS.append(Row(_state, RMNodeResourceUpdate, _state, _resize_unusable, "resized after it was taken out of use"))
for _state in (S.LOST, S.SHUTDOWN, S.DECOMMISSIONED):
    _ROWS.append(Row(_state, FinishedContainersPulledByAM, _state, None, "its NM is gone and has forgotten them"))

RM_NODE_LIFECYCLE: Lifecycle[RMNode, NodeState] = Lifecycle("RMNode", S.NEW, _ROWS, RMNode.describe)
