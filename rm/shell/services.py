"""The RM's services for clients, AMs and NMs: they check the caller, turn a call into an event, and sign the core's
reply.

Calls that only read are not events: they read the core through rm.core.reports. The service for administrators is in
rm.shell.admin_service.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from rm.core import node_reports
from rm.core.app_manager import tagged_user
from rm.core.events import (
    Allocate,
    Asker,
    Event,
    FailApplicationAttempt,
    FinishApplicationMaster,
    GetNewApplication,
    KillApplication,
    MoveApplication,
    NodeHeartbeat,
    RegisterApplicationMaster,
    RegisterNode,
    SignalContainer,
    SubmitApplication,
    UnregisterNode,
    UpdateApplicationPriority,
    UpdateApplicationTimeouts,
)
from rm.core.reports import applications as reports
from rm.core.reports.queues import queue_info, queue_user_acls
from rm.core.resource_manager import ResourceManagerCore
from rm.core.states import RMAppAttemptState
from rm.shell.groups import groups_of
from rm.shell.response_signer import ResponseSigner
from wire.bulky_replies import in_parts
from wire.caller import Caller
from wire.core_shell import Asks
from wire.files.topology import Topology
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.protocols.tracker import ResourceTracker
from wire.rpc import handles
from yarn.applications import (
    ApplicationAttemptReport,
    ApplicationFilter,
    ApplicationReport,
    ApplicationSubmissionContext,
    ContainerReport,
)
from yarn.containers import AMRMTokenIdentifier
from yarn.errors import AccessControlException, YARNFeatureNotEnabledException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
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
    UpdatePriorityRequest,
    UpdateTimeoutsRequest,
)
from yarn.protocols.container_management import SignalContainerRequest
from yarn.protocols.master import (
    AllocateRequest,
    AllocateResponse,
    FinishApplicationMasterRequest,
    FinishApplicationMasterResponse,
    RegisterApplicationMasterRequest,
    RegisterApplicationMasterResponse,
    ResourceTypeInfo,
)
from yarn.protocols.tracker import (
    NodeHeartbeatRequest,
    NodeHeartbeatResponse,
    RegisterNodeManagerRequest,
    RegisterNodeManagerResponse,
)
from yarn.queues import QueueInfo
from yarn.resource import Resource
from yarn.states import NodeState
from yarn.times import format_iso8601, parse_iso8601

_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@$-]{0,127}")
"""A user name becomes a directory name on the nodes: no slash, no leading dot."""
NO_PROFILES = (
    "Resource profile is not enabled, please enable resource profile feature before using its functions. "
    "(by setting yarn.resourcemanager.resource-profiles.enabled to true)"
)


class ClientService:
    """ApplicationClientProtocol (Hadoop's ClientRMService)."""

    def __init__(self, core: ResourceManagerCore, shell: Asks[Event], signer: ResponseSigner) -> None:
        self._core = core
        self._shell = shell
        self._signer = signer

    @handles(ApplicationClientProtocol.get_new_application)
    async def get_new_application(self, caller: Caller[None], request: None) -> GetNewApplicationResponse:
        reply: GetNewApplicationResponse = await self._shell.ask(GetNewApplication)
        return reply

    @handles(ApplicationClientProtocol.submit_application)
    async def submit_application(self, caller: Caller[None], request: ApplicationSubmissionContext) -> None:
        user = _user_of(caller)
        named = tagged_user(self._core.context.settings, user, request.tags)
        tag_groups = () if named is None else groups_of(named)
        await self._shell.ask(lambda call: SubmitApplication(call, user, request, groups_of(user), tag_groups))

    @handles(ApplicationClientProtocol.force_kill_application)
    async def force_kill_application(
        self, caller: Caller[None], request: KillApplicationRequest
    ) -> KillApplicationResponse:
        asker, diagnostics = _asker(caller), _kill_diagnostics(caller, request)
        reply: KillApplicationResponse = await self._shell.ask(
            lambda call: KillApplication(call, request.application_id, diagnostics, *asker)
        )
        return reply

    @handles(ApplicationClientProtocol.fail_application_attempt)
    async def fail_application_attempt(self, caller: Caller[None], request: ApplicationAttemptId) -> None:
        asker = _asker(caller)
        await self._shell.ask(lambda call: FailApplicationAttempt(call, request, *asker))

    @handles(ApplicationClientProtocol.move_application_across_queues)
    async def move_application_across_queues(self, caller: Caller[None], request: MoveApplicationRequest) -> None:
        user = _user_of(caller)
        await self._shell.ask(
            lambda call: MoveApplication(call, user, request.application_id, request.queue, groups_of(user))
        )

    @handles(ApplicationClientProtocol.update_application_priority)
    async def update_application_priority(self, caller: Caller[None], request: UpdatePriorityRequest) -> int:
        user = _user_of(caller)
        priority: int = await self._shell.ask(
            lambda call: UpdateApplicationPriority(
                call, request.application_id, request.priority, user, groups_of(user)
            )
        )
        return priority

    @handles(ApplicationClientProtocol.update_application_timeouts)
    async def update_application_timeouts(self, caller: Caller[None], request: UpdateTimeoutsRequest) -> str | None:
        ends_ms = None if request.lifetime_ends is None else parse_iso8601(request.lifetime_ends)
        asker = _asker(caller)
        granted_ms: int = await self._shell.ask(
            lambda call: UpdateApplicationTimeouts(call, request.application_id, ends_ms, *asker)
        )
        return format_iso8601(granted_ms)

    @handles(ApplicationClientProtocol.signal_to_container)
    async def signal_to_container(self, caller: Caller[None], request: SignalContainerRequest) -> None:
        asker = _asker(caller)
        await self._shell.ask(lambda call: SignalContainer(call, request.container_id, request.command, *asker))

    @handles(ApplicationClientProtocol.get_application_report)
    async def get_application_report(self, caller: Caller[None], request: ApplicationId) -> ApplicationReport:
        return self._with_token(caller, reports.application_report(self._core.context, request, reader_of(caller)))

    @handles(ApplicationClientProtocol.get_applications)
    async def get_applications(self, caller: Caller[None], request: ApplicationFilter) -> tuple[ApplicationReport, ...]:
        found = reports.applications(self._core.context, request, reader_of(caller))
        return await in_parts(self._with_token(caller, report) for report in found)

    def _with_token(self, caller: Caller[None], report: ApplicationReport) -> ApplicationReport:
        """Add the token of an unmanaged AM to its report, for its own user, until it has registered (RMAppImpl)."""
        if not report.unmanaged or caller.user != report.user:
            return report
        attempt = self._core.context.apps[report.application_id].current_attempt
        if attempt is None or attempt.state is not RMAppAttemptState.LAUNCHED:
            return report
        return replace(report, am_rm_token=self._signer.master_token(attempt.attempt_id))

    @handles(ApplicationClientProtocol.get_cluster_metrics)
    async def get_cluster_metrics(self, caller: Caller[None], request: None) -> ClusterMetrics:
        return node_reports.cluster_metrics(self._core.context)

    @handles(ApplicationClientProtocol.get_cluster_nodes)
    async def get_cluster_nodes(self, caller: Caller[None], request: frozenset[NodeState]) -> tuple[NodeReport, ...]:
        return await in_parts(node_reports.node_reports(self._core.context, request))

    @handles(ApplicationClientProtocol.get_queue_info)
    async def get_queue_info(self, caller: Caller[None], request: QueueInfoRequest) -> QueueInfo | None:
        return queue_info(self._core.context, request, reader_of(caller))

    @handles(ApplicationClientProtocol.get_queue_user_acls)
    async def get_queue_user_acls(self, caller: Caller[None], request: None) -> tuple[QueueUserAcls, ...]:
        return queue_user_acls(self._core.context, *_asker(caller))

    @handles(ApplicationClientProtocol.get_resource_type_info)
    async def get_resource_type_info(self, caller: Caller[None], request: None) -> tuple[ResourceTypeInfo, ...]:
        return self._core.context.resource_types()

    @handles(ApplicationClientProtocol.get_resource_profiles)
    async def get_resource_profiles(self, caller: Caller[None], request: None) -> dict[str, Resource]:
        raise YARNFeatureNotEnabledException(NO_PROFILES)

    @handles(ApplicationClientProtocol.get_resource_profile)
    async def get_resource_profile(self, caller: Caller[None], request: str) -> Resource:
        raise YARNFeatureNotEnabledException(NO_PROFILES)

    @handles(ApplicationClientProtocol.get_node_to_labels)
    async def get_node_to_labels(self, caller: Caller[None], request: None) -> NodesToLabels:
        labels = self._core.scheduler.labels.nodes_to_labels()
        return tuple((node_id, (label.name,)) for node_id, label in labels.items())

    @handles(ApplicationClientProtocol.get_labels_to_nodes)
    async def get_labels_to_nodes(self, caller: Caller[None], request: tuple[str, ...]) -> LabelsToNodes:
        labels = self._core.scheduler.labels.labels_to_nodes(request)
        return tuple((label.name, nodes) for label, nodes in labels.items())

    @handles(ApplicationClientProtocol.get_cluster_node_labels)
    async def get_cluster_node_labels(self, caller: Caller[None], request: None) -> tuple[NodeLabel, ...]:
        return self._core.scheduler.labels.cluster_labels()

    @handles(ApplicationClientProtocol.get_cluster_node_attributes)
    async def get_cluster_node_attributes(self, caller: Caller[None], request: None) -> None:
        """None: nodes have no attributes."""

    @handles(ApplicationClientProtocol.get_attributes_to_nodes)
    async def get_attributes_to_nodes(self, caller: Caller[None], request: None) -> None:
        """None."""

    @handles(ApplicationClientProtocol.get_nodes_to_attributes)
    async def get_nodes_to_attributes(self, caller: Caller[None], request: None) -> None:
        """None."""

    @handles(ApplicationClientProtocol.get_application_attempt_report)
    async def get_application_attempt_report(
        self, caller: Caller[None], request: ApplicationAttemptId
    ) -> ApplicationAttemptReport:
        return reports.attempt_report(self._core.context, request, reader_of(caller))

    @handles(ApplicationClientProtocol.get_application_attempts)
    async def get_application_attempts(
        self, caller: Caller[None], request: ApplicationId
    ) -> tuple[ApplicationAttemptReport, ...]:
        return reports.attempt_reports(self._core.context, request, reader_of(caller))

    @handles(ApplicationClientProtocol.get_container_report)
    async def get_container_report(self, caller: Caller[None], request: ContainerId) -> ContainerReport:
        return reports.container_report(self._core.context, request, reader_of(caller))

    @handles(ApplicationClientProtocol.get_containers)
    async def get_containers(self, caller: Caller[None], request: ApplicationAttemptId) -> tuple[ContainerReport, ...]:
        return reports.container_reports(self._core.context, request, reader_of(caller))


class MasterService:
    """ApplicationMasterProtocol (Hadoop's ApplicationMasterService). An AM acts for the attempt of its token."""

    def __init__(self, shell: Asks[Event], signer: ResponseSigner) -> None:
        self._shell = shell
        self._signer = signer

    @handles(ApplicationMasterProtocol.register_application_master)
    async def register_application_master(
        self, caller: Caller[AMRMTokenIdentifier], request: RegisterApplicationMasterRequest
    ) -> RegisterApplicationMasterResponse:
        attempt_id = caller.verified.attempt_id
        reply = await self._shell.ask(lambda call: RegisterApplicationMaster(call, attempt_id, request))
        return self._signer.sign_registration(attempt_id, reply)

    @handles(ApplicationMasterProtocol.allocate)
    async def allocate(self, caller: Caller[AMRMTokenIdentifier], request: AllocateRequest) -> AllocateResponse:
        attempt_id = caller.verified.attempt_id
        reply = await self._shell.ask(lambda call: Allocate(call, attempt_id, request))
        return self._signer.sign_allocation(caller.verified, reply)

    @handles(ApplicationMasterProtocol.finish_application_master)
    async def finish_application_master(
        self, caller: Caller[AMRMTokenIdentifier], request: FinishApplicationMasterRequest
    ) -> FinishApplicationMasterResponse:
        attempt_id = caller.verified.attempt_id
        reply: FinishApplicationMasterResponse = await self._shell.ask(
            lambda call: FinishApplicationMaster(call, attempt_id, request)
        )
        return reply


class TrackerService:
    """ResourceTracker (Hadoop's ResourceTrackerService). A node acts only for itself."""

    def __init__(self, shell: Asks[Event], signer: ResponseSigner, topology: Topology) -> None:
        self._shell = shell
        self._signer = signer
        self._topology = topology

    @handles(ResourceTracker.register_node_manager)
    async def register_node_manager(
        self, caller: Caller[NodeId], request: RegisterNodeManagerRequest
    ) -> RegisterNodeManagerResponse:
        _check_node(caller, request.node_id)
        rack = self._topology.rack_of(request.node_id.host)
        reply = await self._shell.ask(lambda call: RegisterNode(call, request, rack))
        return self._signer.sign_node_registration(reply)

    @handles(ResourceTracker.node_heartbeat)
    async def node_heartbeat(self, caller: Caller[NodeId], request: NodeHeartbeatRequest) -> NodeHeartbeatResponse:
        _check_node(caller, request.node_id)
        reply = await self._shell.ask(lambda call: NodeHeartbeat(call, request))
        return self._signer.sign_heartbeat(request, reply)

    @handles(ResourceTracker.unregister_node_manager)
    async def unregister_node_manager(self, caller: Caller[NodeId], request: NodeId) -> None:
        _check_node(caller, request)
        await self._shell.ask(lambda call: UnregisterNode(call, request))


def _user_of(caller: Caller[None]) -> str:
    if _USER.fullmatch(caller.user) is None:
        raise AccessControlException(
            f"invalid user name {caller.user[:40]!r}: use letters, digits and _ . @ $ -, not starting with a dot"
        )
    return caller.user


def _asker(caller: Caller[None]) -> Asker:
    user = _user_of(caller)
    return user, groups_of(user)


def reader_of(caller: Caller[None]) -> Asker:
    """The caller of a query: any name is accepted, but an invalid user name has no groups."""
    return (caller.user, groups_of(caller.user) if _USER.fullmatch(caller.user) else ())


def _check_node(caller: Caller[NodeId], node_id: NodeId) -> None:
    if caller.verified != node_id:
        raise AccessControlException(f"{caller.verified} may not act for {node_id}: its token is for itself only")


def _kill_diagnostics(caller: Caller[None], request: KillApplicationRequest) -> str:
    """The diagnostics of a killed application (ClientRMService.forceKillApplication)."""
    text = f"Application {request.application_id} was killed by user {_user_of(caller)}"
    host = _host_of(caller.peer)
    if host:
        text += f" at {host}"
    reason = request.diagnostics.strip()
    return f"{text} with diagnostic message: {reason}" if reason else text


def _host_of(peer: str) -> str:
    """The address in gRPC's name of a peer: `ipv4:127.0.0.1:40012`, `ipv6:%5B::1%5D:40012`."""
    _, _, rest = peer.partition(":")
    return rest.rpartition(":")[0].replace("%5B", "").replace("%5D", "")
