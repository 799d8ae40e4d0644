"""yarnling: a YARN cluster small enough for a laptop and true enough to trust.

from yarnling import LocalCluster

with LocalCluster(nodes=3, fast=True) as cluster:
    print(cluster.run("echo hello", containers=3).stdout)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # These names are imported by __getattr__ when they are used, because the command line and the pytest plugin import
    # this package in every run.
    from yarn.errors import YarnException
    from yarn.ids import ApplicationId, ContainerId
    from yarn.states import FinalApplicationStatus, NodeState
    from yarnling.cluster.blocking import BlockingClient, BlockingCluster
    from yarnling.cluster.client import Client, WaitTimeout
    from yarnling.cluster.jobs import ContainerResult, Job, JobResult
    from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster

    __version__: str

__all__ = [
    "ApplicationId",
    "BlockingClient",
    "BlockingCluster",
    "Client",
    "ClusterOptions",
    "ContainerId",
    "ContainerResult",
    "FinalApplicationStatus",
    "Job",
    "JobResult",
    "LocalCluster",
    "NodeState",
    "WaitTimeout",
    "YarnException",
]

_MODULES = {
    "ApplicationId": "yarn.ids",
    "BlockingClient": "yarnling.cluster.blocking",
    "BlockingCluster": "yarnling.cluster.blocking",
    "Client": "yarnling.cluster.client",
    "ClusterOptions": "yarnling.cluster.local_cluster",
    "ContainerId": "yarn.ids",
    "ContainerResult": "yarnling.cluster.jobs",
    "FinalApplicationStatus": "yarn.states",
    "Job": "yarnling.cluster.jobs",
    "JobResult": "yarnling.cluster.jobs",
    "LocalCluster": "yarnling.cluster.local_cluster",
    "NodeState": "yarn.states",
    "WaitTimeout": "yarnling.cluster.client",
    "YarnException": "yarn.errors",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from yarnling.cluster.own_packages import version

        return version()
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from yarnling.cluster.own_packages import check_packages

    check_packages()
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
