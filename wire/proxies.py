"""Proxies: YARN's five protocols, and our own, as async methods over records.

A proxy raises what its server raised, under the same class; ServerUnavailable if it was not reached within its retry
policy, CallOutcomeUnknown if an answer did not come.
"""

from __future__ import annotations

from typing import Any, TypeVar

import grpc.aio

from wire.caller import caller_metadata
from wire.channel import MESSAGE_BYTES_MAX, Channels
from wire.errors import error_of
from wire.protocols import admin, client, client_cluster, container_management, inspection, master, pack, tracker
from wire.retry import NO_RETRY, RetryPolicy, retried
from wire.rpc import Rpc
from yarn.applications import (
    ApplicationAttemptReport,
    ApplicationFilter,
    ApplicationReport,
    ApplicationSubmissionContext,
    ContainerReport,
)
from yarn.containers import Token
from yarn.errors import InvalidArgumentException, RemoteError
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.nodes import ClusterMetrics, NodeLabel, NodeReport
from yarn.protocols.admin import RefreshNodesRequest, ReplaceLabelsRequest
from yarn.protocols.client import (
    GetNewApplicationResponse,
    KillApplicationRequest,
    KillApplicationResponse,
    LabelsToNodes,
    MoveApplicationRequest,
    NodesToLabels,
    QueueInfoRequest,
    QueueUserAcls,
    ResourceTypeInfo,
    UpdatePriorityRequest,
    UpdateTimeoutsRequest,
)
from yarn.protocols.container_management import (
    GetContainerStatusesResponse,
    SignalContainerRequest,
    StartContainerRequest,
    StartContainersResponse,
    StopContainersResponse,
    UpdateContainersResponse,
)
from yarn.protocols.inspection import Explanation
from yarn.protocols.master import (
    AllocateRequest,
    AllocateResponse,
    FinishApplicationMasterRequest,
    FinishApplicationMasterResponse,
    RegisterApplicationMasterRequest,
    RegisterApplicationMasterResponse,
)
from yarn.protocols.pack import PackHeartbeat, PackHeartbeatReply, RegisterOutcome
from yarn.protocols.tracker import (
    NodeHeartbeatRequest,
    NodeHeartbeatResponse,
    RegisterNodeManagerRequest,
    RegisterNodeManagerResponse,
)
from yarn.queues import QueueInfo
from yarn.resource import Resource
from yarn.states import NodeState

Request = TypeVar("Request")
Reply = TypeVar("Reply")
P = TypeVar("P", bound="Proxy")


class Proxy:
    """One caller's way to one server ("host:port"). Close it, or use it as a context manager.

    `channels` given: shared, and not closed here. `timeout_s` overrides each call's own deadline; connecting counts.
    """

    def __init__(
        self,
        target: str,
        *,
        user: str = "",
        token: Token | None = None,
        retry: RetryPolicy = NO_RETRY,
        timeout_s: float | None = None,
        channels: Channels | None = None,
    ) -> None:
        self.target = target
        self._user = user
        self._metadata = caller_metadata(user, token)
        self._retry = retry
        self._timeout_s = timeout_s
        self._channels = channels or Channels()
        self._owns_channels = channels is None

    def use_token(self, token: Token) -> None:
        """Show this token from the next call on (an AM's token is renewed while it runs)."""
        self._metadata = caller_metadata(self._user, token)

    async def close(self) -> None:
        if self._owns_channels:
            await self._channels.close()

    async def __aenter__(self: P) -> P:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def call(self, rpc: Rpc[Request, Reply], request: Request) -> Reply:
        """Send `request`; the reply's record."""
        data = _encoded(rpc, request)
        reply = await retried(self._retry, lambda: self._send(rpc, data), reads=rpc.reads)
        try:
            return rpc.reply.decode(reply)
        except InvalidArgumentException as error:
            raise RemoteError(f"{rpc.name} at {self.target}: the reply cannot be read: {error.message}") from None

    async def _send(self, rpc: Rpc[Any, Any], data: bytes) -> bytes:
        timeout_s = rpc.timeout_s if self._timeout_s is None else self._timeout_s
        channel = self._channels.get(self.target)
        try:
            return await channel.send(rpc.path, data, metadata=self._metadata, timeout_s=timeout_s)
        except grpc.aio.AioRpcError as failure:
            raise error_of(failure, target=self.target, method=rpc.name) from None


