"""Applications and attempts: submissions and reports. Times are wall-clock ms, 0 = not yet."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from yarn.containers import ContainerLaunchContext, ResourceRequest, Token
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.java.values import LONG_MAX
from yarn.records import SecretRecord
from yarn.resource import NONE, Resource
from yarn.states import (
    ApplicationsRequestScope,
    ContainerState,
    ExecutionType,
    FinalApplicationStatus,
    LogAggregationStatus,
    YarnApplicationAttemptState,
    YarnApplicationState,
)
from yarn.times import UNLIMITED

LABEL_NOT_SET = "<Not set>"
DEFAULT_PARTITION = "<DEFAULT_PARTITION>"
"""The name, in reports, of the partition of nodes without a label."""
NO_REMAINING_TIME = -1
"""The remaining time of an unlimited lifetime."""
DEFAULT_QUEUE = "default"
DEFAULT_NAME = "N/A"
DEFAULT_TYPE = "YARN"


class ApplicationSubmissionContext(Struct, frozen=True):
    """A client's description of an application. Defaults are Hadoop's.

    `max_app_attempts`: 0 = the RM's default. `attempt_failures_validity_interval_ms`: -1 = every failure counts
    forever. `am_requests`: the resource requests for the AM, exactly one of them for `*`; empty = one request of
    `resource`. `lifetime_s`: None = no limit.
    """

    application_id: ApplicationId
    am_container: ContainerLaunchContext = ContainerLaunchContext()
    resource: Resource = NONE
    name: str = DEFAULT_NAME
    queue: str = DEFAULT_QUEUE
    type: str = DEFAULT_TYPE
    priority: int | None = None
    unmanaged_am: bool = False
    max_app_attempts: int = 0
    keep_containers_across_attempts: bool = False
    attempt_failures_validity_interval_ms: int = -1
    tags: frozenset[str] = frozenset()
    node_label_expression: str | None = None
    am_requests: tuple[ResourceRequest, ...] = ()
    lifetime_s: int | None = None


class ApplicationResourceUsage(Struct, frozen=True):
    """The amounts that an application uses now, the MB- and vcore-seconds that its containers have used so far."""

    used_containers: int = 0
    reserved_containers: int = 0
    used: Resource = NONE
    reserved: Resource = NONE
    needed: Resource = NONE
    memory_seconds: int = 0
    vcore_seconds: int = 0
    queue_usage_percentage: float = 0.0
    cluster_usage_percentage: float = 0.0
    preempted_memory_seconds: int = 0
    preempted_vcore_seconds: int = 0


class ApplicationReport(SecretRecord, frozen=True):
    """An application as clients see it.

    `queue` is the full path once the application was placed. `am_label_expression` is None for an unmanaged
    application. `lifetime_ends` is written as in yarn.times. `am_rm_token` is set only for the user of an unmanaged
    application, whose AM cannot get the token in another way.
    """

    secret_fields: ClassVar = ("am_rm_token",)

    application_id: ApplicationId
    user: str
    queue: str
    name: str
    state: YarnApplicationState
    current_attempt_id: ApplicationAttemptId
    host: str = "N/A"
    rpc_port: int = -1
    tracking_url: str = "N/A"
    original_tracking_url: str = "N/A"
    diagnostics: str = ""
    submit_time_ms: int = 0
    start_time_ms: int = 0
    launch_time_ms: int = 0
    finish_time_ms: int = 0
    final_status: FinalApplicationStatus = FinalApplicationStatus.UNDEFINED
    usage: ApplicationResourceUsage = ApplicationResourceUsage()
    progress: float = 0.0
    type: str = DEFAULT_TYPE
    tags: frozenset[str] = frozenset()
    unmanaged: bool = False
    priority: int = 0
    log_aggregation: LogAggregationStatus | None = None
    label_expression: str = LABEL_NOT_SET
    am_label_expression: str | None = None
    lifetime_ends: str = UNLIMITED
    lifetime_remaining_s: int = NO_REMAINING_TIME
    am_rm_token: Token | None = None

    def __repr__(self) -> str:
        outcome = "" if self.final_status is FinalApplicationStatus.UNDEFINED else f" {self.final_status.name}"
        said = f", diagnostics {self.diagnostics.strip()!r}" if self.diagnostics.strip() else ""
        return (
            f"<ApplicationReport {self.application_id} {self.state.name}{outcome}, {self.progress:.0%} done: "
            f"{self.name!r} of {self.user!r} in {self.queue!r}{said}>"
        )


class ApplicationAttemptReport(Struct, frozen=True):
    """An attempt as clients see it."""

    attempt_id: ApplicationAttemptId
    state: YarnApplicationAttemptState
    am_container_id: ContainerId | None
    host: str = "N/A"
    rpc_port: int = -1
    tracking_url: str = "N/A"
    original_tracking_url: str = "N/A"
    diagnostics: str = ""
    start_time_ms: int = 0
    finish_time_ms: int = 0


class ContainerReport(Struct, frozen=True):
    """A live container as clients see it."""

    container_id: ContainerId
    resource: Resource
    node_id: NodeId
    priority: int
    state: ContainerState
    creation_time_ms: int = 0
    finish_time_ms: int = 0
    exit_status: int = 0
    diagnostics: str = ""
    log_url: str = ""
    node_http_address: str = ""
    execution_type: ExecutionType = ExecutionType.GUARANTEED

    def __repr__(self) -> str:
        status = f", exit status {self.exit_status}" if self.state is ContainerState.COMPLETE else ""
        return f"<ContainerReport {self.container_id} {self.state.name} on {self.node_id}, {self.resource}{status}>"


class TimeRange(Struct, frozen=True):
    """Times from `begin_ms` to `end_ms`, both included."""

    begin_ms: int = 0
    end_ms: int = LONG_MAX

    def __contains__(self, time_ms: int) -> bool:
        return self.begin_ms <= time_ms <= self.end_ms


class ApplicationFilter(Struct, frozen=True):
    """Which applications to list. An application must match every field, by one of the field's values.

    An empty field matches every application. The finish time of an application that has not finished is 0.
    """

    types: frozenset[str] = frozenset()
    states: frozenset[YarnApplicationState] = frozenset()
    users: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    limit: int | None = None
    scope: ApplicationsRequestScope = ApplicationsRequestScope.ALL
    name: str | None = None
    started: TimeRange | None = None
    finished: TimeRange | None = None
