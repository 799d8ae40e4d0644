"""A gang and an elastic application on real processes."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from am.programs.elastic import client as elastic
from am.programs.gang import client as gang
from tests.am.programs.on_cluster import DEADLINE_S, Cluster, cluster
from yarn.states import FinalApplicationStatus

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

# The memory for an AM and 15 containers of 128 MB.
SMALL = {"yarn.scheduler.minimum-allocation-mb": "128"}


@pytest_asyncio.fixture
async def one_node(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with cluster(tmp_path, nodes=1, **SMALL) as made:
        yield made


@pytest.mark.case("H3")
async def test_an_elastic_application_grows_shrinks_and_grows_again(one_node: Cluster, tmp_path: Path) -> None:
    """Eight tasks that wait for one another need eight workers; then one task keeps one, and the rest are released."""
    met, alone = tmp_path / "met", tmp_path / "alone"
    met.mkdir()
    script = tmp_path / "task.sh"
    script.write_text(
        f"touch {met}/$ELASTIC_TASK\n"
        f"if test $ELASTIC_TASK -le 8; then while test $(ls {met} | wc -l) -lt 8; do sleep 0.05; done\n"
        f"else while ! test -e {alone}; do sleep 0.05; done; fi\n"
    )
    options = ["-shell_script", str(script), "-stages", "8,1", "-container_memory", "128"]
    times = ["-backlog_timeout", "50", "-sustained_timeout", "50", "-idle_timeout", "300"]
    app_id = await one_node.submit(elastic.parse([*options, *times]))
    await one_node.local.wait_containers(app_id, 8, DEADLINE_S)
    (busy,) = await one_node.local.wait_containers(app_id, 1, DEADLINE_S, exactly=True)
    # Another worker runs the task that the lost worker had taken.
    await one_node.local.kill_container(busy.container_id)

    async def is_followed() -> bool:
        running = await one_node.local.wait_containers(app_id, 1, DEADLINE_S, exactly=True)
        return running[0].container_id != busy.container_id

    await one_node.local.until(is_followed)
    alone.touch()
    report = await one_node.end_of(app_id)
    assert report.final_status is FinalApplicationStatus.SUCCEEDED, report.diagnostics
    assert sorted(int(path.name) for path in met.iterdir()) == list(range(1, 10))
    await one_node.local.until(lambda: not (one_node.staging_root / str(app_id)).exists())


async def test_a_gang_waits_releases_and_runs_when_all_members_fit(one_node: Cluster, tmp_path: Path) -> None:
    """Two gangs of ten members share a cluster with room for fifteen: the second holds some, releases them, and tries
    again.
    """
    go = tmp_path / "go"
    waits = f"while ! test -e {shlex.quote(str(go))}; do sleep 0.05; done"
    first = await one_node.submit(gang.parse(["-shell_command", waits, "-num_containers", "10"]))
    await one_node.local.wait_containers(first, 10, DEADLINE_S)
    says = ["-shell_command", "echo $GANG_RANK of $GANG_SIZE on $GANG_HOSTS", "-num_containers", "10"]
    times = ["-gang_wait", "3000", "-gang_pause", "100", "-gang_tries", "20"]
    second = await one_node.submit(gang.parse([*says, *times]))

    async def held() -> int:
        attempt = (await one_node.client.report(second)).current_attempt_id
        return len(await one_node.client.containers(attempt))

    async def holds_some() -> bool:
        return await held() > 1

    async def holds_nothing_but_its_master() -> bool:
        return await held() == 1

    await one_node.local.until(holds_some)
    await one_node.local.until(holds_nothing_but_its_master)
    go.touch()
    for app_id in (first, second):
        report = await one_node.end_of(app_id)
        assert report.final_status is FinalApplicationStatus.SUCCEEDED, report.diagnostics
    hosts = ",".join(["127.0.0.2"] * 10)
    assert await one_node.stdouts(second) == [f"{rank} of 10 on {hosts}\n" for rank in range(10)]
