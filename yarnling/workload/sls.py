"""Reads the SLS format: jobs and nodes as JSON objects, one after another (AMDefinitionSLS, TaskContainerDefinition).

A task names the host that it ran on, so the tasks of a job become one group for each host. SLS's MapReduce AM requests
all maps with priority 20, then all reduces with priority 10, whatever the file says, and ignores other types.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from yarn.resource import MEMORY_MB, VCORES, Resource
from yarnling.workload.defaults import Defaults
from yarnling.workload.documents import Faults, LenientSection, json_documents
from yarnling.workload.evidence import Basis, EvidenceAccount
from yarnling.workload.limits import (
    AMOUNT_MAX,
    CONTAINERS_MAX,
    GROUPS_MAX,
    NODES_MAX,
    TIME_MS_MAX,
    Name,
    Priority,
    Text,
)
from yarnling.workload.model import TaskGroup, Workload, WorkloadApplication, WorkloadNode
from yarnling.workload.start_times import REAL_AM_START
from yarnling.workload.submissions import rebased
from yarnling.workload.tally import WorkloadCount
from yarnling.workload.task_groups import MAP_PRIORITY, REDUCE_PRIORITY, TraceTask, grouped, staged

AM_RESOURCE = Resource(1024, 1)
NODE_RESOURCE = Resource(10240, 10)
"""SLS's defaults, yarn.sls.am.container.* and yarn.sls.nm.*."""
EXECUTION_MODELLED = "GUARANTEED"
SIZED_ABOUT = "sizes and durations of containers, without AMs"
UNSIZED_ABOUT = "sizes of containers that do not say it (durations are recorded)"

_Time = Annotated[int, Field(ge=0, le=1 << 50)]


class _Task(LenientSection):
    """A task. The amounts of resources are extra keys, `container.` and the name of the type."""

    model_config = ConfigDict(extra="allow", frozen=True)

    count: Annotated[int, Field(le=CONTAINERS_MAX)] = 1
    host: Annotated[Text | None, Field(alias="container.host")] = None
    duration: Annotated[_Time | None, Field(alias="container.duration.ms")] = None
    legacy_duration: Annotated[_Time | None, Field(alias="duration.ms")] = None
    start: Annotated[_Time | None, Field(alias="container.start.ms")] = None
    end: Annotated[_Time | None, Field(alias="container.end.ms")] = None
    priority: Annotated[Priority, Field(alias="container.priority")] = MAP_PRIORITY
    type: Annotated[Name, Field(alias="container.type")] = "map"
    execution: Annotated[Name, Field(alias="container.execution.type")] = EXECUTION_MODELLED
    delay: Annotated[int, Field(alias="container.request.delay", le=TIME_MS_MAX)] = 0

    @property
    def duration_ms(self) -> int:
        """The duration that counts, chosen as by TaskContainerDefinition; 0 if there is none."""
        if self.duration is not None:
            return self.duration
        if self.legacy_duration is not None:
            return self.legacy_duration
        return 0 if self.start is None or self.end is None else self.end - self.start


class _Job(LenientSection):
    """A job. The AM's amounts of resources are extra keys, `am.` and the name of the type."""

    model_config = ConfigDict(extra="allow", frozen=True)

    am_type: Annotated[Name | None, Field(alias="yarn.sls.am.type")] = None
    old_am_type: Annotated[Name, Field(alias="am.type")] = "mapreduce"
    start: Annotated[_Time, Field(alias="job.start.ms")] = 0
    end: Annotated[_Time | None, Field(alias="job.end.ms")] = None
    id: Annotated[Text | None, Field(alias="job.id")] = None
    user: Annotated[Name | None, Field(alias="job.user")] = None
    queue: Annotated[Name | None, Field(alias="job.queue.name")] = None
    label: Annotated[Text, Field(alias="job.label.expression")] = ""
    count: Annotated[int, Field(alias="job.count", le=AMOUNT_MAX)] = 1
    tasks: Annotated[list[_Task], Field(alias="job.tasks", min_length=1, max_length=GROUPS_MAX)]

    @property
    def kind(self) -> str:
        return self.am_type or self.old_am_type


class _Node(LenientSection):
    model_config = ConfigDict(extra="allow", frozen=True)

    node: Name = "null"
    """SLS gives this name to a node without one, which the node file of its own samples has."""
    labels: Text = ""


class _Rack(LenientSection):
    rack: Name
    nodes: Annotated[list[_Node], Field(min_length=1, max_length=NODES_MAX)]


def read_jobs(text: str, source: str, defaults: Defaults) -> Workload:
    """The workload of the jobs in an SLS trace. Raises ConfigurationException with all faults."""
    reader = _Reader(source, defaults)
    for number, (line, document) in enumerate(json_documents(text, source), 1):
        prefix = f"job {number}"
        if not (isinstance(document, dict) and "num.nodes" in document):
            job = reader.faults.checked(_Job, document, prefix, line)
            if job is not None:
                reader.add(job, prefix, line)
    return reader.workload()


def read_racks(text: str, source: str) -> tuple[WorkloadNode, ...]:
    """The nodes in an SLS node file. Raises ConfigurationException with all faults."""
    faults, nodes = Faults(source), list[WorkloadNode]()
    for number, (line, document) in enumerate(json_documents(text, source), 1):
        rack = faults.checked(_Rack, document, f"rack {number}", line)
        for position, node in enumerate(rack.nodes if rack else (), 1):
            prefix = f"rack {number}.nodes[{position}]"
            resource = _amounts(node, "", NODE_RESOURCE, faults, prefix, line)
            label = node.labels.split(",")[0].split("(")[0].strip()
            nodes.append(WorkloadNode(node.node, resource, f"/{rack.rack}" if rack else "", label))
    faults.refuse()
    return tuple(nodes)


