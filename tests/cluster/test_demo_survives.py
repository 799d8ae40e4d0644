"""kill -9 of any NodeManager, any ApplicationMaster, or half of ten nodes loses no application and no counted word.

The demonstration's three applications run at the same time, on less text; what is killed, and when, is drawn from a
seed. A gate holds them at that moment until the kill is done. One node and one AM are killed in every run of the tests;
for the others, and twenty runs of each:

    scripts/test tests/cluster/test_demo_survives.py -m "soak or not soak" --runs 20
"""

from __future__ import annotations

import asyncio
import random
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest
from msgspec import structs

from am.programs.mapreduce.client import MapReduceSubmission, find_inputs
from examples.demo.input_text import InputText
from examples.demo.observation import live_containers
from examples.demo.outcome import check_counts
from examples.demo.story import CONF
from examples.demo.workload import DIGESTS, SERVICES, Submitted, UserJob, map_reduce_status, workload
from tests.cluster.applications import processes_of
from tests.cluster.conftest import QUICK, names
from yarn.ids import ContainerId, NodeId
from yarn.states import FINAL_APPLICATION_STATES, FinalApplicationStatus, NodeState
from yarnling.cluster.conditions import until
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster
from yarnling.cluster.processes import kill

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

SPLIT_BYTES = 96 << 10
"""Makes a dozen map tasks, which can all run at the same time, so that those held at the gate block no other."""
MOMENTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Fractions of the map tasks that have finished when something is killed, from none to all."""
POLL_S = 0.02
TIMEOUT_S = 90.0


@pytest.fixture(scope="module")
def text() -> InputText:
    """A megabyte of Python's own text."""
    library = Path(asyncio.__file__).parent
    return InputText(find_inputs([str(library / "*.py"), str(library.parent / "t*.py")]), str(library))


class Demonstration:
    """The demonstration's three applications on a cluster, held after `share` of the word count's map tasks."""

    def __init__(self, cluster: LocalCluster, text: InputText, share: float) -> None:
        self.cluster = cluster
        self.text = text
        self.share = share
        self.output = cluster.directory.path / "word-count"
        self.gate = cluster.directory.path / "gate"
        self.submitted: list[Submitted] = []

    async def start(self) -> None:
        """Submit all, and wait until they have reached the gate."""
        counting, *others = workload(self.text, self.output, gate=self.gate, split_bytes=SPLIT_BYTES)
        for job in (self._gated(counting), *others):
            client = self.cluster.client_of(job.user)
            report = await client.start(job.submission)
            self.submitted.append(Submitted(job, report.application_id, client))
        await until(self._is_at_the_gate, TIMEOUT_S)

    def _gated(self, counting: UserJob) -> UserJob:
        """Of every four map tasks the first `4 * share` continue, the others wait at the gate."""
        assert isinstance(counting.submission, MapReduceSubmission)
        command = counting.submission.map_command
        goes_on = f"[ $((mapreduce_task_partition % 4)) -lt {round(4 * self.share)} ]"
        waits = f"until test -e {shlex.quote(str(self.gate))}; do sleep {POLL_S}; done"
        submission = structs.replace(counting.submission, map_command=f"{goes_on} || {waits}; {command}")
        return structs.replace(counting, submission=submission)

    async def _is_at_the_gate(self) -> bool:
        """True if this share of the map tasks has finished and the other applications have all their containers."""
        counting = self.submitted[0]
        maps = map_reduce_status(counting.application_id, self.cluster.directory.staging).get("maps")
        if not isinstance(maps, dict) or maps["SUCCEEDED"] < self.share * maps["total"]:
            return False
        for one, wanted in zip(self.submitted[1:], (DIGESTS, SERVICES), strict=True):
            report = await one.client.report(one.application_id)
            if len(await live_containers(one.client, report)) < 1 + wanted:
                return False
        return True

    async def living_ams(self) -> dict[ContainerId, Submitted]:
        """The running ApplicationMasters, in the order of submission."""
        found: dict[ContainerId, Submitted] = {}
        for one in self.submitted:
            if (await one.client.report(one.application_id)).state in FINAL_APPLICATION_STATES:
                continue
            *_, last = await one.client.attempts(one.application_id)
            if last.am_container_id is not None and processes_of(last.am_container_id):
                found[last.am_container_id] = one
        return found

    async def kill_ams(self, ams: dict[ContainerId, Submitted]) -> None:
        """Kill all processes of each, and wait for the next attempts."""
        processes = [process for am in ams for process in processes_of(am)]
        for process in processes:
            kill(process)
        for am, one in ams.items():
            await until_attempt(one, am.attempt_id.attempt + 1)

    async def kill_nodes(self, numbers: list[int], *, containers: bool) -> None:
        """Kill the nodes at the same time, and wait until the ResourceManager has declared them LOST."""
        async with asyncio.TaskGroup() as tasks:
            for number in numbers:
                tasks.create_task(self.cluster.kill_node(number, containers=containers))
        killed = {self.cluster.node(number).id for number in numbers}

        async def are_lost() -> bool:
            return {node.node_id for node in await self.cluster.client.nodes(frozenset({NodeState.LOST}))} == killed

        await until(are_lost, TIMEOUT_S)

    async def check(self) -> None:
        """Open the gate: every application succeeds, the counts are right, and the remaining nodes are empty."""
        self.gate.touch()
        for one in self.submitted:
            report = await one.client.wait(one.application_id, timeout_s=TIMEOUT_S)
            assert report.final_status is FinalApplicationStatus.SUCCEEDED, f"{one.job.user}: {report.diagnostics}"
        verdict = check_counts(self.text, self.output)
        assert verdict.is_right, verdict.text
        assert {path.name for path in self.output.iterdir()} == {"_SUCCESS", "part-r-00000", "part-r-00001"}
        await until(self._is_idle, TIMEOUT_S)
        await until(self._is_clean, TIMEOUT_S)

    async def _is_idle(self) -> bool:
        """True if the ResourceManager has no container on any node."""
        metrics, nodes = await self.cluster.client.metrics(), await self.cluster.client.nodes()
        return metrics.lost + metrics.active == len(self.cluster.nodes) and not any(
            node.containers for node in nodes if node.state is NodeState.RUNNING
        )

    async def _is_clean(self) -> bool:
        """True if the living nodes have no child process and have deleted the files of applications."""
        living = [node for node in self.cluster.nodes if node.alive]
        work = [path for node in living for path in node.place.local_dir.glob("usercache/*/appcache/*")]
        private = [path for node in living for path in node.place.local_dir.glob("nmPrivate/*")]
        return not work and not private and not any(psutil.Process(node.daemon.pid).children() for node in living)


