"""Random workloads for `run_what_if`: queues of two levels, labels, preemption, large and small requests, groups that
come after others, tasks of 0 ms to 20 s, and AMs that stay.

Every third workload puts a queue under pressure, so that preemption takes containers back (PREEMPTING); every fifth is
scheduled asynchronously (ASYNCHRONOUS); in every fourth, nodes leave, are drained and are lost (CHANGING).
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from msgspec import Struct

from tests.yarnling.simulation.random_clusters import (
    LABEL,
    LABELS,
    MOVED_RESERVATIONS,
    NODE,
    PREEMPTION,
    SETTINGS,
    SIZES_MB,
    random_features,
)
from yarn.resource import Resource
from yarnling.workload.distribution import Lognormal, Uniform
from yarnling.workload.model import NodeChange, NodeEvent, TaskGroup, Workload, WorkloadApplication, WorkloadNode

UNTIL_MS = 70_000
SEEDS = range(1, 61)
PREEMPTING = tuple(seed for seed in SEEDS if seed % 3 == 0 and seed not in (6, 24, 36))
"""The settings of the other three let nothing be preempted."""
ASYNCHRONOUS = tuple(seed for seed in SEEDS if seed % 5 == 1)
CHANGING = tuple(seed for seed in SEEDS if seed % 4 == 2)
ASYNCHRONOUS_KEY = "yarn.scheduler.capacity.schedule-asynchronously.enable"
_CAPACITY = "yarn.scheduler.capacity."


class RandomWorkload(Struct, frozen=True):
    """The workload of a seed, with the settings of the cluster that runs it and its nodes."""

    seed: int
    settings: dict[str, str]
    workload: Workload
    nodes: tuple[WorkloadNode, ...]
    node_events: tuple[NodeEvent, ...] = ()


def random_workload(seed: int) -> RandomWorkload:
    """Check that equal seeds make equal workloads."""
    draw = random.Random(f"workload/{seed}")
    is_pressed, is_changing = seed % 3 == 0, seed % 4 == 2
    count, has_labels = draw.randint(5 if is_changing else 2, 12), draw.random() < 0.5
    settings = dict(SETTINGS)
    settings |= LABELS if has_labels else {}
    settings |= random_features(seed) if draw.random() < 0.5 else {}
    settings |= PREEMPTION if is_pressed or draw.random() < 0.4 else {}
    settings |= MOVED_RESERVATIONS if draw.random() < 0.2 else {}
    settings |= {f"{_CAPACITY}node-locality-delay": "3"} if draw.random() < 0.3 else {}
    settings |= {f"{_CAPACITY}per-node-heartbeat.maximum-container-assignments": "2"} if draw.random() < 0.2 else {}
    settings[ASYNCHRONOUS_KEY] = "true" if seed % 5 == 1 else "false"
    settings["yarn.resourcemanager.recovery.enabled"] = "false"
    settings.pop(f"{_CAPACITY}root.b.b2.state", None)
    applications = [*_applications(draw, count, has_labels=has_labels)]
    applications += _pressing(draw, count) if is_pressed else ()
    applications.sort(key=lambda one: one.submit_ms)
    nodes = _nodes(count, has_labels=has_labels)
    events = tuple(_node_events(draw, count)) if is_changing else ()
    return RandomWorkload(seed, settings, Workload(tuple(applications)), nodes, events)


def _nodes(count: int, *, has_labels: bool) -> tuple[WorkloadNode, ...]:
    """The first half of the nodes has the label."""
    return tuple(
        WorkloadNode(
            _host(number), NODE, f"/rack-{number % 2 + 1}", LABEL if has_labels and number <= count // 2 else ""
        )
        for number in range(1, count + 1)
    )


def _node_events(draw: random.Random, nodes: int) -> Iterator[NodeEvent]:
    """Five events: a node joins, leaves, is drained, is lost, and is lost and back before that is noticed.

    About half of those that go come back later.
    """
    changing = draw.sample(range(1, nodes + 1), len(NodeChange) + 1)
    for number, change in zip(changing, NodeChange, strict=False):
        at_ms = draw.randint(1_000, 35_000)
        yield NodeEvent(at_ms, _host(number), change, draw.choice((None, 5, 20)))
        if change is not NodeChange.JOIN and draw.random() < 0.5:
            yield NodeEvent(at_ms + draw.randint(20_000, 25_000), _host(number), NodeChange.JOIN)
    at_ms = draw.randint(1_000, 35_000)
    yield NodeEvent(at_ms, _host(changing[-1]), NodeChange.LOST)
    yield NodeEvent(at_ms + draw.randint(1_000, 5_000), _host(changing[-1]), NodeChange.JOIN)


def _host(number: int) -> str:
    return f"n{number:05}"


def _applications(draw: random.Random, nodes: int, *, has_labels: bool) -> Iterator[WorkloadApplication]:
    for number in range(draw.randint(3, 9)):
        groups = tuple(_group(draw, index, nodes, has_labels=has_labels) for index in range(draw.randint(1, 3)))
        yield WorkloadApplication(
            f"app-{number}",
            draw.randint(0, 35_000),
            draw.choice(("ann", "bob", "cy")),
            draw.choice(("a", "b1", "b2")),
            groups,
            am_resource=Resource(256, 1),
            am_lasts_ms=draw.choice((0, 0, 30_000)),
            am_start_ms=Uniform(100, 2500) if number % 3 else 200,
            task_start_ms=Lognormal.of_percentiles(400, 1500) if number % 2 else 0,
        )


def _group(draw: random.Random, index: int, nodes: int, *, has_labels: bool) -> TaskGroup:
    label = LABEL if has_labels and draw.random() < 0.3 else ""
    hosts = () if label or draw.random() < 0.6 else (_host(draw.randint(1, nodes)),)
    lengths_ms = (0, 1, 500, 1000, 3000, draw.randint(1, 20_000), 20_000)
    return TaskGroup(
        Resource(draw.choice(SIZES_MB), draw.choice((1, 1, 2))),
        tuple(draw.choice(lengths_ms) for _ in range(draw.choice((1, 3, 8, 15, 30)))),
        priority=draw.randint(0, 2) + (10 if label else 20),
        label=label,
        hosts=hosts,
        after=index - 1 if index and draw.random() < 0.4 else None,
        delay_ms=draw.choice((0, 0, 2500)),
    )


def _pressing(draw: random.Random, nodes: int) -> Iterator[WorkloadApplication]:
    """An application that fills the cluster from one queue, and one that then claims what is guaranteed to another."""
    filling, claiming = draw.choice((("a", "b1"), ("b1", "a")))
    for name, submit_ms, queue in (("fills", 0, filling), ("claims", draw.randint(8_000, 15_000), claiming)):
        lengths_ms = (50_000,) * (4 * nodes)
        yield WorkloadApplication(
            name, submit_ms, "dan", queue, (TaskGroup(Resource(1024, 1), lengths_ms),), am_resource=Resource(256, 1)
        )
