"""Counts what a workload contains while it is read, so that it stays within its bounds."""

from __future__ import annotations

from yarnling.workload.documents import refusal
from yarnling.workload.limits import APPLICATIONS_MAX, CONTAINERS_MAX


class WorkloadCount:
    """The applications and containers read so far. `add` raises ConfigurationException when there are too many."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._applications = 0
        self._containers = 0

    def add(self, containers: int, line: int | None = None) -> None:
        """Count one application with this many containers, before its records are made."""
        self._applications += 1
        self.add_containers(containers, line)

    def add_containers(self, containers: int, line: int | None = None) -> None:
        """Count more containers of the application that was added last."""
        self._containers += containers
        for count, bound, what in (
            (self._applications, APPLICATIONS_MAX, "applications"),
            (self._containers, CONTAINERS_MAX, "containers"),
        ):
            if count > bound:
                problem = f"has more than {bound} {what}"
                raise refusal(self._source, problem, "split the workload into several files", line)
