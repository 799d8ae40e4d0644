"""Killing one NodeManager, every master, or half of ten nodes at once loses no application, and no word."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from am.programs.mapreduce.client import find_inputs
from tests.cluster.applications import processes_of
from tests.cluster.conftest import QUICK
from yarn.ids import ContainerId
from yarn.states import FinalApplicationStatus
from yarnling.demo.input_text import InputText
from yarnling.demo.observation import live_containers
from yarnling.demo.outcome import judge
from yarnling.demo.story import CONF
from yarnling.demo.workload import Submitted, map_reduce_status, workload
from yarnling.local_cluster import LocalCluster
from yarnling.processes import kill

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

POLL_S = 0.05
TIMEOUT_S = 90.0


@pytest.fixture
def text() -> InputText:
    """A few hundred kilobytes: enough for some maps to be under way when others are done."""
    library = Path(asyncio.__file__).parent
    return InputText(find_inputs([str(library / "*.py"), str(library.parent / "t*.py")]), str(library))


class Run:
    """The demonstration's three applications on a cluster, to which something is done half way."""

    def __init__(self, cluster: LocalCluster, text: InputText) -> None:
        self.cluster = cluster
        self.text = text
        self.output = cluster.directory.path / "word-count"
        self.gate = cluster.directory.path / "gate"
        self.submitted: list[Submitted] = []

    async def start(self) -> None:
        for work in workload(self.text, self.output, gate=self.gate):
            client = self.cluster.client_of(work.user)
            report = await client.start(work.submission)
            self.submitted.append(Submitted(work, report.application_id, client))

    async def half_way(self) -> None:
        """Some maps are done; the other applications have containers, which wait for the gate."""
        async with asyncio.timeout(TIMEOUT_S):
            while not (self._maps_done() and await self._all_have_tasks()):  # noqa: ASYNC110  of other processes
                await asyncio.sleep(POLL_S)

    async def masters(self) -> list[ContainerId]:
        found: list[ContainerId] = []
        for one in self.submitted:
            attempts = await one.client.attempts(one.application_id)
            found += [attempt.am_container_id for attempt in attempts[-1:] if attempt.am_container_id is not None]
        return found

    async def attempt(self, one: Submitted) -> int:
        return (await one.client.report(one.application_id)).current_attempt_id.attempt

    async def check(self) -> None:
        """Open the gate: every application succeeds, and the counts are right."""
        self.gate.touch()
        for one in self.submitted:
            report = await one.client.wait(one.application_id, timeout_s=TIMEOUT_S)
            assert report.final_status is FinalApplicationStatus.SUCCEEDED, f"{one.work.user}: {report.diagnostics}"
        verdict = judge(self.text, self.output)
        assert verdict.is_right, verdict.text

    async def _all_have_tasks(self) -> bool:
        for one in self.submitted[1:]:
            report = await one.client.report(one.application_id)
            if len(await live_containers(one.client, report)) < 2:
                return False
        return True

    def _maps_done(self) -> bool:
        status = map_reduce_status(self.submitted[0].application_id, self.cluster.directory.staging)
        maps = status.get("maps")
        return isinstance(maps, dict) and maps["SUCCEEDED"] > 0


def make_cluster(nodes: int) -> LocalCluster:
    return LocalCluster(nodes, conf=CONF, settings=QUICK, fast=True)


async def test_one_node_manager_is_killed_that_has_the_word_counts_master(text: InputText) -> None:
    async with make_cluster(4) as cluster:
        run = Run(cluster, text)
        await run.start()
        await run.half_way()
        counting = await run.submitted[0].client.report(run.submitted[0].application_id)
        master = (await run.masters())[0]
        places = dict(await live_containers(cluster.client, counting))
        victim = next(node for node in cluster.nodes if node.id == places[master])
        await cluster.kill_node(victim.place.number)
        await run.check()


async def test_every_master_is_killed(text: InputText) -> None:
    async with make_cluster(4) as cluster:
        run = Run(cluster, text)
        await run.start()
        await run.half_way()
        for master in await run.masters():
            for process in processes_of(master):
                kill(process)
        await run.check()
        assert {await run.attempt(one) for one in run.submitted} == {2}


async def test_half_of_ten_nodes_are_killed_at_once(text: InputText) -> None:
    async with make_cluster(10) as cluster:
        run = Run(cluster, text)
        await run.start()
        await run.half_way()
        async with asyncio.TaskGroup() as tasks:
            for number in range(1, 11, 2):
                tasks.create_task(cluster.kill_node(number))
        await run.check()
        assert (await cluster.client.metrics()).lost == 5
