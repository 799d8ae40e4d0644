"""Reads plan files: YAML as described in docs/chaos.md.

The ready-made plans are in plans/, one for each kind of fault.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator, ValidationInfo, field_validator

from wire.files import yaml_file
from wire.files.yaml_file import Probability, Section, choose_from, refusal, sections
from yarn.errors import YarnException
from yarn.suggestions import did_you_mean
from yarnling.faults.kinds import KINDS, FaultKind, FaultScope
from yarnling.faults.plan import (
    DRIFT_MAX,
    NODES_MAX,
    SECONDS_MAX,
    SEED_MAX,
    ClusterPlan,
    Expectations,
    FaultPlan,
    Plan,
    Range,
    Seconds,
    Text,
    Times,
    WorkPlan,
)

PLANS_DIRECTORY = Path(__file__).with_name("plans")


def plan_names() -> list[str]:
    """The names of the ready-made plans, sorted."""
    return sorted(path.stem for path in PLANS_DIRECTORY.glob("*.yaml"))


def find_plan(text: str) -> Plan:
    """The plan in a file, or the ready-made plan of this name.

    Raises YarnException if there is none or it is not valid.
    """
    path = Path(text)
    if text in plan_names() and not path.exists():
        return read_plan(PLANS_DIRECTORY / f"{text}.yaml")
    if not path.exists():
        nearest = did_you_mean(text, plan_names())
        raise YarnException(
            f"{text}: neither a file nor a ready-made plan ({nearest}yarnling chaos --list shows the plans)"
        )
    return read_plan(path)


def read_plan(path: Path) -> Plan:
    """Read a plan from a file. Raises ConfigurationException with all mistakes in it."""
    return yaml_file.read_yaml(path, _Plan).record(path.stem)


def parse_plan(text: str, source: str, name: str) -> Plan:
    """Parse the text of a plan. Raises ConfigurationException with all mistakes in it."""
    return yaml_file.parse_yaml(text, source, _Plan).record(name)


def _kind(written: object) -> FaultKind:
    if str(written) not in KINDS:
        raise refusal("is not a valid fault", choose_from(KINDS, str(written)))
    return KINDS[str(written)]


def _joined(nodes: object) -> object:
    return ", ".join(map(str, nodes)) if isinstance(nodes, list) else nodes


class _Fault(Section):
    """A fault. The validation context contains the valid parts of the plan around it."""

    fault: Annotated[FaultKind, PlainValidator(_kind)]
    at: Range = (1.0, 1.0)
    lasts: Range = Field((2.0, 2.0), alias="for")
    times: Times = 1
    every: Range = (1.0, 1.0)
    node: Annotated[str, BeforeValidator(_joined)] = "any"
    count: Times = 1
    optional: bool = False
    pick: Probability | None = None
    # Parameters that only some kinds of faults have
    containers: bool = True
    timeout: Annotated[int, Field(ge=0, le=3600)] = 30
    lost: Literal["both", "requests", "replies"] = "both"
    how: Literal["silent", "lost", "reset"] = "silent"
    delay: Range = (0.0, 0.0)
    loss: Probability = 0.0
    breaks: Probability = 0.0
    kilobytes: Annotated[float, Field(ge=0, le=1_000_000)] = 0.0
    write: Literal["before", "after"] = "before"
    nth: Times = 1
    ahead: Annotated[float, Field(ge=-SECONDS_MAX, le=SECONDS_MAX, allow_inf_nan=False)] = SECONDS_MAX
    drift: Annotated[float, Field(ge=-DRIFT_MAX, le=DRIFT_MAX, allow_inf_nan=False)] = 0.1
    exit: Annotated[int, Field(ge=0, le=255)] = 1
    file: Literal["good", "bad"] = "good"

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
        cluster = info.context.get("cluster", ClusterPlan(nodes=NODES_MAX))
        racks = [f"rack-{number}" for number in range(1, cluster.racks + 1)] if cluster.racks > 1 else []
        choices = ["any", "all", "half", *racks]
        numbers = [number.strip() for number in node.split(",")]
        are_nodes = all(number.isdecimal() and 1 <= int(number) <= cluster.nodes for number in numbers)
        if node not in choices and not (are_nodes and len(set(numbers)) == len(numbers)):
            raise refusal("is not a valid node", f"write {', '.join(choices)}, or 1 to {cluster.nodes}")
        return node

    @field_validator("count")
    @classmethod
    def _check_count(cls, count: int, info: ValidationInfo[dict[str, Any]]) -> int:
        kind, cluster = info.data.get("fault"), info.context.get("cluster")
        if kind and cluster and kind.scope is FaultScope.NODE and count > cluster.nodes:
            raise refusal(
                f"is more than the {cluster.nodes} nodes", "write a smaller count, or give the cluster more nodes"
            )
        return count

    @field_validator("pick")
    @classmethod
    def _check_pick(cls, pick: float | None, info: ValidationInfo) -> float | None:
        kind = info.data.get("fault")
        if pick is not None and kind and kind.scope not in (FaultScope.MASTER, FaultScope.CONTAINER):
            raise refusal(f"selects an ApplicationMaster or a container, not a target of {kind.name}", "remove it")
        return pick

    @field_validator(
        *("containers", "timeout", "lost", "how", "delay", "loss", "breaks", "kilobytes"),
        *("write", "nth", "ahead", "drift", "exit", "file"),
    )
    @classmethod
    def _check_parameter(cls, value: object, info: ValidationInfo) -> object:
        kind = info.data.get("fault")
        if kind and info.field_name not in kind.parameters:
            valid = f"its parameters are {', '.join(kind.parameters)}" if kind.parameters else "remove it"
            raise refusal(f"is not a parameter of {kind.name}", valid)
        return value

    def record(self) -> FaultPlan:
        kind, options = self.fault, {name: getattr(self, name) for name in self.fault.parameters}
        lasts = self.lasts if kind.has_end else (0.0, 0.0)
        node = self.node if kind.scope is FaultScope.NODE else ""
        return FaultPlan(
            kind, self.at, lasts, self.times, self.every, node, self.count, options, self.optional, self.pick
        )


PARAMETER_DEFAULTS: Mapping[str, object] = {
    name: _Fault.model_fields[name].default for kind in KINDS.values() for name in kind.parameters
}
"""{parameter of some kinds of faults: its value if a plan does not set it}"""


class _Plan(Section):
    """A plan. `cluster` and `lasts` precede `faults`, because the validation of faults uses them."""

    about: Text = ""
    cluster: ClusterPlan = ClusterPlan()
    work: Annotated[list[WorkPlan], Field(min_length=1)]
    lasts: Annotated[Seconds, Field(ge=0.1)] = 8.0
    faults: Annotated[list[_Fault], sections(_Fault, lambda _, plan: repeat(plan))] = Field(default_factory=list)
    begins: Literal["with the work", "at once"] = "with the work"
    expect: Expectations = Expectations()
    seed: Annotated[int, Field(ge=0, le=SEED_MAX)] | None = None

    def record(self, name: str) -> Plan:
        return Plan(
            name,
            self.about,
            self.cluster,
            tuple(self.work),
            tuple(fault.record() for fault in self.faults),
            self.lasts,
            self.expect,
            awaits_work=self.begins == "with the work",
            seed=self.seed,
        )
