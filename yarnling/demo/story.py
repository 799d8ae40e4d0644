"""The demonstration's course: a cluster, three users, one kill -9, a verdict."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

from yarn.errors import YarnException
from yarn.ids import ContainerId, NodeId
from yarn.states import NodeState
from yarnling.cluster.local_cluster import LocalCluster
from yarnling.demo.input_text import InputText
from yarnling.demo.observation import Memory, Sight, live_containers, look
from yarnling.demo.outcome import (
    all_succeeded,
    application_lines,
    judge,
    loss_lines,
    places_table,
    what_was_lost,
)
from yarnling.demo.screen import Screen
from yarnling.demo.usage_history import usage_chart
from yarnling.demo.workload import Submitted, map_reduce_status, workload

CONF = Path(__file__).resolve().parent.parent.parent / "conf"
"""The queue tree of three departments; it belongs to the checkout."""
LOOK_EVERY_S = 0.2
HALF_WAY = 0.5
"""The share of the word count's maps that are done when the node dies."""
LIMIT_S = 180.0
"""It takes some thirty seconds; a machine with other work may take a few times as long."""

SETTINGS = {
    # With the time factor of 1/20 a node is given up after 2 to 3 s without a heartbeat.
    "yarn.nm.liveness-monitor.expiry-interval-ms": "40000",
}


@dataclass
class Story:
    """One run. `killed` and what it took are set half way."""

    text: InputText
    screen: Screen
    nodes: int
    conf: Path
    memory: Memory = field(default_factory=Memory)
    submitted: list[Submitted] = field(default_factory=list)
    killed: NodeId | None = None
    lost: list[ContainerId] = field(default_factory=list)

    async def tell(self) -> bool:
        """Run it; True if every application succeeded and the counts are right."""
        started = time.monotonic()
        async with LocalCluster(self.nodes, conf=self.conf, settings=SETTINGS, fast=True) as cluster:
            self.screen.say(f"{self.nodes} NodeManagers and their ResourceManager are up after {_since(started)}.")
            sight = await self._run(cluster)
            is_right = self._report(cluster, sight)
        self.screen.say(f"All processes have ended; {_since(started)} in all.")
        return is_right

    async def _run(self, cluster: LocalCluster) -> Sight:
        output = cluster.directory.path / "word-count"
        for work in workload(self.text, output):
            client = cluster.client_of(work.user)
            report = await client.start(work.submission)
            self.submitted.append(Submitted(work, report.application_id, client))
            self.screen.say(f"{work.user} has submitted: {work.what}, queue {report.queue}")
        try:
            async with asyncio.timeout(LIMIT_S):
                return await self._watch(cluster)
        except TimeoutError:
            raise YarnException(f"the applications have not ended within {LIMIT_S:g} s") from None

    async def _watch(self, cluster: LocalCluster) -> Sight:
        started = time.monotonic()
        with self.screen.showing():
            while True:
                now_s = time.monotonic() - started
                sight = await look(cluster.client, self.submitted, self.memory, now_s)
                self.screen.show(sight, self.submitted, self.memory)
                if sight.all_ended:
                    return sight
                if self.killed is None and self._is_half_way(cluster):
                    await self._kill_one(cluster, sight, now_s)
                self._note_lost_node(sight)
                await asyncio.sleep(LOOK_EVERY_S)

    def _is_half_way(self, cluster: LocalCluster) -> bool:
        maps = map_reduce_status(self.submitted[0].application_id, cluster.directory.staging).get("maps")
        if not isinstance(maps, dict):
            return False
        return bool(maps["SUCCEEDED"] >= HALF_WAY * maps["total"])

    async def _kill_one(self, cluster: LocalCluster, sight: Sight, now_s: float) -> None:
        """SIGKILL to the node with the most containers that has not the word count's master, and to them."""
        living: dict[NodeId, list[ContainerId]] = {node.id: [] for node in cluster.nodes}
        for report in sight.reports:
            for container, node in await live_containers(cluster.client, report):
                living[node].append(container)
        victim = max(cluster.nodes, key=lambda node: (not self._has_master(living[node.id]), len(living[node.id])))
        self.killed, self.lost = victim.id, living[victim.id]
        await cluster.kill_node(victim.place.number)
        self.memory.usage.marks[now_s] = f"kill -9 {victim.name} ({victim.place.host}) with {len(self.lost)} containers"
        self.screen.say(f"{now_s:5.1f} s  {self.memory.usage.marks[now_s]}")

    def _has_master(self, containers: list[ContainerId]) -> bool:
        counting = self.submitted[0].application_id
        return any(one.application_id == counting and one in self.memory.masters for one in containers)

    def _note_lost_node(self, sight: Sight) -> None:
        if self.killed is None or len(self.memory.usage.marks) > 1:
            return
        if any(node.node_id == self.killed and node.state is NodeState.LOST for node in sight.nodes):
            self.memory.usage.marks[sight.time_s] = "the ResourceManager gives the node up: LOST"
            self.screen.say(f"{sight.time_s:5.1f} s  {self.memory.usage.marks[sight.time_s]}")

    def _report(self, cluster: LocalCluster, sight: Sight) -> bool:
        screen, node_ids = self.screen, [node.id for node in cluster.nodes]
        screen.say("")
        screen.print(usage_chart(self.memory.usage, screen.chart_columns))
        screen.print(places_table(self.submitted, self.memory, node_ids, self.killed))
        for line in application_lines(self.submitted, sight.reports):
            screen.say(line)
        if self.killed is not None:
            job = map_reduce_status(self.submitted[0].application_id, cluster.directory.staging)
            screen.say(f"\nLost with {self.killed}, and done again:")
            for line in loss_lines(what_was_lost(self.submitted, self.memory, self.lost, job)):
                screen.say(f"  {line}")
        verdict = judge(self.text, cluster.directory.path / "word-count")
        screen.say(f"\nThe word count is {verdict.text}.")
        return verdict.is_right and all_succeeded(sight.reports) and self.killed is not None


def _since(started: float) -> str:
    return f"{time.monotonic() - started:.1f} s"
