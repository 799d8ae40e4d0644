"""ApplicationClientProtocol: a client to the RM.

What it asks of nodes, queues and resource types is in wire.protocols.client_cluster.
"""

from __future__ import annotations

from typing import Any, Protocol

from protos import yarn_service_protos_pb2 as pb
from wire.caller import Caller
from wire.codec.applications import (
    read_application_report,
    read_attempt_report,
    read_submission,
    write_application_report,
    write_attempt_report,
    write_submission,
)
from wire.codec.client import (
    read_container_report,
    read_filter,
    read_kill,
    read_move,
    read_new_application,
    read_priority_change,
    read_timeouts,
    read_timeouts_change,
    write_applications,
    write_attempts,
    write_container_report,
    write_containers,
    write_filter,
    write_kill,
    write_killed,
    write_move,
    write_new_application,
    write_priority,
    write_priority_change,
    write_timeouts,
    write_timeouts_change,
)
from wire.codec.container_management import read_signal, write_signal
from wire.codec.fields import required
from wire.codec.ids import (
    read_application_id,
    read_attempt_id,
    read_container_id,
    write_application_id,
    write_attempt_id,
    write_container_id,
)
from wire.protocols import client_cluster
from wire.protocols.client_cluster import SERVICE
from wire.rpc import Form, Rpc, empty
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


class ApplicationClientHandler(Protocol):
    """What answers clients. `caller.user` is who asks (simple authentication: whoever it says)."""

    async def get_new_application(self, caller: Caller[None], request: None) -> GetNewApplicationResponse: ...
    async def submit_application(self, caller: Caller[None], request: ApplicationSubmissionContext) -> None: ...
    async def get_application_report(self, caller: Caller[None], request: ApplicationId) -> ApplicationReport: ...
    async def get_applications(
        self, caller: Caller[None], request: ApplicationFilter
    ) -> tuple[ApplicationReport, ...]: ...
    async def force_kill_application(
        self, caller: Caller[None], request: KillApplicationRequest
    ) -> KillApplicationResponse: ...
    async def fail_application_attempt(self, caller: Caller[None], request: ApplicationAttemptId) -> None: ...
    async def move_application_across_queues(self, caller: Caller[None], request: MoveApplicationRequest) -> None: ...
    async def update_application_priority(self, caller: Caller[None], request: UpdatePriorityRequest) -> int: ...
    async def update_application_timeouts(self, caller: Caller[None], request: UpdateTimeoutsRequest) -> str | None: ...
    async def signal_to_container(self, caller: Caller[None], request: SignalContainerRequest) -> None: ...
    async def get_cluster_metrics(self, caller: Caller[None], request: None) -> ClusterMetrics: ...
    async def get_cluster_nodes(
        self, caller: Caller[None], request: frozenset[NodeState]
    ) -> tuple[NodeReport, ...]: ...
    async def get_queue_info(self, caller: Caller[None], request: QueueInfoRequest) -> QueueInfo | None: ...
    async def get_queue_user_acls(self, caller: Caller[None], request: None) -> tuple[QueueUserAcls, ...]: ...
    async def get_resource_type_info(self, caller: Caller[None], request: None) -> tuple[ResourceTypeInfo, ...]: ...
    async def get_resource_profiles(self, caller: Caller[None], request: None) -> dict[str, Resource]: ...
    async def get_resource_profile(self, caller: Caller[None], request: str) -> Resource: ...
    async def get_node_to_labels(self, caller: Caller[None], request: None) -> NodesToLabels: ...
    async def get_labels_to_nodes(self, caller: Caller[None], request: tuple[str, ...]) -> LabelsToNodes: ...
    async def get_cluster_node_labels(self, caller: Caller[None], request: None) -> tuple[NodeLabel, ...]: ...
    async def get_application_attempt_report(
        self, caller: Caller[None], request: ApplicationAttemptId
    ) -> ApplicationAttemptReport: ...
    async def get_application_attempts(
        self, caller: Caller[None], request: ApplicationId
    ) -> tuple[ApplicationAttemptReport, ...]: ...
    async def get_container_report(self, caller: Caller[None], request: ContainerId) -> ContainerReport: ...
    async def get_containers(
        self, caller: Caller[None], request: ApplicationAttemptId
    ) -> tuple[ContainerReport, ...]: ...


