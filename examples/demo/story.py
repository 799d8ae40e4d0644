"""The steps of the demonstration: start a cluster, submit for three users, kill a node, verify the result."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

from examples.demo.input_text import InputText
from examples.demo.observation import Observations, Snapshot, live_containers, take_snapshot
from examples.demo.outcome import (
    all_succeeded,
    application_lines,
    check_counts,
    loss_lines,
    places_table,
    what_was_lost,
)
from examples.demo.screen import Screen
from examples.demo.usage_history import usage_chart
from examples.demo.workload import Submitted, map_reduce_status, workload
from yarn.errors import YarnException
from yarn.ids import ContainerId, NodeId
from yarn.states import NodeState
from yarnling.cluster.local_cluster import LocalCluster

CONF = Path(__file__).resolve().parent.parent.parent / "conf"
"""The configuration in the checkout: a queue tree of three departments."""
LOOK_EVERY_S = 0.2
HALF_WAY = 0.5
"""The fraction of map tasks that have finished when the node is killed."""
LIMIT_S = 180.0
"""The time limit in seconds: six times what the demonstration takes on an idle machine."""

SETTINGS = {
    # fast=True divides by 20: a node is LOST after 2 to 3 s without a heartbeat.
    "yarn.nm.liveness-monitor.expiry-interval-ms": "40000",
}


@dataclass
class Story:
    """A run. `killed` is the node that was killed, `lost` the containers that ran on it."""

    text: InputText
    screen: Screen
    nodes: int
    conf: Path
    observed: Observations = field(default_factory=Observations)
    submitted: list[Submitted] = field(default_factory=list)
    killed: NodeId | None = None
    lost: list[ContainerId] = field(default_factory=list)

    async def run(self) -> bool:
        """True if every application succeeded and the counts are right."""
        started = time.monotonic()
        async with LocalCluster(self.nodes, conf=self.conf, settings=SETTINGS, fast=True) as cluster:
            self.screen.say(f"{self.nodes} NodeManagers and their ResourceManager are up after {_since(started)}.")
            snapshot = await self._run_applications(cluster)
            is_right = self._report(cluster, snapshot)
        self.screen.say(f"All processes have ended; {_since(started)} in all.")
        return is_right

    async def _run_applications(self, cluster: LocalCluster) -> Snapshot:
        output = cluster.directory.path / "word-count"
        for job in workload(self.text, output):
            client = cluster.client_of(job.user)
            report = await client.start(job.submission)
            self.submitted.append(Submitted(job, report.application_id, client))
            self.screen.say(f"{job.user} has submitted: {job.what}, queue {report.queue}")
        try:
            async with asyncio.timeout(LIMIT_S):
                return await self._watch(cluster)
        except TimeoutError:
            raise YarnException(f"the applications have not ended within {LIMIT_S:g} s") from None

    async def _watch(self, cluster: LocalCluster) -> Snapshot:
        started = time.monotonic()
        with self.screen.showing():
            while True:
                now_s = time.monotonic() - started
                snapshot = await take_snapshot(cluster.client, self.submitted, self.observed, now_s)
                self.screen.show(snapshot, self.submitted, self.observed)
                if snapshot.all_ended:
                    return snapshot
                if self.killed is None and self._is_half_way(cluster):
                    await self._kill_one(cluster, snapshot, now_s)
                self._note_lost_node(snapshot)
                await asyncio.sleep(LOOK_EVERY_S)

    def _is_half_way(self, cluster: LocalCluster) -> bool:
        maps = map_reduce_status(self.submitted[0].application_id, cluster.directory.staging).get("maps")
        if not isinstance(maps, dict):
            return False
        return bool(maps["SUCCEEDED"] >= HALF_WAY * maps["total"])

    async def _kill_one(self, cluster: LocalCluster, snapshot: Snapshot, now_s: float) -> None:
        """Kill the node with the most containers, but not the one of the word count's ApplicationMaster."""
        living: dict[NodeId, list[ContainerId]] = {node.id: [] for node in cluster.nodes}
        for report in snapshot.reports:
            for container, node in await live_containers(cluster.client, report):
                living[node].append(container)
        victim = max(
            cluster.nodes, key=lambda node: (not self._has_word_count_am(living[node.id]), len(living[node.id]))
        )
        self.killed, self.lost = victim.id, living[victim.id]
        await cluster.kill_node(victim.place.number)
        self._mark(now_s, f"kill -9 {victim.name} ({victim.place.host}) with {len(self.lost)} containers")

    def _has_word_count_am(self, containers: list[ContainerId]) -> bool:
        counting = self.submitted[0].application_id
        return any(one.application_id == counting and one in self.observed.ams for one in containers)

    def _note_lost_node(self, snapshot: Snapshot) -> None:
        if self.killed is None or len(self.observed.usage.marks) > 1:
            return
        if any(node.node_id == self.killed and node.state is NodeState.LOST for node in snapshot.nodes):
            self._mark(snapshot.time_s, "the ResourceManager declares the node LOST")

    def _mark(self, time_s: float, text: str) -> None:
        """Note an event in the chart and print it."""
        self.observed.usage.marks[time_s] = text
        self.screen.say(f"{time_s:5.1f} s  {text}")

    def _report(self, cluster: LocalCluster, snapshot: Snapshot) -> bool:
        screen, node_ids = self.screen, [node.id for node in cluster.nodes]
        screen.say("")
        screen.print(usage_chart(self.observed.usage, screen.chart_columns))
        screen.print(places_table(self.submitted, self.observed, node_ids, self.killed))
        for line in application_lines(self.submitted, snapshot.reports):
            screen.say(line)
        if self.killed is not None:
            job = map_reduce_status(self.submitted[0].application_id, cluster.directory.staging)
            screen.say(f"\nLost with {self.killed} and run again:")
            for line in loss_lines(what_was_lost(self.submitted, self.observed, self.lost, job)):
                screen.say(f"  {line}")
        counts = check_counts(self.text, cluster.directory.path / "word-count")
        screen.say(f"\nThe word count is {counts.text}.")
        return counts.is_right and all_succeeded(snapshot.reports) and self.killed is not None


def _since(started: float) -> str:
    return f"{time.monotonic() - started:.1f} s"
