"""Plan files: YAML in the grammar of docs/chaos.md, and the ready-made plans in plans/, one for each kind of fault."""

from __future__ import annotations

from itertools import repeat
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, ValidationInfo, field_validator

from wire import yaml_file
from wire.yaml_file import PAIR, Probability, Section, choose_from, refusal, sections
from yarn.errors import YarnException
from yarnling.chaos import plan as plans
from yarnling.chaos.plan import KINDS, FaultKind, Plan, Range, Scope, WorkProgram

PLANS_DIRECTORY = Path(__file__).with_name("plans")
NODES_MAX = 100
TIMES_MAX = 1000
SECONDS_MAX = 3600.0


def plan_names() -> list[str]:
    """The names of the ready-made plans, sorted."""
    return sorted(path.stem for path in PLANS_DIRECTORY.glob("*.yaml"))


def find_plan(text: str) -> Plan:
    """The plan in a file, or a ready-made one by its name. Raises YarnException if there is none or it is invalid."""
    path = Path(text)
    if text in plan_names() and not path.exists():
        return read_plan(PLANS_DIRECTORY / f"{text}.yaml")
    if not path.exists():
        raise YarnException(f"{text}: neither a file nor a ready-made plan (yarnling chaos --list shows the plans)")
    return read_plan(path)


def read_plan(path: Path) -> Plan:
    """The plan in a file. Raises ConfigurationException with all mistakes in it."""
    return yaml_file.read_yaml(path, _Plan).record(path.stem)


def parse_plan(text: str, source: str, name: str) -> Plan:
    """The plan in a text. Raises ConfigurationException with all mistakes in it."""
    return yaml_file.parse_yaml(text, source, _Plan).record(name)


def _ordered(pair: tuple[float, float]) -> tuple[float, float]:
    if pair[0] > pair[1]:
        raise refusal("has its bounds in the wrong order", "write [least, most]")
    return pair


def _listed(names: object) -> object:
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else names


def _kind(written: object) -> FaultKind:
    if str(written) not in KINDS:
        raise refusal("is not a valid fault", choose_from(KINDS, str(written)))
    return KINDS[str(written)]


_Text = Annotated[str, Field(min_length=1)]
_Seconds = Annotated[float, Field(ge=0, le=SECONDS_MAX, allow_inf_nan=False)]
_Times = Annotated[int, Field(ge=1, le=TIMES_MAX)]
_Range = Annotated[tuple[_Seconds, _Seconds], PAIR, AfterValidator(_ordered)]
_Count = Annotated[int, Field(ge=0)]
_Users = Annotated[tuple[str, ...], BeforeValidator(_listed)]
_Counts = Annotated[tuple[_Count, _Count], PAIR, AfterValidator(_ordered)]


class _Cluster(Section):
    nodes: Annotated[int, Field(ge=1, le=NODES_MAX)] = 4
    racks: Annotated[int, Field(ge=1)] = 1
    memory_mb: Annotated[int, Field(ge=256)] = 2048
    vcores: Annotated[int, Field(ge=1)] = 16
    network: bool = False
    same_ports: bool = False
    # The keys are validated when the cluster starts.
    settings: dict[str, _Text] = Field(default_factory=dict)

    @field_validator("racks")
    @classmethod
    def _check_racks(cls, racks: int, info: ValidationInfo) -> int:
        if racks > info.data.get("nodes", NODES_MAX):
            raise refusal(f"is more than the {info.data['nodes']} nodes", "write fewer racks, or more nodes")
        return racks


class _Work(Section):
    program: WorkProgram = WorkProgram.BATCH
    applications: _Times = 1
    tasks: _Times = 4
    seconds: _Seconds = 1.0
    at: _Seconds = 0.0
    every: _Seconds = 0.5
    users: _Users = ("",)
    may_fail: bool = False
    keep_containers: bool = False
    attempts: Annotated[int, Field(ge=0, le=TIMES_MAX)] = 0


