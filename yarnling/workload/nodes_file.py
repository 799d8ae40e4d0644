"""yarnling's own files of nodes, as docs/workloads.md describes them: machines, and how they change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from wire.files.full_disk import full_disk_named
from wire.files.yaml_file import MEMORY_KEYS, Probability, Section, quantity, scalar
from yarn.errors import YarnException
from yarn.resource import Resource
from yarnling.workload.autoscaling import (
    SAMPLE_MS,
    MemoryPolicy,
    NodeScaling,
    RulePolicy,
    ScalingMetric,
    ScalingRule,
)
from yarnling.workload.distribution_text import Time, whole_ms
from yarnling.workload.documents import Faults
from yarnling.workload.limits import NODE_EVENTS_MAX, NODES_MAX, MemoryMb, Name, Vcores
from yarnling.workload.model import NodeChange, NodeEvent, NodeSchedule, SpotNodes, WorkloadNode, WorkloadNodes
from yarnling.workload.workload_file import ResourceAmounts, amounts_of, others_than_default

UNLIMITED = "unlimited"
UNLIMITED_S = -1
EVENTS_OF_ENTRY_MAX = 10_000
COOLDOWN_MS_MAX = 86_400_000


def _timeout_s(text: str) -> int | None:
    """Whole seconds, as YARN has them."""
    if text == UNLIMITED:
        return UNLIMITED_S
    time_ms = whole_ms(text)
    return None if time_ms is None or time_ms % 1000 else time_ms // 1000


_Timeout = Annotated[int, scalar(_timeout_s, "timeout in whole seconds", f"write 90s, 30m, 1h or {UNLIMITED}")]


class _Event(Section):
    """A change of all nodes of an entry. `timeout`: of a drain; without it the configuration's."""

    at: Time
    change: NodeChange
    timeout: _Timeout | None = None


class _Spot(Section):
    """Nodes of an entry that may be lost at any time. `share`: that part of them, spread evenly over the entry."""

    lost_per_hour: Annotated[Probability, Field(le=0.999)]
    share: Probability = 1.0
    replaced_after: Time | None = None

    def nodes(self, hosts: Sequence[str]) -> SpotNodes:
        chosen = [host for i, host in enumerate(hosts) if int((i + 1) * self.share) > int(i * self.share)]
        return SpotNodes(tuple(chosen), self.lost_per_hour, self.replaced_after)


class _MemoryScaling(Section):
    scale_up_factor: Probability
    scale_down_factor: Probability
    scale_up_min_fraction: Probability = 0.0
    scale_down_min_fraction: Probability = 0.0


def _nodes_or_part(text: str) -> float | None:
    """A number of nodes, or the part of them, negative: -0.2 for 20%; None if it is neither."""
    value = quantity(text, {"": 1, "%": -0.01})
    return value if value and (value < 0 or value.is_integer()) and -1 <= value <= NODES_MAX else None


_Size = Annotated[float, scalar(_nodes_or_part, "number of nodes", "write a number such as 2, or a part such as 20%")]
_Value = Annotated[
    float, scalar(lambda text: quantity(text, {"": 1, "%": 0.01}), "value", "write a number, or a part such as 15%")
]


class _ScalingRule(Section):
    """A rule of an autoscaler: `below` or `above`, and `add` or `remove`."""

    metric: ScalingMetric
    below: _Value | None = None
    above: _Value | None = None
    add: _Size | None = None
    remove: _Size | None = None
    periods: Annotated[int, Field(ge=1, le=100)] = 1
    cooldown: Time = 300_000

    @property
    def fault(self) -> str:
        """The pair of which it does not have one; "" if there is none."""
        if (self.below is None) == (self.above is None):
            return "below, or above"
        return "add, or remove" if (self.add is None) == (self.remove is None) else ""

    def record(self) -> ScalingRule:
        size, sign = (self.add, 1) if self.add is not None else (self.remove or 0, -1)
        nodes, fraction = (sign * int(size), 0.0) if size > 0 else (0, -sign * size)
        value = self.above if self.above is not None else self.below or 0.0
        return ScalingRule(self.metric, self.above is not None, value, nodes, fraction, self.periods, self.cooldown)


