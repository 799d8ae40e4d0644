"""The nodes of a recorded cluster, and when each joined, left, was drained or was lost.

The times are those of polls, since the first submission of the recording. A ResourceManager notices a lost node only
when it expires, so the machine is taken to have failed that much earlier. Unhealthy nodes get no containers and lose
those that they have, so they count as nodes that have left, and come back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from yarn.configuration import Configuration
from yarn.faults import ConfigurationException
from yarn.settings.resourcemanager import NM_EXPIRY_INTERVAL
from yarnling.workload.documents import refusal
from yarnling.workload.model import NodeChange, NodeEvent, NodeSchedule, WorkloadNode, WorkloadNodes
from yarnling.workload.recorded_applications import first_submission_ms
from yarnling.workload.recorded_cluster import GONE, RecordedCluster, RecordedNode

WORKING = frozenset({"RUNNING", "DECOMMISSIONING"})
ABSENT = frozenset({GONE, "UNHEALTHY", "DECOMMISSIONED", "SHUTDOWN", "REBOOTED", "LOST"})
UNLIMITED_S = -1
"""The timeout of recorded drains: the recording says when they ended."""
RESTART_MS = 60_000
"""NodeManagers of one host whose times overlap by no more than this are one node that was restarted."""


class _Life(Struct, frozen=True):
    """A node with its changes. `is_there`: from the start on. `ends_ms`: of its presence; None: it stays to the end."""

    name: str
    host: str
    node: WorkloadNode
    is_there: bool
    events: tuple[NodeEvent, ...]
    ends_ms: int | None

    @property
    def begins_ms(self) -> int:
        return 0 if self.is_there else self.events[0].time_ms

    def named(self, host: str) -> _Life:
        """This life under another name of the node."""
        events = tuple(replace(event, host=host) for event in self.events)
        return replace(self, node=replace(self.node, host=host), events=events)


def recorded_nodes(cluster: RecordedCluster) -> WorkloadNodes:
    """The nodes that ran at any time of the recording. Raises ConfigurationException if there are none."""
    origin_ms, expiry_ms = first_submission_ms(cluster), _expiry_ms(cluster)
    lives = [
        life
        for name, node in sorted(cluster.nodes.items())
        if (life := _life(name, node, cluster.begins_ms, origin_ms, expiry_ms)) is not None
    ]
    if not lives:
        raise refusal(cluster.source, "has no node that ran", "name a file of nodes (--nodes)")
    named = sorted(_by_host(lives), key=lambda life: life.node.host)
    events = sorted((event for life in named for event in life.events), key=lambda event: event.time_ms)
    schedule = NodeSchedule(tuple(events))
    return WorkloadNodes(tuple(life.node for life in named), tuple(_notes(schedule, expiry_ms)), schedule)


def _expiry_ms(cluster: RecordedCluster) -> int:
    try:
        return NM_EXPIRY_INTERVAL.of(Configuration.of(cluster.settings))
    except ConfigurationException:
        return NM_EXPIRY_INTERVAL.of(Configuration.of({}))


def _life(name: str, node: RecordedNode, first_poll_ms: int, origin_ms: int, expiry_ms: int) -> _Life | None:
    """The life of a node; None if its size is unknown, or it was never there."""
    resource = node.resource()
    if resource is None:
        return None
    host = str(node.fields.get("nodeHostName") or name.partition(":")[0])
    rack, label = str(node.fields.get("rack") or "/default-rack"), str(node.fields.get("label") or "")
    changes = [(max(at_ms - origin_ms, 0), change) for at_ms, change in _changes(node, expiry_ms)]
    # What had happened when the workload began is how the node is at the start.
    begins_ms = max(first_poll_ms - origin_ms, 0)
    before = [change for at_ms, change in changes if at_ms <= begins_ms]
    is_there = bool(before) and before[-1] in (NodeChange.JOIN, NodeChange.DRAIN)
    after = [(at_ms, change) for at_ms, change in changes if at_ms > begins_ms]
    if is_there and before[-1] is NodeChange.DRAIN:
        after.insert(0, (begins_ms, NodeChange.DRAIN))
    while after and not is_there and after[0][1] is not NodeChange.JOIN:
        del after[0]
    if not after and not is_there:
        return None
    events = tuple(
        NodeEvent(at_ms, host, change, UNLIMITED_S if change is NodeChange.DRAIN else None) for at_ms, change in after
    )
    ends = (NodeChange.LEAVE, NodeChange.LOST)
    ends_ms = events[-1].time_ms if events and events[-1].change in ends else None
    return _Life(name, host, WorkloadNode(host, resource, rack, label), is_there, events, ends_ms)


def _changes(node: RecordedNode, expiry_ms: int) -> Iterator[tuple[int, NodeChange]]:
    """(time, change) in the order of time, of which each can follow the one before it."""
    is_there = is_draining = False
    last_ms = 0
    for at_ms, state in node.changes:
        if state in WORKING and (not is_there or (is_draining and state == "RUNNING")):
            yield at_ms, NodeChange.JOIN
            is_there, is_draining = True, False
        if state == "DECOMMISSIONING" and not is_draining:
            yield at_ms, NodeChange.DRAIN
            is_draining = True
        elif state in ABSENT and is_there:
            is_lost = state == "LOST"
            yield (max(at_ms - expiry_ms, last_ms), NodeChange.LOST) if is_lost else (at_ms, NodeChange.LEAVE)
            is_there = is_draining = False
        last_ms = at_ms


def _by_host(lives: Sequence[_Life]) -> Iterator[_Life]:
    """The lives under the names of their hosts; with their ports as well if a host has several NodeManagers at once."""
    hosts: dict[str, list[_Life]] = {}
    for life in lives:
        hosts.setdefault(life.host, []).append(life)
    for found in hosts.values():
        found.sort(key=lambda life: life.begins_ms)
        if all(_follows(other, one) for one, other in pairwise(found)):
            yield _joined(found)
        else:
            yield from (life.named(life.name.replace(":", "-")) for life in found)


def _follows(other: _Life, one: _Life) -> bool:
    """True if `other` is the same node after a restart."""
    return one.ends_ms is not None and one.ends_ms <= other.begins_ms + RESTART_MS and one.node == other.node


def _joined(lives: Sequence[_Life]) -> _Life:
    """Join several lives that follow one another into a single one."""
    events: list[NodeEvent] = []
    for life in lives:
        # The end of a restarted NodeManager may be noticed after its next start.
        events = [replace(event, time_ms=min(event.time_ms, life.begins_ms)) for event in events]
        events += life.events
    return replace(lives[0], events=tuple(events), ends_ms=lives[-1].ends_ms)


def _notes(schedule: NodeSchedule, expiry_ms: int) -> Iterator[str]:
    """Sentences about the nodes that came and went."""
    counted = Counter(event.change.value for event in schedule.events)
    if counted:
        changes = ", ".join(
            f"{change} {counted[change]}" for change in (each.value for each in NodeChange) if counted[change]
        )
        yield f"Nodes changed during the recording ({changes}), at the times of the polls that saw it."
    if counted[NodeChange.LOST.value]:
        seconds = expiry_ms / 1000
        yield f"Lost nodes are taken to have failed {seconds:g} s before, which is how long it takes to notice it."