class _Fault(Section):
    """Validated with the valid parts of the surrounding plan as context."""

    fault: Annotated[FaultKind, PlainValidator(_kind)]
    at: _Range = (1.0, 1.0)
    lasts: _Range = Field((2.0, 2.0), alias="for")
    times: _Times = 1
    every: _Range = (1.0, 1.0)
    node: str = "any"
    count: _Times = 1
    optional: bool = False
    # Parameters of certain kinds of faults
    containers: bool = True
    timeout: Annotated[int, Field(ge=0, le=3600)] = 30
    lost: Literal["both", "requests", "replies"] = "both"
    how: Literal["silent", "lost", "reset"] = "silent"
    delay: _Range = (0.0, 0.0)
    loss: Probability = 0.0
    breaks: Probability = 0.0
    kilobytes: Annotated[float, Field(ge=0, le=1_000_000)] = 0.0

    @field_validator("at")
    @classmethod
    def _check_at(cls, at: Range, info: ValidationInfo[dict[str, Any]]) -> Range:
        end = info.context.get("lasts", SECONDS_MAX)
        if at[0] > end:
            raise refusal(f"is after the end of the plan, {end:g} s", "write a higher `lasts`, or an earlier time")
        return at

    @field_validator("node")
    @classmethod
    def _check_node(cls, node: str, info: ValidationInfo[dict[str, Any]]) -> str:
        cluster = info.context.get("cluster", _Cluster(nodes=NODES_MAX))
        racks = [f"rack-{number}" for number in range(1, cluster.racks + 1)] if cluster.racks > 1 else []
        choices = ["any", "all", "half", *racks]
        if node not in choices and not (node.isdecimal() and 1 <= int(node) <= cluster.nodes):
            raise refusal("is not a valid node", f"write {', '.join(choices)}, or 1 to {cluster.nodes}")
        return node

    @field_validator("count")
    @classmethod
    def _check_count(cls, count: int, info: ValidationInfo[dict[str, Any]]) -> int:
        kind, cluster = info.data.get("fault"), info.context.get("cluster")
        if kind and cluster and kind.scope is Scope.NODE and count > cluster.nodes:
            raise refusal(f"is more than the {cluster.nodes} nodes", "write fewer, or more nodes")
        return count

    @field_validator("containers", "timeout", "lost", "how", "delay", "loss", "breaks", "kilobytes")
    @classmethod
    def _check_parameter(cls, value: object, info: ValidationInfo) -> object:
        kind = info.data.get("fault")
        if kind and info.field_name not in kind.parameters:
            valid = f"its parameters are {', '.join(kind.parameters)}" if kind.parameters else "remove it"
            raise refusal(f"is not a parameter of {kind.name}", valid)
        return value

    def record(self) -> plans.FaultPlan:
        kind, options = self.fault, {name: getattr(self, name) for name in self.fault.parameters}
        lasts = self.lasts if kind.has_end else (0.0, 0.0)
        node = self.node if kind.scope is Scope.NODE else ""
        return plans.FaultPlan(kind, self.at, lasts, self.times, self.every, node, self.count, options, self.optional)


class _Expect(Section):
    nodes_lost: _Counts | None = None
    attempts: _Counts | None = None
    failed: _Counts | None = None
    refused: _Counts | None = None
    lost_within: Annotated[_Seconds | None, AfterValidator(lambda seconds: seconds or None)] = None
    fence: _Seconds = plans.FENCE_S
    heal: _Seconds = plans.RECOVER_S
    drain: _Seconds = plans.DRAIN_S


class _Plan(Section):
    """`cluster` and `lasts` come before `faults` because faults are validated against them."""

    about: _Text = ""
    cluster: _Cluster = _Cluster()
    work: Annotated[list[_Work], Field(min_length=1)]
    lasts: Annotated[_Seconds, Field(ge=0.1)] = 8.0
    faults: Annotated[list[_Fault], sections(_Fault, lambda _, plan: repeat(plan))] = Field(default_factory=list)
    begins: Literal["with the work", "at once"] = "with the work"
    expect: _Expect = _Expect()

    def record(self, name: str) -> Plan:
        return Plan(
            name,
            self.about,
            plans.ClusterPlan(**self.cluster.model_dump()),
            tuple(plans.WorkPlan(**work.model_dump()) for work in self.work),
            tuple(fault.record() for fault in self.faults),
            self.lasts,
            plans.Expectations(**self.expect.model_dump()),
            awaits_work=self.begins == "with the work",
        )