def _encoded(rpc: Rpc[Request, Any], request: Request) -> bytes:
    try:
        data = rpc.request.encode(request)
    except ValueError as error:
        raise InvalidArgumentException(f"{rpc.name}: {error}") from None
    if len(data) > MESSAGE_BYTES_MAX:
        raise InvalidArgumentException(
            f"{rpc.name}: the request has {len(data)} bytes, at most {MESSAGE_BYTES_MAX} can be sent "
            f"(send less at once)"
        )
    return data


class ApplicationClientProxy(Proxy):
    """A client's way to the RM (yarn.resourcemanager.address). It calls as `user`."""

    async def get_new_application(self) -> GetNewApplicationResponse:
        return await self.call(client.GET_NEW_APPLICATION, None)

    async def submit_application(self, context: ApplicationSubmissionContext) -> None:
        """Returns before the application is accepted: ask for its report. The same id again is no error."""
        await self.call(client.SUBMIT_APPLICATION, context)

    async def get_application_report(self, application_id: ApplicationId) -> ApplicationReport:
        return await self.call(client.GET_APPLICATION_REPORT, application_id)

    async def get_applications(self, wanted: ApplicationFilter | None = None) -> tuple[ApplicationReport, ...]:
        return await self.call(client.GET_APPLICATIONS, wanted or ApplicationFilter())

    async def force_kill_application(
        self, application_id: ApplicationId, diagnostics: str = ""
    ) -> KillApplicationResponse:
        """Call again until it says that the kill is completed."""
        return await self.call(client.FORCE_KILL_APPLICATION, KillApplicationRequest(application_id, diagnostics))

    async def fail_application_attempt(self, attempt_id: ApplicationAttemptId) -> None:
        await self.call(client.FAIL_APPLICATION_ATTEMPT, attempt_id)

    async def move_application_across_queues(self, application_id: ApplicationId, queue: str) -> None:
        await self.call(client.MOVE_APPLICATION, MoveApplicationRequest(application_id, queue))

    async def update_application_priority(self, application_id: ApplicationId, priority: int) -> int:
        """The priority that it has now: the cluster has a bound, and what is over keeps its own."""
        return await self.call(client.UPDATE_APPLICATION_PRIORITY, UpdatePriorityRequest(application_id, priority))

    async def update_application_timeouts(self, application_id: ApplicationId, lifetime_ends: str | None) -> str | None:
        """When its lifetime ends now (yarn.times): its queue has a bound."""
        request = UpdateTimeoutsRequest(application_id, lifetime_ends)
        return await self.call(client.UPDATE_APPLICATION_TIMEOUTS, request)

    async def signal_to_container(self, request: SignalContainerRequest) -> None:
        """The order leaves with the node's next heartbeat."""
        await self.call(client.SIGNAL_TO_CONTAINER, request)

    async def get_cluster_metrics(self) -> ClusterMetrics:
        return await self.call(client_cluster.GET_CLUSTER_METRICS, None)

    async def get_cluster_nodes(self, states: frozenset[NodeState] = frozenset()) -> tuple[NodeReport, ...]:
        """The nodes in these states; in any, if none are named."""
        return await self.call(client_cluster.GET_CLUSTER_NODES, states)

    async def get_queue_info(
        self, queue: str, *, applications: bool = False, children: bool = False, recursive: bool = False
    ) -> QueueInfo | None:
        """None if there is no such queue."""
        request = QueueInfoRequest(queue, applications, children, recursive)
        return await self.call(client_cluster.GET_QUEUE_INFO, request)

    async def get_queue_user_acls(self) -> tuple[QueueUserAcls, ...]:
        """What this user may do in each queue."""
        return await self.call(client_cluster.GET_QUEUE_USER_ACLS, None)

    async def get_resource_type_info(self) -> tuple[ResourceTypeInfo, ...]:
        return await self.call(client_cluster.GET_RESOURCE_TYPE_INFO, None)

    async def get_resource_profiles(self) -> dict[str, Resource]:
        return await self.call(client_cluster.GET_RESOURCE_PROFILES, None)

    async def get_resource_profile(self, name: str) -> Resource:
        return await self.call(client_cluster.GET_RESOURCE_PROFILE, name)

    async def get_node_to_labels(self) -> NodesToLabels:
        """The nodes and whole hosts (port 0) that have labels."""
        return await self.call(client_cluster.GET_NODE_TO_LABELS, None)

    async def get_labels_to_nodes(self, names: tuple[str, ...] = ()) -> LabelsToNodes:
        """Who has these labels; who has any, if none are named."""
        return await self.call(client_cluster.GET_LABELS_TO_NODES, names)

    async def get_cluster_node_labels(self) -> tuple[NodeLabel, ...]:
        return await self.call(client_cluster.GET_CLUSTER_NODE_LABELS, None)

    async def get_application_attempt_report(self, attempt_id: ApplicationAttemptId) -> ApplicationAttemptReport:
        return await self.call(client.GET_APPLICATION_ATTEMPT_REPORT, attempt_id)

    async def get_application_attempts(self, application_id: ApplicationId) -> tuple[ApplicationAttemptReport, ...]:
        return await self.call(client.GET_APPLICATION_ATTEMPTS, application_id)

    async def get_container_report(self, container_id: ContainerId) -> ContainerReport:
        return await self.call(client.GET_CONTAINER_REPORT, container_id)

    async def get_containers(self, attempt_id: ApplicationAttemptId) -> tuple[ContainerReport, ...]:
        return await self.call(client.GET_CONTAINERS, attempt_id)


