"""A chaos plan: a cluster, the work on it, the faults with their times, and the expectations. Pure.

Times are in seconds since the start of the run. A `Range` is (least, most); a value is drawn from it each time a fault
is injected. The classes also define the grammar of plan files: their fields are the keys, with bounds and defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Annotated

from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from wire.files.yaml_file import MEMORY_KEYS, PAIR, WHOLE_MEGABYTES, Section, refusal
from yarn.errors import YarnException
from yarnling.faults.kinds import FaultKind

NODES_MAX = 100
TIMES_MAX = 1000
SEED_MAX = 1 << 32
SECONDS_MAX = 3600.0
DRIFT_MAX = 0.5
"""The largest drift of a clock. Real ones drift by less than a thousandth."""

FENCE_S = 5.0
"""The seconds that superseded work may still run on a reachable node: two heartbeats, a kill, a pause before a retry.

With the fast timers this takes 2.5 s, of which 1.5 s are the longest pause between retries. The rest allows for a busy
machine.
"""
RECOVER_S = 60.0
DRAIN_S = 120.0
"""The limits in seconds on recovery and draining. Recovery and draining normally take a few seconds. The limits are
generous, so that only a hang exceeds them, not a busy machine."""


def _ordered(pair: tuple[float, float]) -> tuple[float, float]:
    if pair[0] > pair[1]:
        raise refusal("has its bounds in the wrong order", "write [least, most]")
    return pair


def _listed(names: object) -> object:
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else names


Text = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(ge=0, le=SECONDS_MAX, allow_inf_nan=False)]
Times = Annotated[int, Field(ge=1, le=TIMES_MAX)]
Count = Annotated[int, Field(ge=0)]
Users = Annotated[tuple[str, ...], BeforeValidator(_listed)]
Range = Annotated[tuple[Seconds, Seconds], PAIR, AfterValidator(_ordered)]
Bounds = Annotated[tuple[Count, Count], PAIR, AfterValidator(_ordered)]


class WorkProgram(Enum):
    """The kind of application that a plan runs."""

    BATCH = "batch"
    """Distributed shell: a number of containers, each of which runs for a number of seconds."""
    SERVICE = "service"
    """Distributed shell whose containers run until the application is killed at the end of the run."""
    TASKS = "tasks"
    """Elastic application: tasks on workers; a failed task is retried until it succeeds."""
    GANG = "gang"
    """Gang: a number of containers that start together once all are allocated, and run for a number of seconds."""
    WORDCOUNT = "wordcount"
    """MapReduce word count whose output is verified."""
    CUSTOM = "custom"
    """An ApplicationMaster of one's own, which runs numbered tasks (am.programs.custom)."""


class ClusterPlan(Section):
    """The cluster of a plan.

    `network`: every call goes through a proxy; this is implied by a fault that needs it. `same_ports`: a restarted
    NodeManager keeps its port, and so its node id. `settings` are validated when the cluster starts.
    """

    nodes: Annotated[int, Field(ge=1, le=NODES_MAX)] = 4
    racks: Annotated[int, Field(ge=1)] = 1
    memory_mb: Annotated[int, WHOLE_MEGABYTES, Field(ge=256), MEMORY_KEYS] = 2048
    vcores: Annotated[int, Field(ge=1)] = 16
    network: bool = False
    same_ports: bool = False
    settings: dict[str, Text] = Field(default_factory=dict)

    @field_validator("racks")
    @classmethod
    def _check_racks(cls, racks: int, info: ValidationInfo) -> int:
        if racks > info.data.get("nodes", NODES_MAX):
            raise refusal(f"is more than the {info.data['nodes']} nodes", "write fewer racks, or more nodes")
        return racks


