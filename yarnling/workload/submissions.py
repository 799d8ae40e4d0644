"""The times of submissions: in order, and since the start of the workload."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from yarnling.workload.documents import Faults
from yarnling.workload.limits import TIME_MS_MAX
from yarnling.workload.model import WorkloadApplication


def in_order(applications: Iterable[WorkloadApplication]) -> tuple[WorkloadApplication, ...]:
    """The applications in the order of their submission; those of one millisecond in the given order."""
    return tuple(sorted(applications, key=lambda application: application.submit_ms))


def rebased(applications: Sequence[WorkloadApplication], faults: Faults) -> tuple[WorkloadApplication, ...]:
    """The applications in order. Times since 1970 become times since the first submission; others stay as they are.

    A trace that lasts longer than a workload may is a fault.
    """
    ordered = in_order(applications)
    if not ordered or ordered[-1].submit_ms <= TIME_MS_MAX:
        return ordered
    first = ordered[0].submit_ms
    if ordered[-1].submit_ms - first > TIME_MS_MAX:
        faults.add("", "has submissions more than a year apart", "correct the times, or split the file")
    return tuple(replace(application, submit_ms=application.submit_ms - first) for application in ordered)
