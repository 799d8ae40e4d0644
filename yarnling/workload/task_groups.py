"""Gathers single tasks into groups of equal requests, in the order in which each kind of request first appears."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from yarn.resource import Resource
from yarnling.workload.model import TaskGroup

MAP_PRIORITY = 20
REDUCE_PRIORITY = 10
"""The priorities of the requests of SLS's MapReduce AM, and of Hadoop's."""


class TraceTask(Struct, frozen=True):
    """A task of a trace, which stands for `count` equal containers."""

    duration_ms: int
    resource: Resource
    priority: int = MAP_PRIORITY
    hosts: tuple[str, ...] = ()
    delay_ms: int = 0
    name: str = ""
    count: int = 1

    def with_priority(self, priority: int) -> TraceTask:
        """A copy of this task, requested with another priority."""
        return replace(self, priority=priority)


def grouped(tasks: Iterable[TraceTask], after: int | None = None) -> list[TaskGroup]:
    """Group the tasks that differ only in their duration."""
    durations: dict[tuple[object, ...], list[int]] = {}
    first: dict[tuple[object, ...], TraceTask] = {}
    for task in tasks:
        key = (task.resource, task.priority, task.hosts, task.delay_ms, task.name)
        first.setdefault(key, task)
        durations.setdefault(key, []).extend([task.duration_ms] * task.count)
    return [
        TaskGroup(task.resource, tuple(durations[key]), task.priority, after, task.hosts, "", task.delay_ms, task.name)
        for key, task in first.items()
    ]


def staged(*stages: Sequence[TraceTask]) -> list[TaskGroup]:
    """The groups of stages of which each waits for the one before it. Empty stages are left out."""
    groups: list[TaskGroup] = []
    for tasks in stages:
        groups += grouped(tasks, len(groups) - 1 if groups else None)
    return groups