class ApplicationMasterProxy(Proxy):
    """A master's way to the RM (yarn.resourcemanager.scheduler.address); it shows its AMRM token."""

    async def register_application_master(
        self, request: RegisterApplicationMasterRequest
    ) -> RegisterApplicationMasterResponse:
        return await self.call(master.REGISTER_APPLICATION_MASTER, request)

    async def allocate(self, request: AllocateRequest) -> AllocateResponse:
        """After CallOutcomeUnknown send the same request again: the RM knows it by its response id."""
        return await self.call(master.ALLOCATE, request)

    async def finish_application_master(
        self, request: FinishApplicationMasterRequest
    ) -> FinishApplicationMasterResponse:
        """Call again until it says that the master is unregistered."""
        return await self.call(master.FINISH_APPLICATION_MASTER, request)


class ContainerManagementProxy(Proxy):
    """A master's way to an NM; it shows its NM token for that node."""

    async def start_containers(self, requests: tuple[StartContainerRequest, ...]) -> StartContainersResponse:
        return await self.call(container_management.START_CONTAINERS, requests)

    async def stop_containers(self, container_ids: tuple[ContainerId, ...]) -> StopContainersResponse:
        return await self.call(container_management.STOP_CONTAINERS, container_ids)

    async def get_container_statuses(self, container_ids: tuple[ContainerId, ...]) -> GetContainerStatusesResponse:
        return await self.call(container_management.GET_CONTAINER_STATUSES, container_ids)

    async def update_container(self, tokens: tuple[Token, ...]) -> UpdateContainersResponse:
        """After CallOutcomeUnknown ask for the statuses: a promise that was taken is refused the second time."""
        return await self.call(container_management.UPDATE_CONTAINER, tokens)

    async def signal_to_container(self, request: SignalContainerRequest) -> None:
        await self.call(container_management.SIGNAL_TO_CONTAINER, request)


