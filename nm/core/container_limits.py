"""The limits on the memory, the logs and the CPU of a container.

Memory (ContainersMonitorImpl): a container whose process tree exceeds a limit is killed. A process that forks is
counted twice for a moment, as parent and copy. So the whole tree is compared with twice the limit, and only processes
that were seen at an earlier measurement are compared with the limit itself.

Logs (ContainersMonitorImpl.LogMonitorThread): a container is killed if one of its log directories exceeds a limit, or
all of them together exceed another.

CPU (CGroupsCpuResourceHandlerImpl): the limits are contents of cgroup files. Every container has a weight: containers
share the CPU in proportion to their vcores, and may use what is idle. With strict resource usage a container also has a
quota: it gets at most its share of the node's cores, even on an idle machine. Hadoop 3.4.1 supports cgroups of version
1; the weights for version 2 are those of later releases of Hadoop.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from yarn.configuration import Configuration
from yarn.ids import ContainerId
from yarn.java.values import to_float32
from yarn.settings import nodemanager
from yarn.states import ContainerExitStatus

TREE_CHARS_MAX, LINE_CHARS_MAX = 8000, 2000
"""The limits on the list of a container's processes, and on one process in it: it must not push the reason, before it,
out of the diagnostics (yarn.nodemanager.container-diagnostics-maximum-size, 10,000 characters)."""
_PREFIXES = "KMGTPE"
_HEADER = (
    "\t|- PID PPID PGRPID SESSID CMD_NAME USER_MODE_TIME(MILLIS) SYSTEM_TIME(MILLIS) "
    "VMEM_USAGE(BYTES) RSSMEM_USAGE(PAGES) FULL_CMD_LINE\n"
)


class ProcessSample(Struct, frozen=True):
    """A measurement of one process of a container. `age` is the number of times this process was measured, from 1."""

    pid: int
    parent: int
    group: int
    session: int
    name: str
    user_ms: int
    system_ms: int
    virtual_bytes: int
    resident_pages: int
    command_line: tuple[str, ...]
    age: int


class MemoryLimits(Struct, frozen=True):
    """The memory that a container may use, in bytes, and which of the two limits are checked."""

    physical_bytes: int
    virtual_bytes: int
    check_physical: bool = True
    check_virtual: bool = True


class LimitViolation(Struct, frozen=True):
    """A container exceeds a limit and is killed with this exit status and these diagnostics."""

    exit_status: int
    diagnostics: str


def check_memory(
    container_id: ContainerId, tree: Sequence[ProcessSample], limits: MemoryLimits, page_bytes: int
) -> LimitViolation | None:
    """Compare the memory of a container's processes with its limits; None if no limit is exceeded.

    `tree` has the root process first. Virtual memory is compared before physical memory.
    """
    virtual = sum(process.virtual_bytes for process in tree)
    physical = sum(process.resident_pages for process in tree) * page_bytes
    aged = [process for process in tree if process.age > 1]
    aged_virtual = sum(process.virtual_bytes for process in aged)
    aged_physical = sum(process.resident_pages for process in aged) * page_bytes
    usage = (
        f"{binary(physical)}B of {binary(limits.physical_bytes)}B physical memory used; "
        f"{binary(virtual)}B of {binary(limits.virtual_bytes)}B virtual memory used"
    )
    if limits.check_virtual and _is_over(virtual, aged_virtual, limits.virtual_bytes):
        text = _message(container_id, tree, "VIRTUAL", virtual - limits.virtual_bytes, usage)
        return LimitViolation(ContainerExitStatus.KILLED_EXCEEDED_VMEM, text)
    if limits.check_physical and _is_over(physical, aged_physical, limits.physical_bytes):
        text = _message(container_id, tree, "PHYSICAL", physical - limits.physical_bytes, usage)
        return LimitViolation(ContainerExitStatus.KILLED_EXCEEDED_PMEM, text)
    return None


class LogLimits(Struct, frozen=True):
    """The bytes that a container may log: in each of its log directories, and in all of them together."""

    directory_bytes: int = 1_000_000_000
    total_bytes: int = 10_000_000_000


def check_logs(
    container_id: ContainerId, pid: int, sizes: Sequence[tuple[str, int]], limits: LogLimits
) -> LimitViolation | None:
    """Compare a container's log directories, (path, size in bytes) each, with its limits; None if none is exceeded.

    The directories are added up in this order until a limit is exceeded, so the total may be larger than reported.
    """
    total = 0
    for directory, size in sizes:
        total += size
        if size > limits.directory_bytes:
            what = "single log directory limit"
            usage = f"Limit: {limits.directory_bytes} Log Directory Size: {size} Log Directory: {directory}"
        elif total > limits.total_bytes:
            what = "total log limit"
            usage = f"Limit: {limits.total_bytes} Total Size: >={total}"
        else:
            continue
        return LimitViolation(
            ContainerExitStatus.KILLED_FOR_EXCESS_LOGS,
            f"Container [pid={pid},containerID={container_id}] is logging beyond the container {what}.\n"
            f"{usage}\nKilling container.\n",
        )
    return None


def binary(amount: int) -> str:
    """Format an amount with a binary prefix and at most one decimal: `207.2 M`, `128 M`, `512`."""
    if amount < 1024:
        return str(amount)
    power = min((amount.bit_length() - 1) // 10, len(_PREFIXES))
    unit = 1 << (10 * power)
    if amount % unit == 0:
        return f"{amount // unit} {_PREFIXES[power - 1]}"
    text = f"{amount / unit:.1f}"
    if text.startswith("1024") and power < len(_PREFIXES):
        power += 1
        text = f"{amount / (1 << (10 * power)):.1f}"
    return f"{text} {_PREFIXES[power - 1]}"


def _is_over(current: int, aged: int, limit: int) -> bool:
    return current > 2 * limit or aged > limit


def _message(container_id: ContainerId, tree: Sequence[ProcessSample], kind: str, excess: int, usage: str) -> str:
    return (
        f"Container [pid={tree[0].pid},containerID={container_id}] is running {excess}B beyond the '{kind}' "
        f"memory limit. Current usage: {usage}. Killing container.\n"
        f"Dump of the process-tree for {container_id} :\n{_HEADER}{_listed(tree)}"
    )


def _listed(tree: Sequence[ProcessSample]) -> str:
    lines: list[str] = []
    left = TREE_CHARS_MAX
    for process in tree:
        line = _line(process)
        left -= len(line)
        if left < 0:
            lines.append(f"\t|- and {len(tree) - len(lines)} more\n")
            break
        lines.append(line)
    return "".join(lines)


def _line(process: ProcessSample) -> str:
    command = "".join(f"{argument} " for argument in process.command_line)
    line = (
        f"\t|- {process.pid} {process.parent} {process.group} {process.session} ({process.name}) "
        f"{process.user_ms} {process.system_ms} {process.virtual_bytes} {process.resident_pages} {command}"
    )
    return f"{line}\n" if len(line) <= LINE_CHARS_MAX else f"{line[:LINE_CHARS_MAX]}...\n"


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
    """A CPU quota: `quota_us` microseconds of CPU time, over all cores, in each `period_us`; NO_QUOTA
    means unlimited.
    """

    period_us: int
    quota_us: int


class NodeCpu(Struct, frozen=True):
    """The CPU that all containers of a node share: `vcores`, which stand for `percentage` of the machine's `cores`."""

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
        """The number of cores that containers may use (NodeManagerHardwareUtils.getContainersCPUs)."""
        return to_float32(self.percentage * self.cores / 100)


class ContainerCpu(Struct, frozen=True):
    """The CPU share of one container. Without a quota, the container may use all idle CPU."""

    vcores: int
    opportunistic: bool = False
    quota: Quota | None = None


def quota_of(cores: float) -> Quota:
    """The quota for `cores` cores (getOverallLimits). The kernel accepts periods from 1 ms to 1 s.

    Raises ValueError if `cores` is less than 0.01.
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
    """The quota for all containers of the node together; None if they may use the whole machine."""
    if node.cores == int(node.container_cores):
        return None
    return quota_of(node.container_cores)


def container_cpu(node: NodeCpu, vcores: int, *, opportunistic: bool = False) -> ContainerCpu:
    """The CPU share of a container with `vcores`.

    A container that has all vcores of the node needs no quota of its own.
    """
    if not node.strict or vcores == node.vcores:
        return ContainerCpu(vcores, opportunistic)
    cores = to_float32(to_float32(vcores * node.container_cores) / node.vcores)
    return ContainerCpu(vcores, opportunistic, quota_of(cores))


def files_of_version_1(cpu: ContainerCpu) -> dict[str, str]:
    """The files of a container's cgroup as {file name: value}, in the order in which they are written."""
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
