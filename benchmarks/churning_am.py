"""An ApplicationMaster that keeps a number of containers running, and measures the cost while they start and end.

    python -m benchmarks.churning_am WINDOW WARM_UP MEASURED RESULT NAME=PID ...

The AM starts WINDOW containers, and another one for each that ends. The measurement starts when WARM_UP containers have
ended and stops when MEASURED more have ended. The figures are the elapsed time, and the CPU time of this process and of
the daemons with the given process ids. The figures are written to RESULT.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import psutil

from am.client.am_rm_client import AMRMClient
from am.client.environment import AMEnvironment
from am.client.nm_client import NMClient
from am.core.events import AllocateFailed, ContainersAllocated, ContainersCompleted, ShutdownOrdered
from am.core.requests import ContainerRequest
from wire.garbage_collection import collect_less_often
from yarn.containers import Container, ContainerLaunchContext
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus

WORK = ContainerLaunchContext(("true",))
REQUEST = ContainerRequest(Resource(1, 1), priority=1)


class Clock:
    """Reads the wall time and the CPU seconds of daemons as {name: seconds}; daemons of one name are added up."""

    def __init__(self, daemons: list[tuple[str, int]]) -> None:
        self._daemons = [(name, psutil.Process(pid)) for name, pid in [*daemons, ("am", 0)] if pid] + [
            ("am", psutil.Process())
        ]

    def read(self) -> dict[str, float]:
        found = {"wall": time.perf_counter()}
        for name, process in self._daemons:
            times = process.cpu_times()
            found[name] = found.get(name, 0.0) + times.user + times.system
        return found


async def churn(window: int, warm_up: int, measured: int, clock: Clock, result: Path) -> None:
    """Run the containers, and write {"wall", daemon name: seconds, "containers": count} for the measured part to
    `result`.
    """
    environment = AMEnvironment.read()
    first, ended, last = 0, 0, warm_up + measured
    before: dict[str, float] = {}
    async with (
        AMRMClient.connect(environment) as rm,
        NMClient.connect(environment, rm.nm_tokens) as nms,
        asyncio.TaskGroup() as tasks,
    ):
        await rm.register()
        for _ in range(window):
            rm.add_request(REQUEST)
        async for event in rm.events():
            match event:
                case ContainersAllocated(allocations):
                    for allocation in allocations:
                        tasks.create_task(_start(nms, allocation.container))
                case ContainersCompleted(statuses):
                    assert all(status.exit_status == 0 for status in statuses), statuses
                    ended += len(statuses)
                    for _ in statuses:
                        rm.add_request(REQUEST)
                    if not before and ended >= warm_up:
                        before, first = clock.read(), ended
                case ShutdownOrdered() | AllocateFailed():
                    sys.exit(1)
                case _:
                    pass  # The other events need no answer.
            if ended >= last:
                break
        after = clock.read()
        figures = {name: after[name] - seconds for name, seconds in before.items()} | {"containers": ended - first}
        # The result is written before unregistering, because the AM may be killed after that.
        result.write_text(json.dumps(figures))  # noqa: ASYNC240  nothing else is to happen meanwhile
        await rm.unregister(FinalApplicationStatus.SUCCEEDED)


async def _start(nms: NMClient, container: Container) -> None:
    await nms.start(container, WORK)


def main() -> None:
    window, warm_up, measured, result, *daemons = sys.argv[1:]
    collect_less_often()
    clock = Clock([(name, int(pid)) for name, _, pid in (daemon.partition("=") for daemon in daemons)])
    asyncio.run(churn(int(window), int(warm_up), int(measured), clock, Path(result)))


if __name__ == "__main__":
    main()
