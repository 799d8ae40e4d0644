"""Run seven kinds of work side by side, each in the queue that was made for it, and show what each of them got.

python examples/archetypes/run.py            a table; --json for programs; exit status 1 if something was not as meant
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from am.programs.distributed_shell.client import parse as parse_shell
from am.programs.elastic.client import parse as parse_elastic
from am.programs.gang.client import parse as parse_gang
from yarn.ids import ApplicationId, ContainerId
from yarn.queues import QueueInfo
from yarn.states import FinalApplicationStatus
from yarnling import LocalCluster

HERE = Path(__file__).resolve().parent
NODES, NODE_MB = 4, 4096
UNIT_MB = 512
# AMs of the same size as other containers: smaller ones leave gaps on nodes into which nothing fits, and preemption,
# which like Hadoop's looks at the sum of free resources, would not preempt anything for a waiting AM.
SIZES = ("-container_memory", str(UNIT_MB), "-master_memory", str(UNIT_MB))
FOR_EVER = "sleep 3600"
WAIT_S = 120.0
EXPLORERS, MEMBERS, QUERIES = 8, 10, 5


@dataclass(frozen=True)
class Outcome:
    """The purpose of an archetype, what was observed, and whether that is as intended."""

    archetype: str
    made_for: str
    seen: str
    held: bool


class Scene:
    """The cluster, and what has been observed on it so far."""

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.outcomes: list[Outcome] = []

    def note(self, archetype: str, made_for: str, seen: str, *, held: bool) -> None:
        self.outcomes.append(Outcome(archetype, made_for, seen, held))

    async def shell(self, user: str, queue: str, command: str, count: int, *more: str) -> ApplicationId:
        """A distributed shell of `count` containers."""
        options = ["-shell_command", command, "-num_containers", str(count), "-queue", queue, *SIZES]
        report = await self.cluster.client_of(user).start(parse_shell([*options, *more]))
        return report.application_id

    async def running(self, app_id: ApplicationId) -> frozenset[ContainerId]:
        """The live containers of an application without its ApplicationMaster's."""
        client = self.cluster.client
        attempt_id = (await client.report(app_id)).current_attempt_id
        found = await client.containers(attempt_id)
        return frozenset(container.container_id for container in found if container.container_id.sequence > 1)

    async def until_running(self, app_id: ApplicationId, least: int, most: int = sys.maxsize) -> frozenset[ContainerId]:
        """The application's containers, once there are between `least` and `most` of them."""

        async def so_many() -> frozenset[ContainerId] | None:
            found = await self.running(app_id)
            return found if least <= len(found) <= most else None

        found = await self.cluster.until(so_many, WAIT_S)
        assert found is not None
        return found

    async def queue(self, name: str) -> QueueInfo:
        return await self.cluster.client.queue(f"root.{name}")

    async def has_succeeded(self, app_id: ApplicationId) -> bool:
        report = await self.cluster.client.wait(app_id, timeout_s=WAIT_S)
        return report.final_status is FinalApplicationStatus.SUCCEEDED


async def explore(scene: Scene) -> None:
    """Eight tasks that need one another, then a single one: workers are added, and released when idle."""
    met, done = scene.folder / "met", scene.folder / "done"
    met.mkdir()
    script = scene.folder / "explore.sh"
    script.write_text(
        f"touch {met}/$ELASTIC_TASK\n"
        f"if test $ELASTIC_TASK -le {EXPLORERS}\n"
        f"then while test $(ls {met} | wc -l) -lt {EXPLORERS}; do sleep 0.1; done\n"
        f"else while ! test -e {done}; do sleep 0.1; done; fi\n"
    )
    plan = ["-shell_script", str(script), "-stages", f"{EXPLORERS},1", *SIZES]
    times = ["-backlog_timeout", "50", "-sustained_timeout", "50", "-idle_timeout", "300"]
    submission = parse_elastic([*plan, *times, "-queue", "exploration"])
    app_id = (await scene.cluster.client_of("eve").start(submission)).application_id
    most = await scene.until_running(app_id, EXPLORERS)
    used = (await scene.queue("exploration")).absolute_used_capacity
    await scene.until_running(app_id, 1, 1)
    done.touch()
    succeeded = await scene.has_succeeded(app_id)
    scene.note(
        "exploration",
        "grows while there are resources, and releases them",
        f"{len(most)} workers, {used:.0%} with 10% guaranteed, while it had many tasks; one for the last",
        held=succeeded and len(most) >= EXPLORERS and used > 0.10,
    )


async def learn(scene: Scene) -> tuple[ApplicationId, frozenset[ContainerId]]:
    """A gang: all of its members or none."""
    options = ["-shell_command", FOR_EVER, "-num_containers", str(MEMBERS), "-queue", "machine-learning", *SIZES]
    app_id = (await scene.cluster.client_of("mia").start(parse_gang(options))).application_id
    return app_id, await scene.until_running(app_id, MEMBERS)


async def flood(scene: Scene) -> tuple[ApplicationId, float]:
    """Batch takes what is free, far above its guarantee; returns the share that it reaches."""
    app_id = await scene.shell("night", "batch", FOR_EVER, 60)

    async def is_above() -> float | None:
        used = (await scene.queue("batch")).absolute_used_capacity
        return used if used > 0.45 else None

    used = await scene.cluster.until(is_above, WAIT_S)
    assert used is not None
    return app_id, used


