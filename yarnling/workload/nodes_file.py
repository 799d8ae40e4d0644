"""yarnling's own files of nodes, as docs/workloads.md describes them: machines, and how they change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from wire.files.full_disk import full_disk_named
from wire.files.yaml_file import MEMORY_KEYS, Section, scalar
from yarn.resource import Resource
from yarnling.workload.distribution_text import Time, whole_ms
from yarnling.workload.documents import Faults
from yarnling.workload.limits import NODE_EVENTS_MAX, NODES_MAX, MemoryMb, Name, Vcores
from yarnling.workload.model import NodeChange, NodeEvent, NodeSchedule, WorkloadNode, WorkloadNodes
from yarnling.workload.workload_file import ResourceAmounts, amounts_of, others_than_default

UNLIMITED = "unlimited"
UNLIMITED_S = -1
EVENTS_OF_ENTRY_MAX = 10_000


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

    def hosts(self) -> list[str]:
        return [self.host] if self.count is None else [f"{self.host}-{i}" for i in range(1, self.count + 1)]

    def nodes(self) -> Iterator[WorkloadNode]:
        resource = Resource(self.memory_mb, self.vcores, tuple(self.resources.items()))
        return (WorkloadNode(host, resource, self.rack, self.label) for host in self.hosts())

    def node_events(self) -> Iterator[NodeEvent]:
        for event in self.events:
            yield from (NodeEvent(event.at, host, event.change, event.timeout) for host in self.hosts())


class NodeList(Section):
    """A file of nodes."""

    nodes: Annotated[list[_Node], Field(min_length=1, max_length=NODES_MAX)]

    def record(self, source: str) -> WorkloadNodes:
        """The nodes with their changes. Raises ConfigurationException with all faults."""
        faults = Faults(source)
        self._check(faults)
        faults.refuse()
        events = sorted(
            (event for entry in self.nodes for event in entry.node_events()), key=lambda event: event.time_ms
        )
        nodes = tuple(node for entry in self.nodes for node in entry.nodes())
        return WorkloadNodes(nodes, schedule=NodeSchedule(tuple(events)))

    def _check(self, faults: Faults) -> None:
        """Note what no entry can show alone."""
        nodes = sum(entry.count or 1 for entry in self.nodes)
        events = sum((entry.count or 1) * len(entry.events) for entry in self.nodes)
        if nodes > NODES_MAX:
            faults.add("nodes", "are too many", f"write at most {NODES_MAX}, with all counts", value=nodes)
        if events > NODE_EVENTS_MAX:
            remedy = f"write at most {NODE_EVENTS_MAX}: each counts once for each node of its entry"
            faults.add("nodes.events", "are too many", remedy, value=events)
        for number, entry in enumerate(self.nodes, 1):
            for position, event in enumerate(entry.events, 1):
                if event.timeout is not None and event.change is not NodeChange.DRAIN:
                    key = f"nodes[{number}].events[{position}].timeout"
                    faults.add(key, f"has no effect on {event.change.value}", "remove it, or write change: drain")


def write_nodes(nodes: WorkloadNodes, path: Path) -> None:
    """Write nodes with their changes as JSON, one node a line."""
    events: dict[str, list[NodeEvent]] = {}
    for event in nodes.schedule.events:
        events.setdefault(event.host, []).append(event)
    lines = ",\n".join(json.dumps(_plain(node, events.get(node.host, ()))) for node in nodes.nodes)
    with full_disk_named(path):
        path.write_text(f'{{"nodes": [\n{lines}\n]}}\n', encoding="utf-8")


def _plain(node: WorkloadNode, events: Sequence[NodeEvent]) -> dict[str, Any]:
    plain = {
        "host": node.host,
        **amounts_of(node.resource),
        **others_than_default({"rack": node.rack, "label": node.label}, _Node),
    }
    return {**plain, "events": [_plain_event(event) for event in events]} if events else plain


def _plain_event(event: NodeEvent) -> dict[str, str]:
    plain = {"at": f"{event.time_ms}ms", "change": event.change.value}
    if event.timeout_s is None:
        return plain
    return {**plain, "timeout": UNLIMITED if event.timeout_s < 0 else f"{event.timeout_s}s"}
