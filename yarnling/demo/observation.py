"""What the demonstration sees of its cluster at one moment, and what it remembers of all moments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec import Struct

from yarn.applications import ApplicationReport
from yarn.errors import YarnException
from yarn.ids import ContainerId, NodeId
from yarn.nodes import NodeReport
from yarn.queues import QueueInfo
from yarn.states import FINAL_APPLICATION_STATES
from yarnling.cluster.client import Client
from yarnling.demo.usage_history import UsageHistory
from yarnling.demo.workload import Submitted


class Sight(Struct, frozen=True):
    """One look: reports in the order of the submissions, nodes by id."""

    time_s: float
    reports: tuple[ApplicationReport, ...]
    nodes: tuple[NodeReport, ...]

    @property
    def all_ended(self) -> bool:
        return all(report.state in FINAL_APPLICATION_STATES for report in self.reports)


@dataclass
class Memory:
    """All that was seen: usage over time, and where each container lived, {container: node}."""

    usage: UsageHistory = field(default_factory=UsageHistory)
    places: dict[ContainerId, NodeId] = field(default_factory=dict)
    masters: set[ContainerId] = field(default_factory=set)


async def look(client: Client, submitted: list[Submitted], memory: Memory, time_s: float) -> Sight:
    """Ask the ResourceManager, and remember."""
    reports = tuple([await client.report(one.application_id) for one in submitted])
    nodes = tuple(sorted(await client.nodes(), key=lambda node: node.node_id))
    root = await client.queue("root")
    memory.usage.add(time_s, {queue.path: _shares(queue) for queue in leaves(root)})
    for report in reports:
        if report.state not in FINAL_APPLICATION_STATES:
            memory.places |= dict(await live_containers(client, report))
            await _remember_masters(client, report, memory)
    return Sight(time_s, reports, nodes)


async def live_containers(client: Client, report: ApplicationReport) -> list[tuple[ContainerId, NodeId]]:
    """The containers of the application's current attempt; none if it is just ending."""
    try:
        found = await client.containers(report.current_attempt_id)
    except YarnException:
        return []
    return [(container.container_id, container.node_id) for container in found]


async def _remember_masters(client: Client, report: ApplicationReport, memory: Memory) -> None:
    for attempt in await client.attempts(report.application_id):
        if attempt.am_container_id is not None:
            memory.masters.add(attempt.am_container_id)


def leaves(queue: QueueInfo) -> Iterator[QueueInfo]:
    """The queues that hold applications."""
    if not queue.children:
        yield queue
    for child in queue.children:
        yield from leaves(child)


def _shares(queue: QueueInfo) -> tuple[float, float]:
    return queue.absolute_capacity, queue.absolute_used_capacity
