"""ApplicationClientProtocol, as a client calls it."""

from __future__ import annotations

from wire.protocols import client, client_cluster
from wire.proxy import Proxy
from yarn.applications import (
    ApplicationAttemptReport,
    ApplicationFilter,
    ApplicationReport,
    ApplicationSubmissionContext,
    ContainerReport,
)
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.nodes import ClusterMetrics, NodeLabel, NodeReport
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
from yarn.protocols.container_management import SignalContainerRequest
from yarn.queues import QueueInfo
from yarn.resource import Resource
from yarn.states import NodeState


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
