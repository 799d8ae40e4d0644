"""How much CPU a container gets, as the contents of cgroup files (CGroupsCpuResourceHandlerImpl).

Always a weight: containers share the CPU in proportion to their vcores, and may use what is idle. A quota only with
strict resource usage: a container then gets at most its share of the node's cores, however idle the machine is.

Hadoop 3.4.1 supports cgroups of version 1; the weights of version 2 are those of its later releases.
"""

from __future__ import annotations

from msgspec import Struct

from yarn.configuration import Configuration
from yarn.java.values import to_float32
from yarn.settings import nodemanager

MAX_QUOTA_US = 1_000_000
MIN_PERIOD_US = 1000
NO_QUOTA = -1
_SHARES_OF_VCORE = 1024
_SHARES_OPPORTUNISTIC = 2
_WEIGHT_OF_VCORE = 100
_WEIGHT_OPPORTUNISTIC = 1
_WEIGHT_MAX = 10_000
_LEAST_CORES = 0.01


class Quota(Struct, frozen=True):
    """`quota_us` of CPU time, on all cores together, in each `period_us`; NO_QUOTA: unlimited."""

    period_us: int
    quota_us: int


class NodeCpu(Struct, frozen=True):
    """What all containers of a node share: `vcores`, and `percentage` of the machine's `cores`."""

    vcores: int
    cores: int
    percentage: int = 100
    strict: bool = False

    @staticmethod
    def read(conf: Configuration, vcores: int, cores: int, threads: int) -> NodeCpu:
        by_threads = nodemanager.COUNT_LOGICAL_PROCESSORS_AS_CORES.of(conf)
        return NodeCpu(
            vcores,
            threads if by_threads else cores,
            min(100, nodemanager.PERCENTAGE_PHYSICAL_CPU_LIMIT.of(conf)),
            nodemanager.CGROUPS_STRICT_RESOURCE_USAGE.of(conf),
        )

    @property
    def container_cores(self) -> float:
        """Cores for containers (NodeManagerHardwareUtils.getContainersCPUs)."""
        return to_float32(self.percentage * self.cores / 100)


class ContainerCpu(Struct, frozen=True):
    """The CPU share of one container; without a quota it may use all idle CPU."""

    vcores: int
    opportunistic: bool = False
    quota: Quota | None = None


def quota_of(cores: float) -> Quota:
    """The quota for `cores` cores (getOverallLimits); the kernel accepts periods from 1 ms to 1 s.

    Raises ValueError below a hundredth of a core.
    """
    if cores < to_float32(_LEAST_CORES):
        raise ValueError(f"{cores:g} cores: must be at least {_LEAST_CORES:g}")
    if cores < 1.0:
        return Quota(MAX_QUOTA_US, max(MIN_PERIOD_US, int(to_float32(MAX_QUOTA_US * cores))))
    period_us = int(to_float32(MAX_QUOTA_US / cores))
    if period_us < MIN_PERIOD_US:
        return Quota(MAX_QUOTA_US, NO_QUOTA)
    return Quota(period_us, MAX_QUOTA_US)


def node_quota(node: NodeCpu) -> Quota | None:
    """The quota of all containers together; None if they may use the whole machine."""
    if node.cores == int(node.container_cores):
        return None
    return quota_of(node.container_cores)


def container_cpu(node: NodeCpu, vcores: int, *, opportunistic: bool = False) -> ContainerCpu:
    """The share of a container of `vcores`; one that has all vcores of the node needs no quota of its own."""
    if not node.strict or vcores == node.vcores:
        return ContainerCpu(vcores, opportunistic)
    cores = to_float32(to_float32(vcores * node.container_cores) / node.vcores)
    return ContainerCpu(vcores, opportunistic, quota_of(cores))


def files_of_version_1(cpu: ContainerCpu) -> dict[str, str]:
    """{file: value} of a container's cgroup, in the order in which they are written."""
    shares = _SHARES_OPPORTUNISTIC if cpu.opportunistic else _SHARES_OF_VCORE * cpu.vcores
    return {"cpu.shares": str(shares), **quota_files_of_version_1(cpu.quota)}


def files_of_version_2(cpu: ContainerCpu) -> dict[str, str]:
    weight = _WEIGHT_OPPORTUNISTIC if cpu.opportunistic else min(_WEIGHT_OF_VCORE * cpu.vcores, _WEIGHT_MAX)
    return {"cpu.weight": str(weight), **quota_files_of_version_2(cpu.quota)}


def quota_files_of_version_1(quota: Quota | None) -> dict[str, str]:
    if quota is None:
        return {}
    return {"cpu.cfs_period_us": str(quota.period_us), "cpu.cfs_quota_us": str(quota.quota_us)}


def quota_files_of_version_2(quota: Quota | None) -> dict[str, str]:
    if quota is None:
        return {}
    amount = "max" if quota.quota_us == NO_QUOTA else str(quota.quota_us)
    return {"cpu.max": f"{amount} {quota.period_us}"}
