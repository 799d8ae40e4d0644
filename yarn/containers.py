"""Containers: what is to run, where it was allocated, how it does and how it ended."""

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
    ExecutionType,
    LocalResourceType,
    LocalResourceVisibility,
)

AMRM_KIND = "YARN_AM_RM_TOKEN"
NM_KIND = "NMToken"
CONTAINER_KIND = "ContainerToken"
NODE_KIND = "YarnlingNodeToken"
CLIENT_KIND = "YarnlingClientToken"
"""Kinds of tokens: Hadoop's three, and two of our own (wire.tokens)."""


class Token(SecretRecord, frozen=True):
    """A signed statement: `identifier` (a serialised record), `password` (its HMAC), what kind, for whom."""

    secret_fields: ClassVar = ("password",)

    identifier: bytes
    password: bytes
    kind: str
    service: str


class LocalResource(Struct, frozen=True):
    """A file that a container needs in its work directory: `url` such as `file:/data/words.txt`.

    `timestamp_ms` must equal the file's modification time when it is fetched; `size_bytes` is what was told.
    `pattern` goes with LocalResourceType.PATTERN.
    """

    url: str
    size_bytes: int
    timestamp_ms: int
    type: LocalResourceType = LocalResourceType.FILE
    visibility: LocalResourceVisibility = LocalResourceVisibility.APPLICATION
    pattern: str | None = None


class ContainerRetryContext(Struct, frozen=True):
    """When and how often the NM starts a failed container again. Intervals in ms; max_retries -1 = for ever."""

    policy: ContainerRetryPolicy = ContainerRetryPolicy.NEVER_RETRY
    error_codes: frozenset[int] = frozenset()
    max_retries: int = 0
    retry_interval_ms: int = 0
    failures_validity_interval_ms: int = -1


class ContainerLaunchContext(SecretRecord, frozen=True):
    """What to run: the commands are joined with blanks and handed to bash as they are.

    `local_resources` {link name below the work directory: resource}; `service_data` {auxiliary service: bytes};
    `tokens` is the serialised credentials for the container (opaque here). `application_acls`, of a master's, say who
    else may view or change the application: users, a blank, groups.
    """

    secret_fields: ClassVar = ("tokens",)

    commands: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    local_resources: dict[str, LocalResource] = field(default_factory=dict)
    tokens: bytes = b""
    service_data: dict[str, bytes] = field(default_factory=dict)
    retry: ContainerRetryContext = ContainerRetryContext()
    application_acls: dict[ApplicationAccessType, str] = field(default_factory=dict)


class Container(Struct, frozen=True):
    """An allocated container as an AM gets it; `token` is what its NM wants to see to start it."""

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
    """How a container does: what NMs report, and what an AM hears of an end."""

    container_id: ContainerId
    state: ContainerState
    exit_status: int = ContainerExitStatus.INVALID
    diagnostics: str = ""
    capability: Resource | None = None
    execution_type: ExecutionType = ExecutionType.GUARANTEED
    sub_state: ContainerSubState | None = None


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
    """What the RM promises an NM about a container (BaseContainerTokenIdentifier). Times are wall-clock ms.

    `rm_identifier` is the RM's start time: an NM refuses containers of an earlier RM.
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
    """Lets one attempt talk to one NM."""

    attempt_id: ApplicationAttemptId
    node_id: NodeId
    user: str
    master_key_id: int


class AMRMTokenIdentifier(Struct, frozen=True):
    """Lets the master of one attempt talk to the RM."""

    attempt_id: ApplicationAttemptId
    master_key_id: int