class ResourceTrackerProxy(Proxy):
    """A node's way to the RM (yarn.resourcemanager.resource-tracker.address); it shows its node token."""

    async def register_node_manager(self, request: RegisterNodeManagerRequest) -> RegisterNodeManagerResponse:
        return await self.call(tracker.REGISTER_NODE_MANAGER, request)

    async def node_heartbeat(self, request: NodeHeartbeatRequest) -> NodeHeartbeatResponse:
        """After CallOutcomeUnknown beat again under the same response id: nothing is lost or done twice."""
        return await self.call(tracker.NODE_HEARTBEAT, request)

    async def unregister_node_manager(self, node_id: NodeId) -> None:
        await self.call(tracker.UNREGISTER_NODE_MANAGER, node_id)


class PackTrackerProxy(Proxy):
    """The way of nodes that share a process to the RM, where single nodes call; it shows their pack's token."""

    async def register_nodes(self, requests: tuple[RegisterNodeManagerRequest, ...]) -> tuple[RegisterOutcome, ...]:
        return await self.call(pack.REGISTER_NODES, requests)

    async def pack_heartbeat(self, request: PackHeartbeat) -> PackHeartbeatReply:
        """After CallOutcomeUnknown each node beats again under the same response id, in full."""
        return await self.call(pack.PACK_HEARTBEAT, request)

    async def unregister_nodes(self, numbers: tuple[int, ...]) -> None:
        await self.call(pack.UNREGISTER_NODES, numbers)


class AdminProxy(Proxy):
    """An operator's way to the RM (yarn.resourcemanager.admin.address)."""

    async def refresh_queues(self) -> None:
        """Have the RM read its queues anew. Raises ConfigurationException with all faults; then nothing changed."""
        await self.call(admin.REFRESH_QUEUES, None)

    async def refresh_nodes(self, request: RefreshNodesRequest) -> None:
        """Have the RM read its host lists anew; nodes may then still be on their way out."""
        await self.call(admin.REFRESH_NODES, request)

    async def check_for_decommissioning_nodes(self) -> tuple[NodeId, ...]:
        """The nodes that are on their way out."""
        return await self.call(admin.CHECK_FOR_DECOMMISSIONING_NODES, None)

    async def refresh_super_user_groups_configuration(self) -> None:
        await self.call(admin.REFRESH_SUPER_USER_GROUPS, None)

    async def refresh_user_to_groups_mappings(self) -> None:
        await self.call(admin.REFRESH_USER_TO_GROUPS, None)

    async def refresh_admin_acls(self) -> None:
        await self.call(admin.REFRESH_ADMIN_ACLS, None)

    async def refresh_service_acls(self) -> None:
        await self.call(admin.REFRESH_SERVICE_ACLS, None)

    async def refresh_cluster_max_priority(self) -> None:
        await self.call(admin.REFRESH_CLUSTER_MAX_PRIORITY, None)

    async def get_groups_for_user(self, user: str) -> tuple[str, ...]:
        return await self.call(admin.GET_GROUPS_FOR_USER, user)

    async def add_to_cluster_node_labels(self, labels: tuple[NodeLabel, ...]) -> None:
        await self.call(admin.ADD_TO_CLUSTER_NODE_LABELS, labels)

    async def remove_from_cluster_node_labels(self, names: tuple[str, ...]) -> None:
        await self.call(admin.REMOVE_FROM_CLUSTER_NODE_LABELS, names)

    async def replace_labels_on_nodes(self, request: ReplaceLabelsRequest) -> None:
        await self.call(admin.REPLACE_LABELS_ON_NODES, request)

    async def update_node_resource(self, resources: tuple[tuple[NodeId, Resource], ...]) -> None:
        await self.call(admin.UPDATE_NODE_RESOURCE, resources)


class InspectionProxy(Proxy):
    """A way into the RM's scheduler (yarn.resourcemanager.address, where clients call)."""

    async def explain(self, application_id: ApplicationId) -> Explanation:
        """Why the application has not got what it asks for."""
        return await self.call(inspection.EXPLAIN, application_id)