def _app(proto: type[Any]) -> Form[ApplicationId]:
    """A request that is an application's id."""
    return Form(
        proto,
        lambda app_id, out: write_application_id(app_id, out.application_id),
        lambda message: read_application_id(required(message, "application_id")),
    )


def _attempt(proto: type[Any]) -> Form[ApplicationAttemptId]:
    """A request that is an attempt's id."""
    return Form(
        proto,
        lambda attempt_id, out: write_attempt_id(attempt_id, out.application_attempt_id),
        lambda message: read_attempt_id(required(message, "application_attempt_id")),
    )


GET_NEW_APPLICATION: Rpc[None, GetNewApplicationResponse] = Rpc(
    SERVICE,
    "getNewApplication",
    "get_new_application",
    empty(pb.GetNewApplicationRequestProto),
    Form(pb.GetNewApplicationResponseProto, write_new_application, read_new_application),
)
SUBMIT_APPLICATION: Rpc[ApplicationSubmissionContext, None] = Rpc(
    SERVICE,
    "submitApplication",
    "submit_application",
    Form(
        pb.SubmitApplicationRequestProto,
        lambda context, out: write_submission(context, out.application_submission_context),
        lambda proto: read_submission(required(proto, "application_submission_context")),
    ),
    empty(pb.SubmitApplicationResponseProto),
)
GET_APPLICATION_REPORT: Rpc[ApplicationId, ApplicationReport] = Rpc(
    SERVICE,
    "getApplicationReport",
    "get_application_report",
    _app(pb.GetApplicationReportRequestProto),
    Form(
        pb.GetApplicationReportResponseProto,
        lambda report, out: write_application_report(report, out.application_report),
        lambda proto: read_application_report(required(proto, "application_report")),
    ),
    reads=True,
)
GET_APPLICATIONS: Rpc[ApplicationFilter, tuple[ApplicationReport, ...]] = Rpc(
    SERVICE,
    "getApplications",
    "get_applications",
    Form(pb.GetApplicationsRequestProto, write_filter, read_filter),
    Form(
        pb.GetApplicationsResponseProto,
        write_applications,
        lambda proto: tuple(read_application_report(report) for report in proto.applications),
    ),
    reads=True,
    bulky=True,
)
FORCE_KILL_APPLICATION: Rpc[KillApplicationRequest, KillApplicationResponse] = Rpc(
    SERVICE,
    "forceKillApplication",
    "force_kill_application",
    Form(pb.KillApplicationRequestProto, write_kill, read_kill),
    Form(
        pb.KillApplicationResponseProto,
        write_killed,
        lambda proto: KillApplicationResponse(proto.is_kill_completed),
    ),
)
FAIL_APPLICATION_ATTEMPT: Rpc[ApplicationAttemptId, None] = Rpc(
    SERVICE,
    "failApplicationAttempt",
    "fail_application_attempt",
    _attempt(pb.FailApplicationAttemptRequestProto),
    empty(pb.FailApplicationAttemptResponseProto),
)
MOVE_APPLICATION: Rpc[MoveApplicationRequest, None] = Rpc(
    SERVICE,
    "moveApplicationAcrossQueues",
    "move_application_across_queues",
    Form(pb.MoveApplicationAcrossQueuesRequestProto, write_move, read_move),
    empty(pb.MoveApplicationAcrossQueuesResponseProto),
)
UPDATE_APPLICATION_PRIORITY: Rpc[UpdatePriorityRequest, int] = Rpc(
    SERVICE,
    "updateApplicationPriority",
    "update_application_priority",
    Form(pb.UpdateApplicationPriorityRequestProto, write_priority_change, read_priority_change),
    Form(
        pb.UpdateApplicationPriorityResponseProto,
        write_priority,
        lambda proto: int(required(proto, "applicationPriority").priority),
    ),
)
UPDATE_APPLICATION_TIMEOUTS: Rpc[UpdateTimeoutsRequest, str | None] = Rpc(
    SERVICE,
    "updateApplicationTimeouts",
    "update_application_timeouts",
    Form(pb.UpdateApplicationTimeoutsRequestProto, write_timeouts_change, read_timeouts_change),
    Form(pb.UpdateApplicationTimeoutsResponseProto, write_timeouts, read_timeouts),
)
SIGNAL_TO_CONTAINER: Rpc[SignalContainerRequest, None] = Rpc(
    SERVICE,
    "signalToContainer",
    "signal_to_container",
    Form(pb.SignalContainerRequestProto, write_signal, read_signal),
    empty(pb.SignalContainerResponseProto),
)
GET_APPLICATION_ATTEMPT_REPORT: Rpc[ApplicationAttemptId, ApplicationAttemptReport] = Rpc(
    SERVICE,
    "getApplicationAttemptReport",
    "get_application_attempt_report",
    _attempt(pb.GetApplicationAttemptReportRequestProto),
    Form(
        pb.GetApplicationAttemptReportResponseProto,
        lambda report, out: write_attempt_report(report, out.application_attempt_report),
        lambda proto: read_attempt_report(required(proto, "application_attempt_report")),
    ),
    reads=True,
)
GET_APPLICATION_ATTEMPTS: Rpc[ApplicationId, tuple[ApplicationAttemptReport, ...]] = Rpc(
    SERVICE,
    "getApplicationAttempts",
    "get_application_attempts",
    _app(pb.GetApplicationAttemptsRequestProto),
    Form(
        pb.GetApplicationAttemptsResponseProto,
        write_attempts,
        lambda proto: tuple(read_attempt_report(report) for report in proto.application_attempts),
    ),
    reads=True,
    bulky=True,
)
GET_CONTAINER_REPORT: Rpc[ContainerId, ContainerReport] = Rpc(
    SERVICE,
    "getContainerReport",
    "get_container_report",
    Form(
        pb.GetContainerReportRequestProto,
        lambda container_id, out: write_container_id(container_id, out.container_id),
        lambda proto: read_container_id(required(proto, "container_id")),
    ),
    Form(
        pb.GetContainerReportResponseProto,
        lambda report, out: write_container_report(report, out.container_report),
        lambda proto: read_container_report(required(proto, "container_report")),
    ),
    reads=True,
)
GET_CONTAINERS: Rpc[ApplicationAttemptId, tuple[ContainerReport, ...]] = Rpc(
    SERVICE,
    "getContainers",
    "get_containers",
    _attempt(pb.GetContainersRequestProto),
    Form(
        pb.GetContainersResponseProto,
        write_containers,
        lambda proto: tuple(read_container_report(report) for report in proto.containers),
    ),
    reads=True,
    bulky=True,
)

RPCS: tuple[Rpc[Any, Any], ...] = (
    GET_NEW_APPLICATION,
    SUBMIT_APPLICATION,
    GET_APPLICATION_REPORT,
    GET_APPLICATIONS,
    FORCE_KILL_APPLICATION,
    FAIL_APPLICATION_ATTEMPT,
    MOVE_APPLICATION,
    UPDATE_APPLICATION_PRIORITY,
    UPDATE_APPLICATION_TIMEOUTS,
    SIGNAL_TO_CONTAINER,
    GET_APPLICATION_ATTEMPT_REPORT,
    GET_APPLICATION_ATTEMPTS,
    GET_CONTAINER_REPORT,
    GET_CONTAINERS,
    *client_cluster.RPCS,
)
