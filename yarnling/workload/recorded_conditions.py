"""The conditions under which a recorded cluster ran: its configuration, and how long its AMs waited.

A simulation has one configuration, the first one; all changes stay in the recording with their times, and the first
ones are listed. The nodes, which may change, are read by `recorded_nodes.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import Struct

from yarn.times import duration
from yarnling.workload.documents import refusal
from yarnling.workload.recorded_cluster import RecordedCluster
from yarnling.workload.rest_scheduler import QueueSettings, as_xml, read_queues

CHANGES_SHOWN_MAX = 20
SITE_KEYS = re.compile(
    r"yarn\.scheduler\..+|yarn\.resourcemanager\.(scheduler\.(class|monitor)|monitor\.|am\.max-attempts|"
    r"nodemanagers\.heartbeat|application\.max|placement-constraints).*|yarn\.nm\.liveness-monitor\..+"
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