async def look_at_dashboards(scene: Scene) -> None:
    """Short queries one after the other while batch uses everything; the same query in batch has to wait."""
    beside = await scene.shell("ann", "batch", "true", 2)
    seconds, all_well = [], True
    for _ in range(QUERIES):
        started = time.monotonic()
        all_well &= await scene.has_succeeded(await scene.shell("dora", "dashboards", "true", 2))
        seconds.append(time.monotonic() - started)
    waits = not await scene.running(beside) and (await scene.cluster.client.report(beside)).finish_time_ms == 0
    batch = await scene.queue("batch")
    scene.note(
        "dashboards",
        "short queries finish whatever else runs",
        f"{QUERIES} queries in {statistics.median(seconds):.1f} s each (slowest {max(seconds):.1f}), batch holding "
        f"{batch.absolute_used_capacity:.0%}; the same query in batch {'still waits' if waits else 'has finished too'}",
        held=all_well and waits and batch.absolute_used_capacity > 0.15,
    )


async def ask_ad_hoc(scene: Scene) -> None:
    """Two users who request everything."""
    both = [await scene.shell(user, "ad-hoc", FOR_EVER, 30) for user in ("ann", "bob")]
    for app_id in both:
        await scene.until_running(app_id, 1)
    used_mb = [(await scene.cluster.client.report(app_id)).usage.used.memory_mb for app_id in both]
    queue = await scene.queue("ad-hoc")
    half_mb = NODES * NODE_MB * 20 // 200
    scene.note(
        "ad-hoc",
        "no user takes everything",
        f"ann {used_mb[0]} MB, bob {used_mb[1]} MB, each requesting {30 * UNIT_MB}: limit {half_mb}, half of the "
        f"queue, exceeded by one container; together {queue.absolute_used_capacity:.0%}, at most 25%",
        held=all(mb <= half_mb + UNIT_MB for mb in used_mb) and queue.absolute_used_capacity <= 0.25,
    )


async def prefer(scene: Scene) -> None:
    """Many tasks of priority 0, then a few of priority 10: freed resources go to those first."""
    tasks = 30
    early = await scene.shell("carl", "preferred", "sleep 1", tasks)
    await scene.until_running(early, 2)
    late = await scene.shell("carl", "preferred", "sleep 1", 6, "-priority", "10")
    late_well = await scene.has_succeeded(late)
    progress = (await scene.cluster.client.report(early)).progress
    early_well = await scene.has_succeeded(early)
    scene.note(
        "preferred",
        "urgent work is served first",
        f"6 tasks of priority 10 had finished when {progress * tasks:.0f} of {tasks} earlier ones of priority 0 had",
        held=late_well and early_well and progress < 1.0,
    )


async def play(scene: Scene) -> None:
    service = await scene.shell("web", "always-on", FOR_EVER, 2)
    served = await scene.until_running(service, 2)
    await explore(scene)
    gang, members = await learn(scene)
    batch, alone = await flood(scene)
    await look_at_dashboards(scene)
    await ask_ad_hoc(scene)
    await prefer(scene)
    learning, left = await scene.queue("machine-learning"), await scene.queue("batch")
    kept = await scene.running(gang)
    scene.note(
        "machine-learning",
        "all members at once, none preempted",
        f"{len(members)} of {MEMBERS} started together; {len(kept & members)} still run, on "
        f"{learning.absolute_used_capacity:.0%} with 20% guaranteed",
        held=kept == members and learning.absolute_used_capacity > 0.20,
    )
    scene.note(
        "batch",
        "uses what is free, and is preempted",
        f"{alone:.0%} while other queues had no demand, {left.absolute_used_capacity:.0%} now; 15% guaranteed",
        held=alone > left.absolute_used_capacity > 0.10 and bool(await scene.running(batch)),
    )
    still = await scene.running(service)
    scene.note(
        "always-on",
        "keeps its containers",
        f"{len(still & served)} of {len(served)} containers still run since the start",
        held=still == served,
    )


@asynccontextmanager
async def scene_of_cluster() -> AsyncIterator[Scene]:
    with tempfile.TemporaryDirectory(prefix="archetypes-") as folder:
        async with LocalCluster(NODES, memory_mb=NODE_MB, vcores=32, conf=HERE, fast=True) as cluster:
            yield Scene(cluster, Path(folder))


async def main(*, as_json: bool) -> int:
    async with scene_of_cluster() as scene:
        await play(scene)
    if as_json:
        print(json.dumps([asdict(outcome) for outcome in scene.outcomes], indent=2))
    else:
        Console().print(table(scene.outcomes))
    return 0 if all(outcome.held for outcome in scene.outcomes) else 1


def table(outcomes: list[Outcome]) -> Table:
    shown = Table("Archetype", "Made for", "Seen", "As meant")
    for outcome in outcomes:
        shown.add_row(outcome.archetype, outcome.made_for, outcome.seen, "yes" if outcome.held else "NO")
    return shown


if __name__ == "__main__":
    sys.exit(asyncio.run(main(as_json="--json" in sys.argv[1:])))
