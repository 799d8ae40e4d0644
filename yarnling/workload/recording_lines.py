"""The lines of a recording of a cluster, which `yarnling record` writes and `yarnling workload import` reads.

A recording is a directory with a file for each day (UTC), JSON lines that are compressed with gzip, for example
`2026-11-27.jsonl.gz`. Each file can be read alone: it begins with everything that is known, and then has only what
changed. `at`: when the poll began, ms since 1970 by the clock of the machine that records. Times inside the records are
the ResourceManager's.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

MARK = '"what":"recording"'
"""In the first line of each file, and in no other format."""
VERSION = 1
SUFFIX = ".jsonl.gz"


class SeenLine(Struct, frozen=True, tag_field="what", omit_defaults=True):
    """A line of a recording."""

    at: int


class RecordingBegan(SeenLine, frozen=True, tag="recording"):
    """The recorder was started, or began a new file. What is not said after it is unknown."""

    version: int = 0
    every_ms: int = 0


class ManagerSeen(SeenLine, frozen=True, tag="rm"):
    """The ResourceManager that answers has been started at `started_ms`."""

    started_ms: int = 0
    release: str = ""


class MetricsSeen(SeenLine, frozen=True, tag="metrics"):
    """Fields of GET /ws/v1/cluster/metrics that changed. Each poll has this line, also if none did."""

    values: dict[str, int] = {}


class AppsSeen(SeenLine, frozen=True, tag="apps"):
    """{application id: its fields that changed}, under the names of GET /ws/v1/cluster/apps. `pendingMB`: the
    memory that it still waits for, from its `resourceInfo`.
    """

    apps: dict[str, dict[str, Any]] = {}
    gone: list[str] = []


class NodesSeen(SeenLine, frozen=True, tag="nodes"):
    """{node id: its fields that changed}: state, host, rack, label, amounts ({resource type: amount})."""

    nodes: dict[str, dict[str, Any]] = {}
    gone: list[str] = []


class QueuesSeen(SeenLine, frozen=True, tag="queues"):
    """{queue path: [used MB, used vcores, active applications, pending applications]} of queues that changed."""

    queues: dict[str, list[int]] = {}


class SchedulerSeen(SeenLine, frozen=True, tag="scheduler"):
    """The answer to GET /ws/v1/cluster/scheduler, when the configuration in it had changed."""

    answer: msgspec.Raw = msgspec.Raw(b"null")


class ConfSeen(SeenLine, frozen=True, tag="conf"):
    """Properties of GET /conf that changed, without those from Hadoop's defaults and those that may be secrets."""

    properties: dict[str, str] = {}
    removed: list[str] = []


class ContainersSeen(SeenLine, frozen=True, tag="containers"):
    """The containers of a running application: [number in its attempt, MB, vcores, priority, allocated at]."""

    app: str = ""
    attempt: int = 0
    containers: list[tuple[int, int, int, int, int]] = []


class PollFailed(SeenLine, frozen=True, tag="failed"):
    """A poll, or one answer of it, could not be had."""

    problem: str = ""


class FieldsMissing(SeenLine, frozen=True, tag="missing"):
    """Fields that this release does not report, each written once."""

    fields: list[str] = []


RecordingLine: TypeAlias = (
    RecordingBegan
    | ManagerSeen
    | MetricsSeen
    | AppsSeen
    | NodesSeen
    | QueuesSeen
    | SchedulerSeen
    | ConfSeen
    | ContainersSeen
    | PollFailed
    | FieldsMissing
)
