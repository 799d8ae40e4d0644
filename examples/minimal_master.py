"""A complete ApplicationMaster: requests containers, runs a command in each, and reports the result.

It runs in a container, started by a NodeManager; examples/submit_minimal_master.py submits it to a cluster.
"""

import argparse
import asyncio
import sys

from am.client.am_rm_client import AMRMClient
from am.client.environment import AMEnvironment
from am.client.nm_client import NMClient
from am.core.events import AllocateFailed, ContainersAllocated, ContainersCompleted, ShutdownOrdered
from am.core.requests import ContainerRequest
from yarn.containers import ContainerLaunchContext
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus

HELLO = ContainerLaunchContext(commands=("echo hello from $NM_HOST 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr",))


async def main(wanted: int) -> None:
    environment = AMEnvironment.read()
    async with AMRMClient.connect(environment) as rm, NMClient.connect(environment, rm.nm_tokens) as nms:
        failed = ended = 0
        running = set()
        rm.progress = lambda: ended / wanted
        await rm.register()
        for _ in range(wanted):
            rm.add_request(ContainerRequest(Resource(64, 1), priority=0))
        async for event in rm.events():
            match event:
                case ContainersAllocated(allocations):
                    for allocation in allocations:
                        if allocation.request is None:
                            rm.release(allocation.container.id)  # one more than requested
                        else:
                            running.add(allocation.container.id)
                            await nms.start(allocation.container, HELLO)
                case ContainersCompleted(statuses):
                    ours = [status for status in statuses if status.container_id in running]
                    ended += len(ours)
                    failed += sum(status.exit_status != 0 for status in ours)
                case ShutdownOrdered() | AllocateFailed():
                    sys.exit(1)
            if ended == wanted:
                break
        status = FinalApplicationStatus.FAILED if failed else FinalApplicationStatus.SUCCEEDED
        await rm.unregister(status, f"{ended} ended, {failed} failed")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("containers", type=int, choices=range(1, 1001), metavar="CONTAINERS", help="1 to 1000")
    asyncio.run(main(wanted=parser.parse_args().containers))
