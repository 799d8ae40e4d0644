"""An AM whose only container grows: `python -m tests.cluster.growing_am FOLDER` then creates FOLDER/grown.

From then on the container holds 300 MB, more than its first size, until FOLDER/go exists.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from am.client.am_rm_client import AMRMClient
from am.client.environment import AMEnvironment
from am.client.launching import python_launch_context
from am.client.nm_client import NMClient
from am.core.events import AllocateFailed, ContainersAllocated, ContainersCompleted, ContainersUpdated, ShutdownOrdered
from am.core.requests import ContainerRequest
from yarn.containers import UpdateContainerRequest
from yarn.resource import Resource
from yarn.states import ContainerUpdateType, FinalApplicationStatus

SMALL, LARGE = Resource(128, 1), Resource(1024, 1)
HELD_BYTES, PAGE = 300 << 20, 4096
POLL_S = 0.02


def task(folder: Path) -> None:
    """The program of the container."""
    while not (folder / "grown").exists():
        time.sleep(POLL_S)
    held = bytearray(HELD_BYTES)
    held[::PAGE] = bytes(HELD_BYTES // PAGE)
    while not (folder / "go").exists():
        time.sleep(POLL_S)


async def main(folder: Path) -> None:
    environment = AMEnvironment.read()
    launch = python_launch_context("tests.cluster.growing_am", [str(folder), "task"])
    status = FinalApplicationStatus.FAILED
    async with AMRMClient.connect(environment) as rm, NMClient.connect(environment, rm.nm_tokens) as nms:
        await rm.register()
        rm.add_request(ContainerRequest(SMALL, priority=1))
        async for event in rm.events():
            match event:
                case ContainersAllocated(allocations):
                    (container,) = (allocation.container for allocation in allocations)
                    await nms.start(container, launch)
                    increase = ContainerUpdateType.INCREASE_RESOURCE
                    rm.update(UpdateContainerRequest(container.id, container.version, increase, LARGE))
                case ContainersUpdated(updated):
                    await nms.update(updated[0].container)
                    (folder / "grown").touch()
                case ContainersCompleted(statuses):
                    if statuses[0].exit_status == 0:
                        status = FinalApplicationStatus.SUCCEEDED
                    break
                case ShutdownOrdered() | AllocateFailed():
                    sys.exit(1)
        await rm.unregister(status)


if __name__ == "__main__":
    if sys.argv[2:] == ["task"]:
        task(Path(sys.argv[1]))
    else:
        asyncio.run(main(Path(sys.argv[1])))
