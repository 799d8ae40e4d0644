"""The result of a simulated workload: the waits, the use of the queues, preemption, and what the report is made from.

All times are milliseconds since the start of the workload. Everything is plain data and can be written as JSON.
"""

from __future__ import annotations

from msgspec import Struct

from yarn.java.versions import HADOOP_VERSION
from yarn.resource import MEMORY_MB, Resource
from yarnling.whatif.containers import ContainerOutcomes
from yarnling.workload.calibration import Calibration
from yarnling.workload.evidence import Evidence

REFUSED = "REFUSED"
"""The state of an application that the ResourceManager refused at its submission."""
NOT_SUBMITTED = "NOT_SUBMITTED"
"""The state of an application whose time had not come when the simulation ended."""


class ApplicationOutcome(Struct, frozen=True):
    """The outcome of an application.

    `state`: that YARN reported when the simulation ended; REFUSED if its submission was refused, NOT_SUBMITTED if
    its time had not come. `am_limit_wait_ms`, `user_limit_wait_ms`: for how long it waited because of the queue's AM
    limit, and its user's limit, as far as samples show.
    `surplus`: containers that it was allocated and released unused, because its AM sends lowered requests again.
    `memory_mb_s`: memory times time, in MB-s, of all its containers, as the ResourceManager counts it.
    """

    name: str
    user: str
    queue: str
    submitted_ms: int
    am_started_ms: int | None
    ended_ms: int | None
    state: str
    deadline_ms: int | None = None
    am_limit_wait_ms: int = 0
    user_limit_wait_ms: int = 0
    diagnostics: str = ""
    surplus: int = 0
    memory_mb_s: int = 0


class QueueSample(Struct, frozen=True):
    """A queue at one moment, in one partition. `guaranteed` and `maximum` are its effective minimum and maximum."""

    time_ms: int
    queue: str
    used: Resource
    reserved: Resource
    pending: Resource
    guaranteed: Resource
    maximum: Resource
    running_applications: int
    pending_applications: int
    label: str = ""


class LongWait(Struct, frozen=True):
    """A wait among the longest. `container` is the position in `WhatIfResult.containers`; `explanation`: the verdict of
    `explain` while it waited.
    """

    container: int
    explanation: str


class NodeCount(Struct, frozen=True):
    """The number of machines from a time on; a machine counts from its order until it is lost or decommissioned."""

    time_ms: int
    nodes: int


class WaitReason(Struct, frozen=True):
    """For how long containers of a user in a queue, or its AMs, waited for one cause, all together, as far as samples
    show; `sentence`: what `explain` said of one of them.
    """

    queue: str
    user: str
    is_am: bool
    cause: str
    container_ms: int
    sentence: str


class WhatIfResult(Struct, frozen=True):
    """The result of a simulated workload.

    `until_ms`: when the simulation ended. `warnings`: what of the configuration and the workload is simulated
    in another way, and its effect.

    `leaf_queues` are in the order of the queue tree. `samples` are ordered by time, then by queue tree, then by label;
    those of the root and of parents are among them. There is one each `sample_interval_ms`, for each queue and each
    partition that it may use. `containers` are in the order of their requests. `is_complete` is False if the
    simulation was interrupted before its end. `trace`: the SHA-256 of every step of all cores, "" if it was not wanted.
    `counted`: the resource types that the scheduler compares, memory alone with the DefaultResourceCalculator.
    `settings` {key: value}: what the configuration sets, without secrets; empty in results of earlier versions, as are
    `wait_reasons` and `node_counts`, in order of time from 0 on.
    `calibration`, `evidence`: of the workload. `events` and `wall_s` say what the run cost. `release`: the release of
    Hadoop whose rules decided.
    """

    title: str
    configuration: str
    workload: str
    seed: int
    until_ms: int
    cluster: Resource
    nodes: int
    leaf_queues: tuple[str, ...]
    applications: tuple[ApplicationOutcome, ...]
    containers: ContainerOutcomes
    samples: tuple[QueueSample, ...]
    longest_waits: tuple[LongWait, ...]
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    events: int = 0
    wall_s: float = 0.0
    sample_interval_ms: int = 60_000
    is_complete: bool = True
    trace: str = ""
    counted: tuple[str, ...] = (MEMORY_MB,)
    settings: dict[str, str] = {}
    wait_reasons: tuple[WaitReason, ...] = ()
    node_counts: tuple[NodeCount, ...] = ()
    calibration: Calibration | None = None
    evidence: tuple[Evidence, ...] = ()
    release: str = HADOOP_VERSION
