"""An unfinished scenario: what the actions know when they write its steps."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.generated.queue_tree import Queue, Shape

Json = dict[str, Any]

RECENT_APPS = 12
"""Steps refer to recently submitted applications; older ones have mostly ended."""


@dataclass(slots=True)
class App:
    """An application as the scenario assumes it to be; Hadoop may have refused it."""

    name: str
    keeps: bool = False
    ended: bool = False


@dataclass(slots=True)
class Draft:
    """`fixed`: the scheduler's keys that refreshes repeat. `nodes`: {host: its registration}. `lost`: of those.

    `keeps_containers`: applications may keep containers across attempts. Hadoop's ResourceManager exits after a restart
    without work-preserving recovery when an attempt of such an application ends.
    """

    rng: random.Random
    features: frozenset[str]
    shape: Shape
    root: Queue
    fixed: dict[str, str]
    resource_types: tuple[str, ...] = ()
    auto_parents: list[str] = field(default_factory=list)
    apps: list[App] = field(default_factory=list)
    nodes: dict[str, Json] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    steps: list[Json] = field(default_factory=list)
    keeps_containers: bool = True

    def has(self, feature: str) -> bool:
        return feature in self.features

    def do(self, op: str, **fields: object) -> None:
        self.steps.append({"op": op, **fields})

    @property
    def labels(self) -> tuple[str, ...]:
        return self.shape.labels

    @property
    def up(self) -> list[str]:
        return [host for host in self.nodes if host not in self.lost]

    def running(self) -> App | None:
        """A recent application that has not ended, if there is one."""
        recent = [app for app in self.apps[-RECENT_APPS:] if not app.ended]
        return self.rng.choice(recent) if recent else None

    def leaf(self) -> Queue:
        return self.rng.choice(self.root.leaves())