@asynccontextmanager
async def demonstration(nodes: int, share: float, text: InputText, directory: Path) -> AsyncIterator[Demonstration]:
    """A running demonstration; checks at the end that no process is left."""
    async with LocalCluster(
        nodes, conf=CONF, settings=QUICK, fast=True, options=ClusterOptions(directory=directory)
    ) as cluster:
        run = Demonstration(cluster, text, share)
        await run.start()
        yield run
    assert not names(directory)


async def test_any_one_node_manager_is_killed(seed: int, text: InputText, tmp_path: Path) -> None:
    """The node is killed with its containers, as if the machine had failed, or without them; then they keep running as
    orphans.
    """
    draw = random.Random(seed)
    async with demonstration(5, draw.choice(MOMENTS), text, tmp_path / "cluster") as run:
        await run.kill_nodes([draw.randint(1, 5)], containers=draw.random() < 0.5)
        await run.check()


@pytest.mark.soak
async def test_the_node_of_the_word_counts_am_is_killed(seed: int, text: InputText, tmp_path: Path) -> None:
    """The ApplicationMaster is killed with its node."""
    draw = random.Random(seed)
    async with demonstration(5, draw.choice(MOMENTS[:-1]), text, tmp_path / "cluster") as run:
        counting = run.submitted[0]
        report = await counting.client.report(counting.application_id)
        place = dict(await live_containers(counting.client, report))[next(iter(await run.living_ams()))]
        await run.kill_nodes([number_of(run.cluster, place)], containers=True)
        await run.check()
        report = await counting.client.report(counting.application_id)
        assert report.current_attempt_id.attempt == 2


async def test_any_am_is_killed(seed: int, text: InputText, tmp_path: Path) -> None:
    draw = random.Random(seed)
    async with demonstration(5, draw.choice(MOMENTS[:-1]), text, tmp_path / "cluster") as run:
        ams = await run.living_ams()
        chosen = draw.choice(list(ams))
        await run.kill_ams({chosen: ams[chosen]})
        await run.check()


@pytest.mark.soak
async def test_every_am_is_killed(seed: int, text: InputText, tmp_path: Path) -> None:
    draw = random.Random(seed)
    async with demonstration(5, draw.choice(MOMENTS[:-1]), text, tmp_path / "cluster") as run:
        ams = await run.living_ams()
        await run.kill_ams(ams)
        await run.check()
        assert len(ams) == 3


@pytest.mark.soak
async def test_half_of_ten_nodes_are_killed_at_once(seed: int, text: InputText, tmp_path: Path) -> None:
    draw = random.Random(seed)
    async with demonstration(10, draw.choice(MOMENTS), text, tmp_path / "cluster") as run:
        await run.kill_nodes(draw.sample(range(1, 11), 5), containers=draw.random() < 0.5)
        await run.check()


async def until_attempt(one: Submitted, attempt: int) -> None:
    async def is_there() -> bool:
        report = await one.client.report(one.application_id)
        return report.current_attempt_id is not None and report.current_attempt_id.attempt >= attempt

    await until(is_there, TIMEOUT_S)


def number_of(cluster: LocalCluster, node_id: NodeId) -> int:
    return next(node.place.number for node in cluster.nodes if node.id == node_id)
