"""ResourceTracker: requests and replies between an NM and the RM."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from yarn.containers import Container, ContainerStatus, NMContainerStatus
from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.nodes import NodeHealth, ResourceUtilization
from yarn.records import SecretRecord
from yarn.resource import Resource
from yarn.states import LogAggregationStatus, NodeAction, SignalContainerCommand


class MasterKey(SecretRecord, frozen=True):
    """A key with which the RM signs tokens and NMs check them."""

    secret_fields: ClassVar = ("secret",)

    key_id: int
    secret: bytes


class LogAggregationReport(Struct, frozen=True):
    """The progress of a node with aggregating the logs of an application."""

    application_id: ApplicationId
    status: LogAggregationStatus
    diagnostics: str = ""


REFUSAL_CHARS_MAX = 500
"""The maximum of characters of a refusal; what is longer is cut."""


class RefusedStart(Struct, frozen=True):
    """A container that the node refused to start for its AM, and the error that the AM got."""

    container_id: ContainerId
    reason: str


class RegisterNodeManagerRequest(Struct, frozen=True):
    """An NM's registration: its resources, and the containers that still run there."""

    node_id: NodeId
    http_port: int
    resource: Resource
    nm_version: str = ""
    containers: tuple[NMContainerStatus, ...] = ()
    running_applications: tuple[ApplicationId, ...] = ()
    physical_resource: Resource | None = None
    health: NodeHealth = NodeHealth()
    log_aggregation_reports: tuple[LogAggregationReport, ...] = ()


class RegisterNodeManagerResponse(Struct, frozen=True):
    """NORMAL with the keys, or SHUTDOWN with the reason in `diagnostics`. `rm_identifier`: the RM's start time."""

    action: NodeAction
    rm_identifier: int
    container_token_key: MasterKey | None = None
    nm_token_key: MasterKey | None = None
    diagnostics: str = ""
    rm_version: str = ""
    resource: Resource | None = None


class NodeHeartbeatRequest(Struct, frozen=True):
    """An NM's heartbeat. `response_id`: the id of the last reply that it received.

    `containers`: every live container, and each completed one until the RM lists it in `containers_to_forget`.
    `refused_starts`: the last of each application since the last heartbeat; Hadoop does not report them.
    """

    node_id: NodeId
    response_id: int
    containers: tuple[ContainerStatus, ...] = ()
    health: NodeHealth = NodeHealth()
    keep_alive_applications: tuple[ApplicationId, ...] = ()
    containers_utilization: ResourceUtilization | None = None
    node_utilization: ResourceUtilization | None = None
    increased_containers: tuple[Container, ...] = ()
    container_token_key_id: int = 0
    nm_token_key_id: int = 0
    log_aggregation_reports: tuple[LogAggregationReport, ...] = ()
    refused_starts: tuple[RefusedStart, ...] = ()


class NodeHeartbeatResponse(Struct, frozen=True):
    """The RM's orders, and the time until the next heartbeat (ms).

    `containers_to_forget`: completed containers whose end the AM has received.
    """

    response_id: int
    action: NodeAction
    next_heartbeat_ms: int = 1000
    containers_to_clean_up: tuple[ContainerId, ...] = ()
    applications_to_clean_up: tuple[ApplicationId, ...] = ()
    containers_to_forget: tuple[ContainerId, ...] = ()
    containers_to_signal: tuple[tuple[ContainerId, SignalContainerCommand], ...] = ()
    containers_to_update: tuple[Container, ...] = ()
    diagnostics: str = ""
    resource: Resource | None = None
    container_token_key: MasterKey | None = None
    nm_token_key: MasterKey | None = None

    @property
    def is_quiet(self) -> bool:
        """True if the reply contains no orders."""
        return self.action is NodeAction.NORMAL and not (
            self.containers_to_clean_up
            or self.applications_to_clean_up
            or self.containers_to_forget
            or self.containers_to_signal
            or self.containers_to_update
            or self.diagnostics
            or self.resource is not None
            or self.container_token_key is not None
            or self.nm_token_key is not None
        )
