"""asyncio in virtual time, and an ApplicationMaster written against am.client in a simulated cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from am.client.am_rm_client import AMRMClient
from am.client.nm_client import NMClient
from am.core.events import ContainersAllocated, ContainersCompleted
from am.core.requests import ContainerRequest
from nm.core.effects import LaunchContainer
from wire.files.credentials import Credentials
from wire.protocols.master import ApplicationMasterProtocol
from wire.retry import RetryPolicy
from yarn.containers import AMRM_KIND, ContainerLaunchContext
from yarn.errors import InternalError
from yarn.ids import NodeId
from yarn.settings import scaled
from yarn.settings.pace import FAST_TIME_FACTOR
from yarn.states import FinalApplicationStatus, YarnApplicationState
from yarnling.cluster.configuration import composed, node_sizes
from yarnling.faults.history import History
from yarnling.faults.plan import WorkPlan
from yarnling.faults.runner import SETTINGS
from yarnling.faults.workload import SIZE
from yarnling.simulation.client import SimulatedClient
from yarnling.simulation.cluster import ClusterShape, SimulatedCluster
from yarnling.simulation.engine import START_MS, Engine, Rank
from yarnling.simulation.loop import VirtualChannels, VirtualLoop
from yarnling.simulation.machine import Program, SimulatedMachine
from yarnling.simulation.network import Endpoint
from yarnling.simulation.process import Process
from yarnling.simulation.workload import emulation_table, rule_name


@pytest.fixture
def engine() -> Engine:
    return Engine(1)


@pytest.fixture
def loop(engine: Engine) -> Iterator[VirtualLoop]:
    loop = VirtualLoop(engine)
    yield loop
    loop.close()


def test_sleeping_takes_virtual_time_only(engine: Engine, loop: VirtualLoop) -> None:
    async def main() -> float:
        await asyncio.gather(asyncio.sleep(3600), asyncio.sleep(1.5))
        return loop.time()

    started_s = time.monotonic()
    assert loop.run_until_complete(main()) == START_MS / 1000 + 3600
    assert time.monotonic() - started_s < 60
    assert engine.elapsed_s == 3600


def test_events_of_the_engine_and_timers_of_the_loop_share_one_order(engine: Engine, loop: VirtualLoop) -> None:
    happened: list[str] = []

    async def main() -> None:
        event = asyncio.Event()
        engine.at(START_MS + 5, Rank.TIMER, 0, event.set)
        engine.at(START_MS + 20, Rank.TIMER, 0, partial(happened.append, "engine at 20"))
        await event.wait()
        happened.append(f"woken at {engine.now_ms - START_MS}")
        await asyncio.sleep(0.01)
        happened.append(f"slept until {engine.now_ms - START_MS}")
        await asyncio.sleep(0.01)

    loop.run_until_complete(main())
    assert happened == ["woken at 5", "slept until 15", "engine at 20"]


def test_a_deadlock_and_a_thread_are_errors(loop: VirtualLoop) -> None:
    async def deadlock() -> None:
        await asyncio.Event().wait()

    with pytest.raises(InternalError, match="all tasks wait"):
        loop.run_until_complete(deadlock())

    async def thread() -> None:
        await asyncio.to_thread(time.sleep, 1)

    with pytest.raises(InternalError, match="no threads"):
        loop.run_until_complete(thread())


async def users_master(rm: AMRMClient, nms: NMClient) -> int:
    """As in examples/minimal_master.py: one container, started and awaited."""
    await rm.register()
    rm.add_request(ContainerRequest(SIZE, priority=1))
    async for event in rm.events():
        if isinstance(event, ContainersAllocated):
            for allocation in event.allocations:
                await nms.start(allocation.container, ContainerLaunchContext((rule_name(0),)))
        elif isinstance(event, ContainersCompleted):
            await rm.unregister(FinalApplicationStatus.SUCCEEDED, f"status {event.statuses[0].exit_status}")
            return 0
    return 1


class UsersProcess(Process):
    """The process of a user's AM, with the real clients in the virtual loop."""

    def __init__(self, cluster: SimulatedCluster, machine: SimulatedMachine, launch: LaunchContainer) -> None:
        super().__init__(cluster.engine, "user's am", machine.number)
        self.boot()
        self._cluster = cluster
        self._task = asyncio.get_running_loop().create_task(self._main(machine, launch))

    def kill(self) -> None:
        self.exit()
        self._task.cancel()

    def _route(self, target: str) -> tuple[str, Endpoint]:
        if target == "rm":
            return f"scheduler-{self.number}", self._cluster.rm.served
        return self._cluster.node_link(NodeId.parse(target))

    async def _main(self, machine: SimulatedMachine, launch: LaunchContainer) -> None:
        channels = VirtualChannels(self._cluster.network, self, self._route)
        token = Credentials.from_bytes(launch.tokens).token_of_kind(AMRM_KIND)
        proxy = ApplicationMasterProtocol("rm", token=token, channels=channels)
        async with AMRMClient(proxy) as rm, NMClient(rm.nm_tokens, RetryPolicy(), channels=channels) as nms:
            exit_code = await users_master(rm, nms)
        machine.program_ended(launch.container_id, launch.launch, exit_code)


class UsersCluster(SimulatedCluster):
    def start_master(self, machine: SimulatedMachine, launch: LaunchContainer) -> Program:
        return UsersProcess(self, machine, launch)


def test_a_users_application_master_runs_unchanged(engine: Engine, loop: VirtualLoop, tmp_path: Path) -> None:
    works = (WorkPlan(seconds=30.0),)
    history = History()

    async def main() -> None:
        conf = scaled(composed(None, SETTINGS, node_sizes(1024, 8)), FAST_TIME_FACTOR)
        table = emulation_table(works, 1)
        cluster = UsersCluster(engine, conf, ClusterShape(2).machines(), table, history, directory=tmp_path)
        client = SimulatedClient(cluster, history)
        cluster.start()
        await asyncio.sleep(2)
        client.submit_all(works)
        await asyncio.sleep(60)
        (app,) = cluster.rm.core.context.apps.values()
        assert app.state.name == YarnApplicationState.FINISHED.name
        assert "status 0" in str(app.diagnostics)

    loop.run_until_complete(main())
    assert [span.role.name for span in history.spans] == ["MASTER", "CONTAINER"]
    assert all(span.status == 0 for span in history.spans)
    assert 29 < history.spans[1].last_s - history.spans[1].start_s < 31