class _Scaling(Section):
    """Autoscaling of the nodes of an entry, of which `count` is the most; by `memory`, or by `rules`."""

    min: Annotated[int, Field(ge=0, le=NODES_MAX)] = 0
    initial: Annotated[int, Field(ge=0, le=NODES_MAX)] | None = None
    start: Time = 120_000
    drain_timeout: _Timeout = 3600
    memory: _MemoryScaling | None = None
    cooldown: Time = 120_000
    rules: Annotated[tuple[_ScalingRule, ...], Field(max_length=100)] = ()
    period: Time = 300_000

    def record(self, entry: _Node) -> NodeScaling:
        policy: MemoryPolicy | RulePolicy
        if self.memory is not None:
            policy = MemoryPolicy(**self.memory.model_dump())
        else:
            policy = RulePolicy(tuple(rule.record() for rule in self.rules), self.period)
        initial = self.min if self.initial is None else self.initial
        return NodeScaling(
            tuple(entry.hosts()),
            entry.memory_mb,
            policy,
            self.min,
            initial,
            self.start,
            self.drain_timeout,
            self.cooldown,
        )


class _Node(Section):
    """A node, or `count` equal ones: `host` is then followed by -1, -2 and so on."""

    host: Name
    memory_mb: Annotated[MemoryMb, MEMORY_KEYS]
    vcores: Vcores
    resources: ResourceAmounts = Field(default_factory=dict)
    rack: Name = "/default-rack"
    label: Annotated[str, Field(max_length=255)] = ""
    count: Annotated[int, Field(ge=1, le=NODES_MAX)] | None = None
    events: Annotated[tuple[_Event, ...], Field(max_length=EVENTS_OF_ENTRY_MAX)] = ()
    spot: _Spot | None = None
    scaling: _Scaling | None = None

    def hosts(self) -> list[str]:
        return [self.host] if self.count is None else [f"{self.host}-{i}" for i in range(1, self.count + 1)]

    def nodes(self) -> Iterator[WorkloadNode]:
        resource = Resource(self.memory_mb, self.vcores, tuple(self.resources.items()))
        return (WorkloadNode(host, resource, self.rack, self.label) for host in self.hosts())

    def node_events(self) -> Iterator[NodeEvent]:
        for event in self.events:
            yield from (NodeEvent(event.at, host, event.change, event.timeout) for host in self.hosts())


class NodeList(Section):
    """A file of nodes. `spot`: of all entries that have none of their own and are not scaled."""

    nodes: Annotated[list[_Node], Field(min_length=1, max_length=NODES_MAX)]
    spot: _Spot | None = None

    def record(self, source: str) -> WorkloadNodes:
        """The nodes with their changes. Raises ConfigurationException with all faults."""
        faults = Faults(source)
        self._check(faults)
        faults.refuse()
        events = sorted(
            (event for entry in self.nodes for event in entry.node_events()), key=lambda event: event.time_ms
        )
        nodes = tuple(node for entry in self.nodes for node in entry.nodes())
        scaled = [entry.scaling.record(entry) for entry in self.nodes if entry.scaling is not None]
        schedule = NodeSchedule(tuple(events), tuple(self._spots()), scaled[0] if scaled else None)
        return WorkloadNodes(nodes, schedule=schedule)

    def _spots(self) -> Iterator[SpotNodes]:
        """The spot nodes of each entry, and those of all others together."""
        for entry in self.nodes:
            if entry.spot is not None:
                yield entry.spot.nodes(entry.hosts())
        if self.spot is not None:
            yield self.spot.nodes([host for entry in self.nodes if entry.spot is None for host in entry.hosts()])

    def _check(self, faults: Faults) -> None:
        """Note what no entry can show alone."""
        nodes = sum(entry.count or 1 for entry in self.nodes)
        events = sum((entry.count or 1) * len(entry.events) for entry in self.nodes)
        if nodes > NODES_MAX:
            faults.add("nodes", "are too many", f"write at most {NODES_MAX}, with all counts", value=nodes)
        if events > NODE_EVENTS_MAX:
            remedy = f"write at most {NODE_EVENTS_MAX}: each counts once for each node of its entry"
            faults.add("nodes.events", "are too many", remedy, value=events)
        scaled = [number for number, entry in enumerate(self.nodes, 1) if entry.scaling is not None]
        for number in scaled[1:]:
            faults.add(f"nodes[{number}].scaling", f"is the second one, after nodes[{scaled[0]}]", "write it once")
        for number, entry in enumerate(self.nodes, 1):
            _check_scaling(entry, f"nodes[{number}]", faults)
            for position, event in enumerate(entry.events, 1):
                if event.timeout is not None and event.change is not NodeChange.DRAIN:
                    key = f"nodes[{number}].events[{position}].timeout"
                    faults.add(key, f"has no effect on {event.change.value}", "remove it, or write change: drain")


