"""Containers: resource requests, container updates, preemption messages, launch contexts, statuses and tokens."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct, field

from yarn.ids import ApplicationAttemptId, ContainerId, NodeId
from yarn.records import SecretRecord
from yarn.resource import Resource
from yarn.states import (
    ApplicationAccessType,
    ContainerExitStatus,
    ContainerRetryPolicy,
    ContainerState,
    ContainerSubState,
    ContainerType,
    ContainerUpdateType,
    ExecutionType,
    LocalResourceType,
    LocalResourceVisibility,
)

UNDEFINED_PRIORITY = -1
"""The priority of a request that has none, like those in a preemption message."""

ANY = "*"
"""The resource name for any host."""


class ResourceRequest(Struct, frozen=True):
    """A resource request. It REPLACES the earlier one of the same (priority, request id, resource name).

    `resource_name` is a host, a rack (`/r1`) or `*`; a container on a host needs all three requests. `count`: the
    containers wanted in total; 0 withdraws the request. `label`: None = the application's label expression, or else the
    queue's.
    """

    priority: int
    resource_name: str
    capability: Resource
    count: int
    relax_locality: bool = True
    label: str | None = None
    allocation_request_id: int = -1
    execution_type: ExecutionType = ExecutionType.GUARANTEED
    enforce_execution_type: bool = False


class UpdateContainerRequest(Struct, frozen=True):
    """An update of a running container. `version`: the version of the container that the AM knows."""

    container_id: ContainerId
    version: int
    type: ContainerUpdateType
    capability: Resource | None = None
    execution_type: ExecutionType | None = None


class UpdateContainerError(Struct, frozen=True):
    """The refusal of an update. `reason` is Hadoop's constant, for example INVALID_CONTAINER_ID."""

    reason: str
    request: UpdateContainerRequest
    current_version: int = 0


class Preemption(Struct, frozen=True):
    """Containers that will be (`strict`) or may be (`negotiable`) preempted.

    Instead of the negotiable ones the AM may release other containers of the sizes in `asks`.
    """

    strict: tuple[ContainerId, ...] = ()
    negotiable: tuple[ContainerId, ...] = ()
    asks: tuple[ResourceRequest, ...] = ()


AMRM_KIND = "YARN_AM_RM_TOKEN"
NM_KIND = "NMToken"
CONTAINER_KIND = "ContainerToken"
NODE_KIND = "YarnlingNodeToken"
CLIENT_KIND = "YarnlingClientToken"
"""Kinds of tokens: Hadoop's three, and two of our own (wire.tokens)."""


class Token(SecretRecord, frozen=True):
    """A token. `identifier`: a serialised record; `password`: its HMAC; `service`: the server that it is for."""

    secret_fields: ClassVar = ("password",)

    identifier: bytes
    password: bytes
    kind: str
    service: str


class LocalResource(Struct, frozen=True):
    """A file that a container needs in its work directory; `url` is for example `file:/data/words.txt`.

    `timestamp_ms` must equal the file's modification time when the file is fetched; `size_bytes` is not checked.
    `pattern` is used with LocalResourceType.PATTERN.
    """

    url: str
    size_bytes: int
    timestamp_ms: int
    type: LocalResourceType = LocalResourceType.FILE
    visibility: LocalResourceVisibility = LocalResourceVisibility.APPLICATION
    pattern: str | None = None


class ContainerRetryContext(Struct, frozen=True):
    """The rule by which the NM restarts a failed container. Intervals in ms; max_retries -1 = forever."""

    policy: ContainerRetryPolicy = ContainerRetryPolicy.NEVER_RETRY
    error_codes: frozenset[int] = frozenset()
    max_retries: int = 0
    retry_interval_ms: int = 0
    failures_validity_interval_ms: int = -1


class ServiceData(SecretRecord, frozen=True):
    """The data of an AM for an auxiliary service of a node; for mapreduce_shuffle it contains the job's secret."""

    secret_fields: ClassVar = ("data",)

    data: bytes


class ContainerLaunchContext(SecretRecord, frozen=True):
    """The program of a container. The commands are joined with blanks and passed to bash unchanged.

    `local_resources` {link name below the work directory: resource}. `service_data` {auxiliary service: data}.
    `tokens`: the serialised credentials for the container. `application_acls`: in the context of an AM, who else may
    view or change the application (users, a blank, groups).
    """

    secret_fields: ClassVar = ("tokens",)

    commands: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    local_resources: dict[str, LocalResource] = field(default_factory=dict)
    tokens: bytes = b""
    service_data: dict[str, ServiceData] = field(default_factory=dict)
    retry: ContainerRetryContext = ContainerRetryContext()
    application_acls: dict[ApplicationAccessType, str] = field(default_factory=dict)


class Container(Struct, frozen=True):
    """An allocated container as an AM receives it. `token`: its container token, which the NM requires to start it."""

    id: ContainerId
    node_id: NodeId
    node_http_address: str
    resource: Resource
    priority: int
    token: Token | None = None
    execution_type: ExecutionType = ExecutionType.GUARANTEED
    allocation_request_id: int = -1
    version: int = 0


class ContainerStatus(Struct, frozen=True):
    """The status of a container, as NMs report it to the RM, and the RM to AMs when it completes."""

    container_id: ContainerId
    state: ContainerState
    exit_status: int = ContainerExitStatus.INVALID
    diagnostics: str = ""
    capability: Resource | None = None
    execution_type: ExecutionType = ExecutionType.GUARANTEED
    sub_state: ContainerSubState | None = None
    host: str = ""
    """The address of its node; "" until it has been started, and in the statuses that NMs report to the RM."""


class NMContainerStatus(Struct, frozen=True):
    """A container as an NM lists it when it registers; times are wall-clock ms."""

    container_id: ContainerId
    state: ContainerState
    resource: Resource
    priority: int = 0
    exit_status: int = ContainerExitStatus.INVALID
    diagnostics: str = ""
    creation_time_ms: int = 0
    version: int = 0
    node_label_expression: str = ""
    execution_type: ExecutionType = ExecutionType.GUARANTEED
    allocation_request_id: int = -1


class ContainerTokenIdentifier(Struct, frozen=True):
    """The content of a container token (ContainerTokenIdentifier). Times are wall-clock ms.

    `rm_identifier`: the RM's start time; an NM refuses containers of an earlier RM.
    """

    container_id: ContainerId
    node_id: NodeId
    user: str
    resource: Resource
    expiry_ms: int
    master_key_id: int
    rm_identifier: int
    priority: int
    creation_time_ms: int
    container_type: ContainerType = ContainerType.TASK
    execution_type: ExecutionType = ExecutionType.GUARANTEED
    version: int = 0
    allocation_request_id: int = -1
    node_label_expression: str = ""


class NMTokenIdentifier(Struct, frozen=True):
    """The content of an NM token: one attempt may call one NM."""

    attempt_id: ApplicationAttemptId
    node_id: NodeId
    user: str
    master_key_id: int


class AMRMTokenIdentifier(Struct, frozen=True):
    """The content of an AMRM token: the AM of one attempt may call the RM."""

    attempt_id: ApplicationAttemptId
    master_key_id: int
