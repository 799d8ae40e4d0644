"""The demonstration's knowledge about its cluster: a snapshot of the present, and observations of the whole run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec import Struct

from examples.demo.usage_history import UsageHistory
from examples.demo.workload import Submitted
from yarn.applications import ApplicationReport
from yarn.errors import YarnException
from yarn.ids import ContainerId, NodeId
from yarn.nodes import NodeReport
from yarn.queues import QueueInfo
from yarn.states import FINAL_APPLICATION_STATES
from yarnling.cluster.client import Client


class Snapshot(Struct, frozen=True):
    """The cluster at one moment: reports in the order of submission, nodes by id."""

    time_s: float
    reports: tuple[ApplicationReport, ...]
    nodes: tuple[NodeReport, ...]

    @property
    def all_ended(self) -> bool:
        return all(report.state in FINAL_APPLICATION_STATES for report in self.reports)


@dataclass
class Observations:
    """The observations so far: usage over time, the node of each container, the containers of ApplicationMasters."""

    usage: UsageHistory = field(default_factory=UsageHistory)
    places: dict[ContainerId, NodeId] = field(default_factory=dict)
    ams: set[ContainerId] = field(default_factory=set)


async def take_snapshot(client: Client, submitted: list[Submitted], observed: Observations, time_s: float) -> Snapshot:
    """The state of the cluster now; adds to `observed`."""
    reports = tuple([await client.report(one.application_id) for one in submitted])
    nodes = tuple(sorted(await client.nodes(), key=lambda node: node.node_id))
    root = await client.queue("root")
    observed.usage.add(time_s, {queue.path: _shares(queue) for queue in leaves(root)})
    for report in reports:
        if report.state not in FINAL_APPLICATION_STATES:
            observed.places |= dict(await live_containers(client, report))
            await _note_ams(client, report, observed)
    return Snapshot(time_s, reports, nodes)


async def live_containers(client: Client, report: ApplicationReport) -> list[tuple[ContainerId, NodeId]]:
    """The containers of the application's current attempt; empty while the attempt ends."""
    try:
        found = await client.containers(report.current_attempt_id)
    except YarnException:
        return []
    return [(container.container_id, container.node_id) for container in found]


async def _note_ams(client: Client, report: ApplicationReport, observed: Observations) -> None:
    for attempt in await client.attempts(report.application_id):
        if attempt.am_container_id is not None:
            observed.ams.add(attempt.am_container_id)


def leaves(queue: QueueInfo) -> Iterator[QueueInfo]:
    """The leaf queues."""
    if not queue.children:
        yield queue
    for child in queue.children:
        yield from leaves(child)


def _shares(queue: QueueInfo) -> tuple[float, float]:
    return queue.absolute_capacity, queue.absolute_used_capacity
