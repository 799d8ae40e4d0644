"""Adds up squares on two workers of dask-yarn.

squares.py remote|local        where the scheduler is: in a container, or in this process
"""

import sys

from dask.distributed import Client
from dask_yarn import YarnCluster

SECONDS = 120

with (
    YarnCluster(
        environment=f"python://{sys.executable}",
        n_workers=2,
        worker_memory="512 MiB",
        worker_vcores=1,
        scheduler_memory="512 MiB",
        deploy_mode=sys.argv[1],
    ) as workers,
    Client(workers) as client,
):
    client.wait_for_workers(2, timeout=SECONDS)
    total = sum(client.gather(client.map(lambda number: number * number, range(10))))
    sys.stdout.write(f"{total}\n")
