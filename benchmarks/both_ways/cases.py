"""The work that is run both ways: chaos plans without faults, and a workload of a minute.

Plans run with real containers, the workload with emulated ones; both with the fast timers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct
from msgspec.structs import replace

from am.client.submission import ApplicationOptions
from am.programs.distributed_shell.client import DistributedShell
from am.programs.distributed_shell.core import Width
from benchmarks.both_ways.observed import Observed, steps_of_logs, steps_of_trace
from yarn.errors import YarnException
from yarn.resource import Resource
from yarn.settings import scaled
from yarn.settings.pace import FAST_TIME_FACTOR
from yarn.settings.scheduler import MINIMUM_ALLOCATION_MB, PREFIX
from yarn.settings.yarnling import EVENT_LOG
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster
from yarnling.faults.plan import ClusterPlan, Plan, WorkPlan, WorkProgram
from yarnling.faults.runner import run_plan
from yarnling.simulation.runner import Options, simulate
from yarnling.whatif.run import RunOptions, run_what_if, what_if_configuration
from yarnling.workload.model import RequestStyle, TaskGroup, Workload, WorkloadApplication, WorkloadNode

SIZE = Resource(128, 1)
SETTINGS = {
    MINIMUM_ALLOCATION_MB.key: "128",
    f"{PREFIX}maximum-am-resource-percent": "0.5",
    f"{PREFIX}root.queues": "etl,adhoc",
    f"{PREFIX}root.etl.capacity": "60",
    f"{PREFIX}root.adhoc.capacity": "40",
    f"{PREFIX}root.etl.user-limit-factor": "2",
    f"{PREFIX}root.adhoc.user-limit-factor": "3",
}
END_S = 300


class Case(Struct, frozen=True):
    """`simulated(seed)` and `processes(number)` run it once."""

    name: str
    about: str
    simulated: Callable[[int], Observed]
    processes: Callable[[int], Observed]


def plan_case(name: str, about: str, plan: Plan) -> Case:
    """A plan, as `yarnling simulate` and `yarnling chaos` run it."""

    def simulated(seed: int) -> Observed:
        lines: list[str] = []
        outcome = simulate(plan, seed, Options(encode=False, traced=True, line=lines.append))
        _check(name, outcome.judgement.verdict, outcome.judgement.reasons)
        return Observed(steps_of_trace(lines))

    def processes(number: int) -> Observed:
        with TemporaryDirectory(prefix="yarnling-both-ways-") as directory:
            outcome = asyncio.run(run_plan(plan, number, keep=Path(directory) / "run"))
            _check(name, outcome.judgement.verdict, outcome.judgement.reasons)
            return Observed(steps_of_logs(Path(directory) / "run" / "events"))

    return Case(name, about, simulated, processes)


def _check(name: str, verdict: int, reasons: object) -> None:
    if verdict:
        raise YarnException(f"{name} did not pass, so its times say nothing: {reasons}")


def workload_case(name: str, about: str, applications: tuple[WorkloadApplication, ...], nodes: int) -> Case:
    """A workload; each application has one group of equal tasks, so that the distributed shell can run it."""
    machines = tuple(WorkloadNode(f"nm-{number}", Resource(2048, 16), "/r0") for number in range(1, nodes + 1))

    def simulated(seed: int) -> Observed:
        lines: list[str] = []
        conf = scaled(what_if_configuration(None, SETTINGS).conf, FAST_TIME_FACTOR)
        # The processes are AMs of yarnling, which send no lowered request again.
        exact = tuple(replace(one, client=RequestStyle.EXACT) for one in applications)
        run_what_if(conf, Workload(exact), machines, RunOptions(seed, END_S * 1000, line=lines.append))
        return Observed(steps_of_trace(lines))

    def processes(number: int) -> Observed:
        with TemporaryDirectory(prefix="yarnling-both-ways-") as directory:
            asyncio.run(_as_processes(applications, machines, Path(directory)))
            return Observed(steps_of_logs(Path(directory) / "events"))

    return Case(name, about, simulated, processes)


async def _as_processes(
    applications: tuple[WorkloadApplication, ...], machines: tuple[WorkloadNode, ...], directory: Path
) -> None:
    (directory / "events").mkdir()
    table = directory / "table.yaml"
    table.write_text(_table(applications))
    first = machines[0].resource
    async with LocalCluster(
        len(machines),
        memory_mb=first.memory_mb,
        vcores=first.vcores,
        settings={**SETTINGS, EVENT_LOG.key: str(directory / "events")},
        fast=True,
        options=ClusterOptions(emulated=table, log_warnings=False),
    ) as cluster:

        async def submit(number: int, work: WorkloadApplication) -> None:
            await asyncio.sleep(work.submit_ms / 1000)
            client = cluster.client_of(work.user)
            started = await client.start(_submission(number, work))
            await client.wait(started.application_id, timeout_s=END_S)

        async with asyncio.TaskGroup() as tasks:
            for number, work in enumerate(applications):
                tasks.create_task(submit(number, work))


def _submission(number: int, work: WorkloadApplication) -> DistributedShell:
    (group,) = work.groups
    options = ApplicationOptions(work.name, queue=work.queue, am_resource=work.am_resource)
    return DistributedShell(_command(number), Width(len(group.durations_ms), group.resource, exact=True), options)


def _table(applications: tuple[WorkloadApplication, ...]) -> str:
    """AMs are processes; the tasks of each application take its time."""
    rules = ["rules:", "  - {match: {kind: master}, run: real}"]
    for number, work in enumerate(applications):
        lasts = f"stages: [{{lasts: {work.groups[0].durations_ms[0]}ms}}]"
        rules.append(f"  - {{match: {{command: '{_command(number)}'}}, {lasts}}}")
    return "\n".join(rules)


def _command(number: int) -> str:
    return f"emulated-task-{number}-of-workload"


def _work(name: str, queue: str, at_s: float, tasks: int, seconds: float) -> WorkloadApplication:
    group = TaskGroup(SIZE, (round(seconds * 1000),) * tasks)
    return WorkloadApplication(name, round(at_s * 1000), queue, queue, (group,), SIZE)


CASES = (
    plan_case(
        "Room for all",
        "A plan: four applications, one a second, of six containers of 2 s each, on three nodes of 2 GB.",
        Plan(
            name="room-for-all",
            about="",
            faults=(),
            cluster=ClusterPlan(nodes=3),
            work=(WorkPlan(program=WorkProgram.BATCH, applications=4, every=1, tasks=6, seconds=2),),
            lasts=6,
        ),
    ),
    plan_case(
        "A full cluster",
        "A plan: three applications at once, each of 20 containers of 1 s, on two nodes of 1 GB.",
        Plan(
            name="full-cluster",
            about="",
            faults=(),
            cluster=ClusterPlan(nodes=2, memory_mb=1024),
            work=(WorkPlan(program=WorkProgram.BATCH, applications=3, tasks=20, seconds=1),),
            lasts=10,
        ),
    ),
    workload_case(
        "A minute of two queues",
        "A workload, with emulated containers: 150 tasks of 3 to 8 s in six applications, on two nodes of 2 GB.",
        (
            _work("etl-1", "etl", 0, 40, 5),
            _work("adhoc-1", "adhoc", 1, 20, 8),
            _work("etl-2", "etl", 8, 30, 6),
            _work("adhoc-2", "adhoc", 12, 20, 4),
            _work("etl-3", "etl", 20, 20, 8),
            _work("adhoc-3", "adhoc", 25, 20, 3),
        ),
        2,
    ),
)
