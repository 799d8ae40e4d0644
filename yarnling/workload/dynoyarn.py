"""Reads DynoYARN's workload traces: one application a line, with its requests and the run times of its containers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from yarn.resource import Resource
from yarnling.workload.defaults import Defaults
from yarnling.workload.documents import Faults, LenientSection, json_documents
from yarnling.workload.limits import CONTAINERS_MAX, GROUPS_MAX, MemoryMb, Milliseconds, Name, Priority, Text, Vcores
from yarnling.workload.model import AM_RESOURCE, TaskGroup, Workload, WorkloadApplication
from yarnling.workload.start_times import REAL_AM_START
from yarnling.workload.submissions import rebased
from yarnling.workload.tally import WorkloadCount
from yarnling.workload.task_groups import TraceTask, staged


class _Resource(LenientSection):
    memory_mb: Annotated[MemoryMb, Field(alias="memoryMB")]
    vcores: Vcores = 1

    def record(self) -> Resource:
        return Resource(self.memory_mb, self.vcores)


class _Spec(LenientSection):
    """A kind of tasks in a trace.

    `numInstances` containers, or one for each run time if there are more of those; the last run time repeats.
    """

    runtimes: Annotated[list[Milliseconds], Field(min_length=1, max_length=CONTAINERS_MAX)]
    instances: Annotated[int, Field(alias="numInstances", ge=0, le=CONTAINERS_MAX)] = 0
    resource: _Resource
    priority: Priority = 20

    @property
    def containers(self) -> int:
        return max(self.instances, len(self.runtimes))

    def tasks(self) -> list[TraceTask]:
        resource, missing = self.resource.record(), self.containers - len(self.runtimes)
        tasks = [TraceTask(runtime, resource, self.priority) for runtime in self.runtimes]
        return [*tasks, TraceTask(self.runtimes[-1], resource, self.priority, count=missing)] if missing else tasks


class _Application(LenientSection):
    id: Annotated[Text, Field(alias="appId")]
    kind: Annotated[Text, Field(alias="appType")] = "yarnling"
    am: Annotated[_Resource | None, Field(alias="amResourceRequest")] = None
    queue: Name | None = None
    user: Name | None = None
    submit: Annotated[int, Field(alias="submitTime", ge=0, le=1 << 50)]
    specs: Annotated[tuple[_Spec, ...], Field(alias="resourceRequestSpecs", max_length=GROUPS_MAX)] = ()

    def groups(self) -> tuple[TaskGroup, ...]:
        """The groups, each of which waits for the one before it."""
        return tuple(staged(*[spec.tasks() for spec in self.specs]))


def read_dynoyarn(text: str, source: str, defaults: Defaults) -> Workload:
    """The workload in a DynoYARN trace. Raises ConfigurationException with all faults."""
    faults, tally, applications = Faults(source), WorkloadCount(source), list[WorkloadApplication]()
    for number, (line, document) in enumerate(json_documents(text, source), 1):
        entry = faults.checked(_Application, document, f"application {number}", line)
        if entry is not None:
            tally.add(sum(spec.containers for spec in entry.specs), line)
            user, queue = entry.user or defaults.user, entry.queue or defaults.queue
            am = entry.am.record() if entry.am else AM_RESOURCE
            applications.append(
                WorkloadApplication(
                    entry.id, entry.submit, user, queue, entry.groups(), am, entry.kind, am_start_ms=REAL_AM_START
                )
            )
    ordered = rebased(applications, faults)
    faults.refuse()
    return Workload(
        ordered,
        (
            "The requests of an application follow one another: each waits until the containers before it have ended.",
            "A request for more containers than it has run times repeats the last run time.",
        ),
    )
