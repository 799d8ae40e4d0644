"""The core's part of ResourceTracker: NMs register, send heartbeats and unregister (ResourceTrackerService).

A heartbeat carries the id of the last reply that the NM received. If that id is one behind, the reply was lost: the
same reply is sent again and nothing else is done. With any other difference the NM must register again (RESYNC).
"""

from __future__ import annotations

from msgspec.structs import replace

from rm.core.context import RMContext
from rm.core.decommissioning import DecommissioningNodesWatcher
from rm.core.events import NodeHeartbeat, RegisterNode, UnregisterNode, UpdateNodeResource
from rm.core.lifecycle_events import (
    FinishedContainersPulledByAM,
    NodeRemoved,
    RMAppAttemptContainerFinished,
    RMNodeCleanupContainer,
    RMNodeDecommission,
    RMNodeRebooting,
    RMNodeReconnected,
    RMNodeResourceUpdate,
    RMNodeShutdown,
    RMNodeStarted,
    RMNodeStatusUpdate,
)
from rm.core.rm_node import RMNode
from rm.core.service_context import next_response_id
from rm.core.states import FINAL_APP_STATES, FINAL_ATTEMPT_STATES
from rm.scheduler.capacity.booking import LOST_NODE, aborted_status
from yarn.containers import ContainerStatus, NMContainerStatus
from yarn.errors import YarnException
from yarn.ids import NodeId
from yarn.java.versions import VERSION_CHARS_SHOWN, compare_versions
from yarn.protocols.inspection import RefusedStartReport
from yarn.protocols.tracker import (
    REFUSAL_CHARS_MAX,
    LogAggregationReport,
    NodeHeartbeatResponse,
    RefusedStart,
    RegisterNodeManagerRequest,
    RegisterNodeManagerResponse,
)
from yarn.states import ContainerState, NodeAction, NodeState


