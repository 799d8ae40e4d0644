"""The conditions under which a recorded cluster ran: its nodes, its configuration, and how long its AMs waited.

A simulation has one set of nodes and one configuration. So nodes that were there for less than half of the recording
are left out, and the configuration is the first one; all changes stay in the recording with their times, and the first
ones are listed.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import Struct

from yarn.times import duration
from yarnling.workload.documents import refusal
from yarnling.workload.model import WorkloadNode, WorkloadNodes
from yarnling.workload.recorded_cluster import GONE, RecordedCluster, RecordedNode
from yarnling.workload.rest_scheduler import QueueSettings, as_xml, read_queues

CHANGES_SHOWN_MAX = 20
LEFT = frozenset({GONE, "LOST", "DECOMMISSIONED", "SHUTDOWN", "REBOOTED"})
SITE_KEYS = re.compile(
    r"yarn\.scheduler\..+|yarn\.resourcemanager\.(scheduler\.(class|monitor)|monitor\.|am\.max-attempts|"
    r"nodemanagers\.heartbeat|application\.max|placement-constraints).*"
)
"""Properties that decide about scheduling; addresses, for example, are those of the recorded cluster."""


class RecordedWaits(Struct, frozen=True):
    """The waits of the AMs of a queue, from submission to launch, as the ResourceManager reports them. Times in ms."""

    queue: str
    applications: int
    p50_ms: int
    p95_ms: int


class RecordedFiles(Struct, frozen=True):
    """Files of a configuration, {name: content}. `notes`: what is left out or changed, one sentence each."""

    files: dict[str, str]
    notes: tuple[str, ...]


def recorded_nodes(cluster: RecordedCluster) -> WorkloadNodes:
    """The nodes that ran for half of the recording or longer. Raises ConfigurationException if there are none."""
    lasted_ms = max(cluster.ends_ms - cluster.begins_ms, 1)
    known = {name: node for name, node in cluster.nodes.items() if node.resource() is not None}
    stayed = {name: node for name, node in known.items() if 2 * node.running_ms(cluster.ends_ms) >= lasted_ms}
    if not stayed:
        raise refusal(
            cluster.source, "has no node that ran for half of the recording", "name a file of nodes (--nodes)"
        )
    hosts = Counter(_host(name, node) for name, node in stayed.items())
    nodes = tuple(
        _record(name.replace(":", "-") if hosts[_host(name, node)] > 1 else _host(name, node), node)
        for name, node in sorted(stayed.items())
    )
    return WorkloadNodes(nodes, tuple(_node_notes(cluster, len(known) - len(stayed))))


def recorded_files(cluster: RecordedCluster) -> RecordedFiles:
    """capacity-scheduler.xml and yarn-site.xml, as the cluster had them first. Raises ConfigurationException."""
    site = {key: value for key, value in cluster.settings.items() if SITE_KEYS.fullmatch(key)}
    files: dict[str, str] = {}
    notes: list[str] = []
    if cluster.queues:
        queues = read_queues(cluster.queues[0][1], cluster.source)
        files["capacity-scheduler.xml"] = as_xml(queues)
        notes += queues.lacks
    if site:
        files["yarn-site.xml"] = as_xml(QueueSettings(dict(sorted(site.items())), ()))
    if not files:
        remedy = "record for longer, or take the cluster's own files"
        raise refusal(cluster.source, "has neither the queues nor the configuration", remedy)
    return RecordedFiles(files, (*notes, *_change_notes(cluster)))


def recorded_waits(cluster: RecordedCluster) -> list[RecordedWaits]:
    """The waits of AMs by queue, of applications whose launch the ResourceManager reports."""
    found: dict[str, list[int]] = {}
    for application in cluster.applications.values():
        started_ms, launched_ms = application.number("startedTime"), application.number("launchTime")
        if 0 < started_ms <= launched_ms:
            found.setdefault(application.text("queue"), []).append(launched_ms - started_ms)
    return [
        RecordedWaits(queue, len(waits), _rank(waits, 0.5), _rank(waits, 0.95))
        for queue, waits in sorted(found.items())
    ]


def _rank(values: list[int], share: float) -> int:
    """The least value that this share of all values does not exceed."""
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


def _host(name: str, node: RecordedNode) -> str:
    return str(node.fields.get("nodeHostName") or name.partition(":")[0])


def _record(host: str, node: RecordedNode) -> WorkloadNode:
    resource = node.resource()
    assert resource is not None, "only nodes of a known size are taken"
    rack = str(node.fields.get("rack") or "/default-rack")
    return WorkloadNode(host, resource, rack, str(node.fields.get("label") or ""))


def _node_notes(cluster: RecordedCluster, left_out: int) -> Iterator[str]:
    """Sentences about the nodes that came and went."""
    joined = sum(node.changes[0][0] > cluster.begins_ms for node in cluster.nodes.values() if node.changes)
    ends = Counter(state for node in cluster.nodes.values() for _, state in node.changes[1:] if state in LEFT)
    if joined or ends:
        states = ", ".join(f"{count} {state}" for state, count in sorted(ends.items()))
        ended = f" ({states})" if states else ""
        yield f"During the recording {joined} nodes joined and {ends.total()} left{ended}; it has the times."
    if left_out:
        yield f"{left_out} nodes that ran for less than half of the recording are left out."


def _change_notes(cluster: RecordedCluster) -> Iterator[str]:
    """The changes of the configuration, the first ones."""
    changes = [(at_ms, "the queues") for at_ms, _ in cluster.queues[1:]]
    for at_ms, keys in cluster.settings_changed:
        if deciding := [key for key in keys if SITE_KEYS.fullmatch(key)]:
            changes.append((at_ms, ", ".join(deciding)))
    for at_ms, what in sorted(changes)[:CHANGES_SHOWN_MAX]:
        at = datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        later = duration(at_ms - cluster.begins_ms)
        yield f"Changed at {at}, {later} after the beginning: {what}. The files have the first state."
    if len(changes) > CHANGES_SHOWN_MAX:
        yield f"{len(changes) - CHANGES_SHOWN_MAX} more changes of the configuration are in the recording."