def _check_scaling(entry: _Node, path: str, faults: Faults) -> None:
    """Note what is wrong with the autoscaling of an entry."""
    scaling = entry.scaling
    if scaling is None:
        return
    if entry.count is None:
        faults.add(path, "has no count", "write count: the most nodes that there may be")
    if entry.events:
        faults.add(f"{path}.events", "are of nodes that an autoscaler adds and removes", "remove events, or scaling")
    most = entry.count or 1
    for key, value in (("min", scaling.min), ("initial", scaling.initial)):
        if value is not None and not (0 if key == "min" else scaling.min) <= value <= most:
            bounds = f"write a number from {0 if key == 'min' else scaling.min} to {most}"
            faults.add(f"{path}.scaling.{key}", "is out of bounds", bounds, value=value)
    if (scaling.memory is None) == (not scaling.rules):
        faults.add(f"{path}.scaling", "needs one policy", "write either memory, or rules")
    for key, time_ms in (("cooldown", scaling.cooldown), ("period", scaling.period)):
        if not SAMPLE_MS <= time_ms <= COOLDOWN_MS_MAX:
            faults.add(f"{path}.scaling.{key}", "is out of bounds", "write a time from 1m to 1d", value=f"{time_ms}ms")
    for position, rule in enumerate(scaling.rules, 1):
        if rule.fault:
            faults.add(f"{path}.scaling.rules[{position}]", f"needs either {rule.fault}", "write one of them")


def refuse_unwritable(nodes: WorkloadNodes) -> None:
    """Raise YarnException if the nodes have an autoscaler: `write_nodes` writes single nodes."""
    if nodes.schedule.scaling is not None:
        raise YarnException("an autoscaler cannot be written as single nodes (copy the file of the nodes instead)")


def write_nodes(nodes: WorkloadNodes, path: Path) -> None:
    """Write nodes with their changes as JSON, one node a line. Raises YarnException as `refuse_unwritable` does."""
    refuse_unwritable(nodes)
    events: dict[str, list[NodeEvent]] = {}
    for event in nodes.schedule.events:
        events.setdefault(event.host, []).append(event)
    spots = {host: spot for spot in nodes.schedule.spots for host in spot.hosts}
    lines = ",\n".join(
        json.dumps(_plain(node, events.get(node.host, ()), spots.get(node.host))) for node in nodes.nodes
    )
    with full_disk_named(path):
        path.write_text(f'{{"nodes": [\n{lines}\n]}}\n', encoding="utf-8")


def _plain(node: WorkloadNode, events: Sequence[NodeEvent], spot: SpotNodes | None) -> dict[str, Any]:
    plain = {
        "host": node.host,
        **amounts_of(node.resource),
        **others_than_default({"rack": node.rack, "label": node.label}, _Node),
    }
    if events:
        plain["events"] = [_plain_event(event) for event in events]
    if spot is not None:
        plain["spot"] = {"lost_per_hour": f"{spot.lost_per_hour:.12g}"}
        if spot.replaced_ms is not None:
            plain["spot"]["replaced_after"] = f"{spot.replaced_ms}ms"
    return plain


def _plain_event(event: NodeEvent) -> dict[str, str]:
    plain = {"at": f"{event.time_ms}ms", "change": event.change.value}
    if event.timeout_s is None:
        return plain
    return {**plain, "timeout": UNLIMITED if event.timeout_s < 0 else f"{event.timeout_s}s"}