class WorkPlan(Section):
    """The work of a plan: `applications` of one program, the first at `at`, then one `every` so many seconds.

    `seconds` is the duration of a container or task. `may_fail`: the applications need not succeed, only end. A
    distributed shell fails if one of its containers is killed, as Hadoop's does. `ignores_term`: AMs and containers
    ignore SIGTERM, so they run until SIGKILL follows. `killed_after`: users kill each application so many seconds after
    its submission was acknowledged; None: not during the faults. `file`: the Python file of a custom program.
    """

    program: WorkProgram = WorkProgram.BATCH
    file: Annotated[str, Field(validate_default=True)] = ""
    applications: Times = 1
    tasks: Times = 4
    seconds: Seconds = 1.0
    at: Seconds = 0.0
    every: Seconds = 0.5
    users: Users = ("",)
    may_fail: bool = False
    keep_containers: bool = False
    attempts: Annotated[int, Field(ge=0, le=TIMES_MAX)] = 0
    ignores_term: bool = False
    killed_after: Seconds | None = None

    @field_validator("ignores_term")
    @classmethod
    def _check_ignores_term(cls, ignores: bool, info: ValidationInfo) -> bool:
        program = info.data.get("program")
        if ignores and program in (WorkProgram.TASKS, WorkProgram.WORDCOUNT, WorkProgram.CUSTOM):
            raise refusal(f"is only valid for batch, service and gang, not for {program.value}", "remove it")
        return ignores

    @field_validator("keep_containers")
    @classmethod
    def _check_keep_containers(cls, keeps: bool, info: ValidationInfo) -> bool:
        if keeps and info.data.get("program") is WorkProgram.GANG:
            raise refusal("is not valid for gang, of which each attempt starts all members", "remove it")
        if keeps and info.data.get("program") is WorkProgram.CUSTOM:
            raise refusal("is not valid for custom, whose attempts start without containers", "remove it")
        return keeps

    @field_validator("file")
    @classmethod
    def _check_file(cls, file: str, info: ValidationInfo) -> str:
        is_custom = info.data.get("program") is WorkProgram.CUSTOM
        if is_custom and not file:
            raise refusal("is missing: a custom program is a Python file", "write file: master.py")
        if file and not is_custom:
            raise refusal("is only valid for custom", "remove it, or write program: custom")
        return file


class FaultPlan(Struct, frozen=True):
    """A fault that is injected `times` times.

    `node` is a number or several ("1, 3"), "any", "all", "half" or "rack-N"; `count` is the number of nodes for "any".
    `options` are the parameters of this kind of fault. `optional`: the fault is skipped if it has no target. `pick`
    selects the AM or container: a fraction from 0 to 1 of those that run at that time; None is drawn from the seed.
    """

    kind: FaultKind
    at: Range = (1.0, 1.0)
    lasts: Range = (2.0, 2.0)
    times: int = 1
    every: Range = (1.0, 1.0)
    node: str = "any"
    count: int = 1
    options: Mapping[str, object] = field(default_factory=dict)
    optional: bool = False
    pick: float | None = None


class Expectations(Section):
    """The expectations of a plan. The bounds `nodes_lost` to `refused` are (least, most); None is not checked.

    `attempts` is the highest attempt number of all applications. `refused` is the number of refused submissions. A
    killed or paused node must be LOST within `lost_within` seconds. `fence`, `heal` and `drain` are limits in seconds
    on the fencing window, the recovery and the draining.
    """

    nodes_lost: Bounds | None = None
    attempts: Bounds | None = None
    failed: Bounds | None = None
    refused: Bounds | None = None
    lost_within: Annotated[Seconds | None, AfterValidator(lambda seconds: seconds or None)] = None
    fence: Seconds = FENCE_S
    heal: Seconds = RECOVER_S
    drain: Seconds = DRAIN_S


class Plan(Struct, frozen=True):
    """A chaos plan. All faults are over after `lasts` seconds.

    Times count from when the first container runs. If not `awaits_work`, they count from the first submission, so
    faults may happen before any container exists. `seed` is used if the command line has none.
    """

    name: str
    about: str
    cluster: ClusterPlan
    work: tuple[WorkPlan, ...]
    faults: tuple[FaultPlan, ...]
    lasts: float
    expect: Expectations = Expectations()
    awaits_work: bool = True
    seed: int | None = None

    @property
    def needs_network(self) -> bool:
        return self.cluster.network or any(fault.kind.links for fault in self.faults)

    @property
    def only_simulated(self) -> bool:
        return any(fault.kind.only_simulated for fault in self.faults)

    def with_settings(self, settings: Mapping[str, str]) -> Plan:
        """This plan on a cluster that also has these settings."""
        merged = {**self.cluster.settings, **settings}
        return replace(self, cluster=self.cluster.model_copy(update={"settings": merged}))

    def check_processes_have_it(self) -> None:
        """Raises YarnException if a fault of the plan can only be simulated."""
        kinds = {fault.kind.name: fault.kind for fault in self.faults if fault.kind.only_simulated}
        if kinds:
            reasons = "; ".join(f"{kind.name}: {kind.only_simulated}" for kind in kinds.values())
            raise YarnException(f"only `yarnling simulate` has these faults: {reasons}")

    def has(self, kind: str) -> bool:
        return any(fault.kind.name == kind for fault in self.faults)
