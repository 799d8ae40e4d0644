"""When a container's process tree exceeds its memory limits, and the diagnostics for it (ContainersMonitorImpl).

A process that forks is counted twice for a moment, as parent and copy. So a tree may exceed its limit once: only
processes that were seen before count against the limit, and all processes together against twice the limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from yarn.ids import ContainerId
from yarn.states import ContainerExitStatus

_PREFIXES = "KMGTPE"
_HEADER = (
    "\t|- PID PPID PGRPID SESSID CMD_NAME USER_MODE_TIME(MILLIS) SYSTEM_TIME(MILLIS) "
    "VMEM_USAGE(BYTES) RSSMEM_USAGE(PAGES) FULL_CMD_LINE\n"
)


class ProcessSample(Struct, frozen=True):
    """One measurement of a process of a container. `age` counts its measurements, from 1."""

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
    """How much memory a container may use, and which of the limits are checked."""

    physical_bytes: int
    virtual_bytes: int
    check_physical: bool = True
    check_virtual: bool = True


class MemoryViolation(Struct, frozen=True):
    """A container exceeds a limit: the exit status and diagnostics with which it is killed."""

    exit_status: int
    diagnostics: str


def check_memory(
    container_id: ContainerId, tree: Sequence[ProcessSample], limits: MemoryLimits, page_bytes: int
) -> MemoryViolation | None:
    """Check a process tree, its root first; virtual memory is checked before physical memory."""
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
        return MemoryViolation(ContainerExitStatus.KILLED_EXCEEDED_VMEM, text)
    if limits.check_physical and _is_over(physical, aged_physical, limits.physical_bytes):
        text = _message(container_id, tree, "PHYSICAL", physical - limits.physical_bytes, usage)
        return MemoryViolation(ContainerExitStatus.KILLED_EXCEEDED_PMEM, text)
    return None


def binary(amount: int) -> str:
    """An amount with a binary prefix and at most one decimal: `207.2 M`, `128 M`, `512`."""
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
        f"Dump of the process-tree for {container_id} :\n{_HEADER}{''.join(map(_line, tree))}"
    )


def _line(process: ProcessSample) -> str:
    command = "".join(f"{argument} " for argument in process.command_line)
    return (
        f"\t|- {process.pid} {process.parent} {process.group} {process.session} ({process.name}) "
        f"{process.user_ms} {process.system_ms} {process.virtual_bytes} {process.resident_pages} {command}\n"
    )