class ResourceTrackerService:
    """The calls of NMs."""

    def __init__(self, context: RMContext) -> None:
        self._context = context
        self.decommissioning = DecommissioningNodesWatcher(
            context.settings.decommissioning_poll_interval_ms, context.cluster_timestamp, context.nodes
        )

    def register(self, event: RegisterNode) -> RegisterNodeManagerResponse:
        """Register a node. The reply is NORMAL, or SHUTDOWN with the reason for a node that is too old, excluded or too
        small.

        Raises ResourceNotFoundException for a node that has a resource type that the cluster does not know.
        """
        context, request = self._context, event.request
        outdated = self._outdated(request.nm_version)
        if outdated:
            return self._refused(outdated)
        if not self._is_allowed(request.node_id):
            return self._refused(
                f"Disallowed NodeManager from  {request.node_id.host}, Sending SHUTDOWN signal to the NodeManager."
            )
        request = replace(request, resource=context.scheduler.resource_types.complete(request.resource))
        too_small = self._too_small(request)
        if too_small:
            return self._refused(too_small)
        node = RMNode(context, context.apps, request, event.rack)
        old = context.nodes.get(node.node_id)
        if old is None:
            self._add(node, request)
        elif not request.running_applications and node.http_port != old.http_port:
            self._replace(node, request)
        else:
            old.reset_response_id()
            context.send(
                RMNodeReconnected(
                    node.node_id, node.http_port, node.capability, request.containers, request.running_applications
                )
            )
        context.forget_node_tokens(node.node_id)
        context.node_liveness.register(node.node_id, context.now_ms)
        self._note_log_aggregation(node.node_id, request.log_aggregation_reports)
        if not context.settings.work_preserving:
            for report in request.containers:
                self._report_am_end(node.node_id, report)
        version = context.settings.release.version
        return RegisterNodeManagerResponse(NodeAction.NORMAL, context.cluster_timestamp, rm_version=version)

    def heartbeat(self, event: NodeHeartbeat) -> NodeHeartbeatResponse:
        """Process a heartbeat; returns the orders to the node.

        The reply is RESYNC for a node that the RM does not know or whose response id does not fit, and SHUTDOWN for a
        node that is excluded or has finished decommissioning.
        """
        context, request = self._context, event.request
        now_ms = context.now_ms
        node = context.nodes.get(request.node_id)
        if not self._is_allowed(request.node_id):
            return _shut_down(f"Disallowed NodeManager nodeId: {request.node_id} hostname: {request.node_id.host}")
        if node is None:
            return _resync(f"Node not found resyncing {request.node_id}")
        context.node_liveness.ping(request.node_id, now_ms)
        self.decommissioning.update(node, request.containers, now_ms)
        last = node.last_response
        if next_response_id(request.response_id) == last.response_id:
            return last
        if request.response_id != last.response_id:
            context.send(RMNodeRebooting(request.node_id))
            return _resync(f"Too far behind rm response id:{last.response_id} nm response id:{request.response_id}")
        if self.decommissioning.may_go(node, now_ms):
            context.send(RMNodeDecommission(request.node_id))
            return _shut_down(f"DECOMMISSIONING {request.node_id} is ready to be decommissioned")
        response = node.respond(context.settings.node_heartbeat_interval_ms)
        if request.log_aggregation_reports:
            self._note_log_aggregation(request.node_id, request.log_aggregation_reports)
        self._note_refused_starts(request.node_id, request.refused_starts)
        context.send(RMNodeStatusUpdate(request.node_id, request))
        return response

    def unregister(self, event: UnregisterNode) -> None:
        """Unregister a node whose NM stops. A no-op for a node that is not in use."""
        self._context.node_liveness.unregister(event.node_id)
        self._context.send(RMNodeShutdown(event.node_id))

    def resize(self, event: UpdateNodeResource) -> None:
        """Change the sizes of nodes (updateNodeResource).

        Raises YarnException if one is unknown; then none is changed.
        """
        types = self._context.scheduler.resource_types
        sizes = [
            (node_id, types.complete(option.resource), option.over_commit_timeout_ms)
            for node_id, option in event.resources
        ]
        nodes = self._context.nodes
        unknown = [str(node_id) for node_id, *_ in sizes if node_id not in nodes]
        if unknown:
            raise YarnException(
                f"Resource update get failed on all nodes due to change resource on an unrecognized node: {unknown[0]}"
            )
        for node_id, resource, timeout_ms in sizes:
            self._context.send(RMNodeResourceUpdate(node_id, resource, timeout_ms))

    def _report_am_end(self, node_id: NodeId, report: NMContainerStatus) -> None:
        """Report the end of an AM that its NM reported at registration (handleNMContainerStatus).

        This matters if the AM ended while the NM had lost the RM. The report of a node that does not run the AM is
        ignored, and so is one of an end that is known; Hadoop accepts the first, and reports the second to the next
        AM.
        """
        context, container_id = self._context, report.container_id
        attempt = context.attempt(container_id.attempt_id)
        am = attempt.am_container if attempt is not None else None
        if attempt is None or am is None or (am.id, am.node_id) != (container_id, node_id):
            return
        if report.state is not ContainerState.COMPLETE:
            return
        if attempt.state not in FINAL_ATTEMPT_STATES:
            context.send(RMAppAttemptContainerFinished(attempt.attempt_id, node_id, _status(report)))
        elif attempt.finished_containers.unacknowledged(container_id) is None:
            context.send(FinishedContainersPulledByAM(node_id, (container_id,)))

    def _note_log_aggregation(self, node_id: NodeId, reports: tuple[LogAggregationReport, ...]) -> None:
        for report in reports:
            app = self._context.apps.get(report.application_id)
            if app is not None:
                app.log_aggregation.report(node_id, report.status, is_over=app.state in FINAL_APP_STATES)

    def _note_refused_starts(self, node_id: NodeId, refused_starts: tuple[RefusedStart, ...]) -> None:
        """Keep the last refused start of each running application; an AM's own is in its launch's diagnostics."""
        for refused in refused_starts:
            container_id = refused.container_id
            app = self._context.apps.get(container_id.application_id)
            if app is None or app.state in FINAL_APP_STATES:
                continue
            if any(attempt.is_am_container(container_id) for attempt in app.attempts.values()):
                continue
            reason = refused.reason[:REFUSAL_CHARS_MAX]
            app.refused_start = RefusedStartReport(container_id, node_id, reason, self._context.now_ms)

    def _is_allowed(self, node_id: NodeId) -> bool:
        """True if the lists admit the node's host, or the node is decommissioning."""
        if self._context.hosts.allows(node_id.host):
            return True
        node = self._context.nodes.get(node_id)
        return node is not None and node.state is NodeState.DECOMMISSIONING

    def _add(self, node: RMNode, request: RegisterNodeManagerRequest) -> None:
        """Add a node that is not in use.

        Its containers are recovered only if it never registered with this RM: then they are from before the RM's
        restart.
        """
        context = self._context
        known = context.inactive_nodes.pop(node.node_id, None)
        context.nodes[node.node_id] = node
        containers = request.containers if known is None else ()
        context.send(RMNodeStarted(node.node_id, containers, request.running_applications, request.health))
        if context.settings.work_preserving and not request.health.healthy:
            for report in containers:
                self._end_container(node.node_id, report)

    def _end_container(self, node_id: NodeId, report: NMContainerStatus) -> None:
        """End a container of a node that registers unhealthy, as if the node had only now become so.

        The scheduler does not have the node, so it cannot recover the container. Hadoop does nothing: the container
        runs, uncounted, until its application ends, and its end is not reported to the AM.
        """
        context, container_id = self._context, report.container_id
        status = _status(report)
        if report.state is not ContainerState.COMPLETE:
            context.send(RMNodeCleanupContainer(node_id, container_id))
            status = aborted_status(container_id, LOST_NODE)
        if context.scheduler.container(container_id) is None:
            context.send(RMAppAttemptContainerFinished(container_id.attempt_id, node_id, status))

    def _replace(self, node: RMNode, request: RegisterNodeManagerRequest) -> None:
        """Replace a node by a new NM at the same port. The containers of the old NM are lost."""
        self._context.send(NodeRemoved(node.node_id))
        self._context.nodes[node.node_id] = node
        self._context.send(RMNodeStarted(node.node_id, (), (), request.health))

    def _refused(self, diagnostics: str) -> RegisterNodeManagerResponse:
        """SHUTDOWN with the reason. As in Hadoop the reply does not identify the ResourceManager."""
        self._context.warn(diagnostics)
        return RegisterNodeManagerResponse(NodeAction.SHUTDOWN, 0, diagnostics=diagnostics)

    def _outdated(self, version: str) -> str:
        """The reason why a node of this version may not register, or ""."""
        minimum = self._context.settings.node_minimum_version
        if minimum is None or (version and compare_versions(version, minimum) >= 0):
            return ""
        return (
            f"Disallowed NodeManager Version {version[:VERSION_CHARS_SHOWN]}, is less than the minimum "
            f"version {minimum} sending SHUTDOWN signal to NodeManager."
        )

    def _too_small(self, request: RegisterNodeManagerRequest) -> str:
        settings, capability = self._context.settings, request.resource
        if capability.memory_mb >= settings.minimum_memory_mb and capability.vcores >= settings.minimum_vcores:
            return ""
        return (
            f"NodeManager from  {request.node_id.host} doesn't satisfy minimum allocations, Sending SHUTDOWN signal to"
            f" the NodeManager. Node capabilities are {capability}; minimums are {settings.minimum_memory_mb}mb and "
            f"{settings.minimum_vcores} vcores"
        )


def _status(report: NMContainerStatus) -> ContainerStatus:
    return ContainerStatus(
        report.container_id, report.state, exit_status=report.exit_status, diagnostics=report.diagnostics
    )


def _shut_down(diagnostics: str) -> NodeHeartbeatResponse:
    return NodeHeartbeatResponse(response_id=0, action=NodeAction.SHUTDOWN, diagnostics=diagnostics)


def _resync(diagnostics: str) -> NodeHeartbeatResponse:
    return NodeHeartbeatResponse(response_id=0, action=NodeAction.RESYNC, diagnostics=diagnostics)
