"""A core with 500 queues, 200 nodes and long names, in which 40 queues are used and some wait, and ten minutes of its
history.
"""

from __future__ import annotations

from rm.core.events import RefreshQueues
from rm.core.history.cluster_history import ClusterHistory
from rm.scheduler.model.health import SchedulerHealth
from tests.rm.builders import RM, START_MS, done, resource_request
from yarn.configuration import Configuration
from yarn.ids import ApplicationId, ContainerId
from yarn.settings.yarnling import CHECK_INVARIANTS

DEPARTMENTS, TEAMS, NODES = 20, 24, 200
"""Queues: the root, 20 parents and 479 leaves: one of the parents has one team less."""
STEP_MS = 30_000
STEPS = 20
_AREAS = ("analytics-platform", "recommendations", "data-ingestion", "fraud-detection")
BUSY_LEAVES = 40


def department(number: int) -> str:
    """A name that differs from others in its middle or at its end."""
    return f"{_AREAS[number % len(_AREAS)]}-department-{number:02d}-europe-and-middle-east"


def team(number: int) -> str:
    return f"team-responsible-for-nightly-batch-and-interactive-workloads-{number:02d}"


def leaf(number: int) -> str:
    """The path of the busy leaf of this number."""
    return f"root.{department(number % DEPARTMENTS)}.{team(number // DEPARTMENTS)}"


def host(number: int) -> str:
    return f"worker-{number:03d}.rack-{number // 40}.datacenter-east-1.example.internal"


def settings(teams_each: int = TEAMS) -> dict[str, str]:
    """The queues' configuration. With one team each, nodes are registered quickly."""
    prefix = "yarn.scheduler.capacity."
    names = [department(number) for number in range(DEPARTMENTS)]
    values = {f"{prefix}root.queues": ",".join(names), CHECK_INVARIANTS.key: "false"}
    for number, name in enumerate(names):
        teams = [team(index) for index in range(teams_each - (teams_each == TEAMS and number == 0))]
        values[f"{prefix}root.{name}.capacity"] = str(100 / DEPARTMENTS)
        values[f"{prefix}root.{name}.queues"] = ",".join(teams)
        for each in teams:
            path = f"{prefix}root.{name}.{each}"
            values[f"{path}.capacity"] = str(100 / len(teams))
            values[f"{path}.user-limit-factor"] = "20"
            values[f"{path}.maximum-capacity"] = "60"
    return values


class LargeCluster:
    """The core of such a cluster with its history; `apps`: one application for each busy leaf."""

    def __init__(self) -> None:
        self.rm = RM(settings(1), strict=False)
        context = self.rm.core.scheduler.context
        context.health = SchedulerHealth(context.none)
        self.history = ClusterHistory(self.rm.core.context)
        for number in range(NODES):
            self.rm.node(host(number), 16_384, 16)
        self.rm.send(RefreshQueues(self.rm.call(), Configuration.of(settings())))
        self.apps: list[ApplicationId] = []
        for number in range(BUSY_LEAVES):
            app = self.rm.submit(
                "a-user-of-a-long-name" if number % 3 else "ann",
                leaf(number),
                name=f"nightly aggregation of events {number}",
            )
            self.rm.run_am(app, host(number))
            self.apps.append(app)
        for step in range(STEPS):
            self._step(step)
        self.rm.beat(host(77), healthy=False)
        self.history.sample(self.rm.now_ms)
        list(self.history.explain_waiting(self.rm.now_ms))

    def _step(self, step: int) -> None:
        """Play a step of the history: requests that grow and ebb, heartbeats of some nodes, containers that end."""
        rm = self.rm
        rm.now_ms = START_MS + (step + 1) * STEP_MS
        if step % 2 == 0:
            for number, app in enumerate(self.apps):
                wave = (step // 2 + number) % 6
                rm.allocate(app, [resource_request(40 * wave if number < 12 else 2 * wave, 5120)])
        for number in range(step % 4, NODES, 4):
            name = host(number)
            nm = rm.nodes[name]
            running = [one for one in nm.running if not self._is_am(one)]
            for _ in range(number % 5):  # some nodes are filled sooner than others
                rm.beat(name)
            rm.beat(name, [done(one) for one in running[: 1 + (number % 3)]] if step % 2 == number % 2 else [])
        for app in self.apps:
            rm.run(*rm.allocate(app).allocated)
        self.history.sample(rm.now_ms)
        list(self.history.explain_waiting(rm.now_ms))

    def _is_am(self, container_id: ContainerId) -> bool:
        return container_id.number == 1