class _Reader:
    """Turns jobs into applications, and notes what it had to assume."""

    def __init__(self, source: str, defaults: Defaults) -> None:
        self.faults = Faults(source)
        self._defaults = defaults
        self._tally = WorkloadCount(source)
        self._account = EvidenceAccount()
        self._applications: list[WorkloadApplication] = []
        self._unsized = self._opportunistic = self._ignored = self._without_user = 0

    def add(self, job: _Job, prefix: str, line: int) -> None:
        """Add the applications of a job."""
        if job.queue is None:
            remedy = 'write "job.queue.name"'
            self.faults.add(prefix, "names no queue", remedy, line=line)
            return
        groups = tuple(self._groups(job, prefix, line))
        self._without_user += job.user is None
        am = _amounts(job, "am.", AM_RESOURCE, self.faults, prefix, line)
        containers = sum(len(group.durations_ms) for group in groups)
        for copy in range(max(job.count, 1)):
            self._tally.add(containers, line)
            name = job.id or f"job-{len(self._applications) + 1}"
            self._applications.append(
                WorkloadApplication(
                    name if job.count <= 1 else f"{name}-{copy + 1}",
                    job.start,
                    job.user or self._defaults.user,
                    job.queue,
                    groups,
                    am,
                    job.kind,
                    label=job.label,
                    am_start_ms=REAL_AM_START,
                )
            )

    def workload(self) -> Workload:
        """All applications, from the first submission on. Raises ConfigurationException with all faults."""
        applications = rebased(self._applications, self.faults)
        self.faults.refuse()
        return Workload(applications, tuple(self._assumptions()), self._account.evidence())

    def _groups(self, job: _Job, prefix: str, line: int) -> Iterator[TaskGroup]:
        copies = max(job.count, 1)
        tasks = [self._task(task, copies, f"{prefix}.job.tasks[{i}]", line) for i, task in enumerate(job.tasks, 1)]
        if job.kind != "mapreduce":
            return iter(grouped(tasks))
        maps = [task.with_priority(MAP_PRIORITY) for task in tasks if task.name == "map"]
        reduces = [task.with_priority(REDUCE_PRIORITY) for task in tasks if task.name == "reduce"]
        self._ignored += len(tasks) - len(maps) - len(reduces)
        return iter(staged(maps, reduces))

    def _task(self, task: _Task, copies: int, prefix: str, line: int) -> TraceTask:
        duration_ms = task.duration_ms
        if not 0 < duration_ms <= TIME_MS_MAX:
            remedy = "write container.duration.ms, or container.start.ms and a later container.end.ms"
            self.faults.add(prefix, "has no duration from 1 ms to a year", remedy, value=duration_ms, line=line)
        resource = _amounts(task, "container.", self._defaults.container, self.faults, prefix, line)
        has_size = f"container.{MEMORY_MB}" in (task.model_extra or {})
        self._unsized += not has_size
        basis, about = (Basis.RECORDED, SIZED_ABOUT) if has_size else (Basis.ASSUMED, UNSIZED_ABOUT)
        self._account.add(basis, about, resource.memory_mb * duration_ms * max(task.count, 1) * copies)
        self._opportunistic += task.execution != EXECUTION_MODELLED
        host = (task.host.rpartition("/")[2],) if task.host else ()
        return TraceTask(duration_ms, resource, task.priority, host, max(task.delay, 0), task.type, max(task.count, 1))

    def _assumptions(self) -> Iterator[str]:
        if self._unsized:
            yield f"{self._unsized} entries of tasks do not say their memory: {self._defaults.container} is assumed."
        if self._without_user:
            yield f"{self._without_user} jobs name no user: {self._defaults.user} is assumed."
        if self._ignored:
            yield f"{self._ignored} tasks of MapReduce jobs are neither map nor reduce and are left out, as in SLS."
        if self._opportunistic:
            yield f"{self._opportunistic} entries of tasks are opportunistic; they are simulated as guaranteed."
        yield "A task runs for as long as in the trace, whichever node it gets; reduces wait for all maps, as in SLS."


def _amounts(
    entry: LenientSection, prefix: str, default: Resource, faults: Faults, path: str, line: int
) -> Resource:  # its arguments are the context of one fault
    """The resource in the extra keys that begin with `prefix`."""
    known = default.amounts()
    for key, value in (entry.model_extra or {}).items():
        name = key.removeprefix(prefix)
        if not key.startswith(prefix) or not _is_resource(name):
            continue
        amount = _whole(value)
        if amount is None or not (1 if name in (MEMORY_MB, VCORES) else 0) <= amount <= AMOUNT_MAX:
            faults.add(f"{path}.{key}", "is not a valid amount", "write a whole number", value=value, line=line)
        else:
            known[name] = amount
    return Resource.of(known)


def _is_resource(name: str) -> bool:
    """True for a resource type: memory-mb, vcores, or a name with a namespace, for example yarn.io/gpu."""
    return name in (MEMORY_MB, VCORES) or "/" in name


def _whole(value: Any) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None


def hosts_of(workload: Workload) -> tuple[WorkloadNode, ...]:
    """The hosts that a trace names, with SLS's default size: the cluster that SLS simulates without a node file."""
    hosts = {host for application in workload.applications for group in application.groups for host in group.hosts}
    return tuple(WorkloadNode(host, NODE_RESOURCE) for host in sorted(hosts))
