"""The situations that are measured: those of benchmarks/core.py and benchmarks/reject.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from benchmarks import core, reject
from benchmarks.core_driver import queues
from yarn.resource import Resource

HEARTBEATS = 4_000
"""Heartbeats of a pass that places nothing."""


class Case(NamedTuple):
    """A cluster, and what is measured: heartbeats until all containers are placed, or `heartbeats` that place nothing.

    `containers`: what each application requests. `stirred`: an application changes its requests before each heartbeat.
    """

    nodes: int
    node: Resource
    queues: int
    applications: int
    containers: int
    configuration: Mapping[str, str]
    heartbeats: int = 0
    stirred: bool = False

    @property
    def work(self) -> int:
        """The number of containers or heartbeats of a pass."""
        return self.heartbeats or self.applications * self.containers


def _placing(shape: core.Shape) -> Case:
    each = core.CONTAINERS // shape.applications
    return Case(shape.nodes, core.NODE, shape.queues, shape.applications, each, queues(shape.queues))


def _rejecting(count: int, *, stirred: bool) -> Case:
    configuration = reject.limited_queues(count)
    return Case(
        reject.NODES,
        reject.NODE,
        count,
        reject.APPLICATIONS,
        reject.REQUESTED,
        configuration,
        heartbeats=HEARTBEATS,
        stirred=stirred,
    )


CASES = {name: _placing(shape) for name, shape in core.SHAPES.items()} | {
    reject.figure_name(count, stirred=stirred): _rejecting(count, stirred=stirred)
    for count in reject.QUEUES
    for stirred in (False, True)
}
"""{figure of the other benchmark: case}."""
