"""The load factor: a workload with more or fewer applications over the same time."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from msgspec.structs import replace

from yarn.errors import YarnException
from yarnling.workload.limits import APPLICATIONS_MAX, CONTAINERS_MAX, TIME_MS_MAX
from yarnling.workload.model import Workload, WorkloadApplication
from yarnling.workload.submissions import in_order

SPREAD_MS = 60_000
"""A copy is submitted up to this much later than the original, so that copies do not arrive together."""


def scaled(workload: Workload, factor: float, seed: int = 0) -> Workload:
    """The workload with `factor` times its applications, on average.

    With 2.5 each application has one copy, and half of them have two; with 0.3 about 30 % are kept. Raises
    YarnException if the factor is negative or the result is larger than a workload may be.
    """
    if not 0 <= factor < float("inf"):
        raise YarnException(f"load factor {factor:g}: it must not be negative (1 leaves the workload as it is)")
    if factor == 1:
        return workload
    containers = sum(application.containers for application in workload.applications)
    for count, bound, what in (
        (len(workload.applications), APPLICATIONS_MAX, "applications"),
        (containers, CONTAINERS_MAX, "containers"),
    ):
        if count * factor > bound:
            raise YarnException(
                f"load factor {factor:g}: {count} {what} become more than {bound} (write a smaller one)"
            )
    random = Random(f"{seed}/load factor")
    applications = in_order(each for one in workload.applications for each in _copies(one, factor, random))
    text = (
        f"Applications were multiplied by {factor:g} with seed {seed}; a copy comes up to {SPREAD_MS // 1000} s later."
    )
    return Workload(applications, (*workload.assumptions, text), workload.evidence, workload.calibration)


def _copies(application: WorkloadApplication, factor: float, random: Random) -> Iterator[WorkloadApplication]:
    count = int(factor) + (random.random() < factor % 1)
    for number in range(count):
        if number == 0:
            yield application
        else:
            submit_ms = min(application.submit_ms + int(random.random() * SPREAD_MS), TIME_MS_MAX)
            yield replace(application, name=f"{application.name}-copy-{number}", submit_ms=submit_ms)
