"""A plan as a YAML file. What is wrong with one is told all at once, each with its line, value, bound and remedy."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import yaml

from wire.strict_yaml import Value, YamlReader
from yarnling.chaos.plan import (
    KINDS,
    ClusterPlan,
    Expectations,
    FaultKind,
    FaultPlan,
    Plan,
    Program,
    Scope,
    Span,
    Work,
)

NODES_MAX = 100
TIMES_MAX = 1000
SECONDS_MAX = 3600.0
WITH_WORK, AT_ONCE = "with the work", "at once"

_PLAN_KEYS = ("about", "cluster", "work", "faults", "lasts", "begins", "expect")
_CLUSTER_KEYS = ("nodes", "racks", "memory_mb", "vcores", "network", "same_ports", "settings")
_WORK_KEYS = (
    "program", "applications", "tasks", "seconds", "at", "every", "users", "may_fail", "keep_containers", "attempts",
)  # fmt: skip
_FAULT_KEYS = ("fault", "at", "for", "times", "every", "node", "count", "optional")
_EXPECT_KEYS = ("nodes_lost", "attempts", "failed", "refused", "lost_within", "fence", "heal", "drain")


def read_plan(path: Path) -> Plan:
    """The plan of a file. Raises ConfigurationException with every fault."""
    reader = PlanReader(str(path))
    return reader.plan(reader.read_file(path), path.stem)


def parse_plan(text: str, source: str, name: str) -> Plan:
    """The plan of a text. Raises ConfigurationException with every fault."""
    reader = PlanReader(source)
    return reader.plan(reader.read(text), name)


class PlanReader(YamlReader):
    """One plan, read to its end whatever is wrong with it."""

    def plan(self, value: Value | None, name: str) -> Plan:
        fields = self.fields(value, _PLAN_KEYS, ("work",))
        cluster = self._cluster(fields.get("cluster"))
        lasts = self._number(fields.get("lasts"), 8.0, 0.1)
        plan = Plan(
            name=name,
            about=self.text(fields.get("about"), ""),
            cluster=cluster,
            work=tuple(self._work(item) for item in self.items(fields.get("work"))),
            faults=tuple(
                fault for item in self.items(fields.get("faults")) if (fault := self._fault(item, cluster, lasts))
            ),
            lasts=lasts,
            expect=self._expectations(fields.get("expect")),
            awaits_work=self.choice(fields.get("begins"), (WITH_WORK, AT_ONCE), WITH_WORK) == WITH_WORK,
        )
        if "work" in fields and not plan.work:
            self.fault(fields["work"], "is none, so nothing could be lost", "write `- {program: batch}`")
        self.refuse_if_faulty()
        return plan

    def _cluster(self, value: Value | None) -> ClusterPlan:
        fields = self.fields(value, _CLUSTER_KEYS)
        nodes = self.integer(fields.get("nodes"), 4, 1, NODES_MAX)
        return ClusterPlan(
            nodes=nodes,
            racks=self.integer(fields.get("racks"), 1, 1, nodes),
            memory_mb=self.integer(fields.get("memory_mb"), 2048, 256),
            vcores=self.integer(fields.get("vcores"), 16, 1),
            network=self._flag(fields.get("network"), False),
            same_ports=self._flag(fields.get("same_ports"), False),
            # Whether there are such keys is told when the cluster starts.
            settings={key: self.text(entry, "") for key, entry in self.pairs(fields.get("settings")).items()},
        )

    def _work(self, value: Value) -> Work:
        fields = self.fields(value, _WORK_KEYS)
        programs = tuple(program.value for program in Program)
        return Work(
            program=Program(self.choice(fields.get("program"), programs, Program.BATCH.value)),
            applications=self.integer(fields.get("applications"), 1, 1, TIMES_MAX),
            tasks=self.integer(fields.get("tasks"), 4, 1, TIMES_MAX),
            seconds=self._number(fields.get("seconds"), 1.0),
            at=self._number(fields.get("at"), 0.0),
            every=self._number(fields.get("every"), 0.5),
            users=tuple(part.strip() for part in self.text(fields.get("users"), "").split(",")),
            may_fail=self._flag(fields.get("may_fail"), False),
            keep_containers=self._flag(fields.get("keep_containers"), False),
            attempts=self.integer(fields.get("attempts"), 0, 0, TIMES_MAX),
        )

    def _fault(self, value: Value, cluster: ClusterPlan, run_lasts: float) -> FaultPlan | None:
        """A fault of the file; None if it cannot be told which."""
        kind = self._kind(value)
        fields = self.fields(value, (*_FAULT_KEYS, *(kind.parameters if kind else _OPTIONS)), ("fault",))
        if kind is None:
            return None
        is_of_nodes = kind.scope is Scope.NODE
        fault = FaultPlan(
            kind=kind,
            at=self._span(fields.get("at"), (1.0, 1.0)),
            lasts=self._span(fields.get("for"), (2.0, 2.0)) if kind.has_end else (0.0, 0.0),
            times=self.integer(fields.get("times"), 1, 1, TIMES_MAX),
            every=self._span(fields.get("every"), (1.0, 1.0)),
            node=self._target(fields.get("node"), cluster) if is_of_nodes else "",
            count=self.integer(fields.get("count"), 1, 1, cluster.nodes if is_of_nodes else TIMES_MAX),
            options={name: _OPTIONS[name](self, fields.get(name)) for name in kind.parameters},
            optional=self._flag(fields.get("optional"), False),
        )
        if fault.at[0] > run_lasts:
            self.fault(fields["at"], f"is after the end, {run_lasts:g} s", "let `lasts` be longer")
        return fault

    def _kind(self, value: Value) -> FaultKind | None:
        if not self.is_mapping(value):
            return None
        named = [node for key, node in value.node.value if getattr(key, "value", None) == "fault"]
        if not named or not isinstance(named[0], yaml.ScalarNode):
            return None
        if named[0].value not in KINDS:
            near = difflib.get_close_matches(named[0].value, KINDS, 1)
            problem = f"is no fault (did you mean {near[0]}?)" if near else "is no fault"
            self.fault(Value(named[0], f"{value.path}.fault"), problem, f"there are {', '.join(KINDS)}")
        return KINDS.get(named[0].value)

    def _target(self, value: Value | None, cluster: ClusterPlan) -> str:
        if value is None:
            return "any"
        racks = [f"rack-{number}" for number in range(1, cluster.racks + 1)] if cluster.racks > 1 else []
        choices = ["any", "all", "half", *racks]
        if value.text in choices or (value.text.isdecimal() and 1 <= int(value.text) <= cluster.nodes):
            return value.text
        self.fault(value, "is no node", f"write {', '.join(choices)}, or 1 to {cluster.nodes}")
        return "any"

    def _expectations(self, value: Value | None) -> Expectations:
        fields, usual = self.fields(value, _EXPECT_KEYS), Expectations()
        return Expectations(
            nodes_lost=self._bounds(fields.get("nodes_lost")),
            attempts=self._bounds(fields.get("attempts")),
            failed=self._bounds(fields.get("failed")),
            refused=self._bounds(fields.get("refused")),
            lost_within=self._number(fields.get("lost_within"), 0.0) or None,
            fence=self._number(fields.get("fence"), usual.fence),
            heal=self._number(fields.get("heal"), usual.heal),
            drain=self._number(fields.get("drain"), usual.drain),
        )

    # Kinds of values

    def _flag(self, value: Value | None, default: bool) -> bool:
        return self.choice(value, ("true", "false"), str(default).lower()) == "true"

    def _number(self, value: Value | None, default: float, least: float = 0.0, most: float = SECONDS_MAX) -> float:
        if value is None:
            return default
        number = _number(value)
        if number is not None and least <= number <= most:
            return number
        self.fault(value, f"is no number from {least:g} to {most:g}", f"write a number from {least:g} to {most:g}")
        return default

    def _probability(self, value: Value | None) -> float:
        return self.fraction(value, 0.0)

    def _ends(self, value: Value) -> list[float | None]:
        """A number twice, or the two of a list."""
        if not self.is_list(value):
            return [_number(value)] * 2
        return [_number(item) for item in self.items(value)]

    def _span(self, value: Value | None, default: Span) -> Span:
        if value is None:
            return default
        match self._ends(value):
            case [float(least), float(most)] if 0 <= least <= most <= SECONDS_MAX:
                return least, most
        self.fault(
            value, "is neither seconds nor a span of them", f"write seconds, or [least, most], up to {SECONDS_MAX:g}"
        )
        return default

    def _bounds(self, value: Value | None) -> tuple[int, int] | None:
        if value is None:
            return None
        match self._ends(value):
            case [float(least), float(most)] if 0 <= least <= most and least.is_integer() and most.is_integer():
                return int(least), int(most)
        self.fault(value, "is neither a count nor a span of them", "write a whole number, or [least, most]")
        return None


def _number(value: Value) -> float | None:
    """The number that is written there; None if it is none, or has no end."""
    if not isinstance(value.node, yaml.ScalarNode):
        return None
    try:
        number = float(value.text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


_OPTIONS: Mapping[str, Callable[[PlanReader, Value | None], object]] = {
    "containers": lambda reader, value: reader._flag(value, True),
    "timeout": lambda reader, value: reader.integer(value, 30, 0, 3600),
    "lost": lambda reader, value: reader.choice(value, ("both", "requests", "replies"), "both"),
    "how": lambda reader, value: reader.choice(value, ("silent", "lost", "reset"), "silent"),
    "delay": lambda reader, value: reader._span(value, (0.0, 0.0)),
    "loss": PlanReader._probability,
    "breaks": PlanReader._probability,
    "kilobytes": lambda reader, value: reader._number(value, 0.0, 0.0, 1e6),
}
