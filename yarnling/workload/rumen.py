"""Reads Rumen's job traces: JSON objects of MapReduce jobs, one after another (AMDefinitionRumen).

As in SLS, the last attempt of a task counts: its host is where the task is wanted, its times are the duration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from yarnling.workload.defaults import Defaults
from yarnling.workload.documents import Faults, LenientSection, json_documents
from yarnling.workload.limits import GROUPS_MAX, TIME_MS_MAX, Name, Text
from yarnling.workload.model import Workload, WorkloadApplication
from yarnling.workload.sls import AM_RESOURCE
from yarnling.workload.start_times import REAL_AM_START
from yarnling.workload.submissions import rebased
from yarnling.workload.tally import WorkloadCount
from yarnling.workload.task_groups import MAP_PRIORITY, REDUCE_PRIORITY, TraceTask, staged

_Time = Annotated[int, Field(ge=-1, le=1 << 50)]


class _Attempt(LenientSection):
    host: Annotated[Text | None, Field(alias="hostName")] = None
    start: Annotated[_Time, Field(alias="startTime")]
    finish: Annotated[_Time, Field(alias="finishTime")]


class _Task(LenientSection):
    attempts: Annotated[tuple[_Attempt, ...], Field(max_length=1000)] = ()


class _Job(LenientSection):
    id: Annotated[Text, Field(alias="jobID")]
    user: Name | None = None
    queue: Name | None = None
    submit: Annotated[_Time, Field(alias="submitTime")]
    maps: Annotated[tuple[_Task, ...], Field(alias="mapTasks", max_length=GROUPS_MAX)] = ()
    reduces: Annotated[tuple[_Task, ...], Field(alias="reduceTasks", max_length=GROUPS_MAX)] = ()


def read_rumen(text: str, source: str, defaults: Defaults) -> Workload:
    """The workload of the jobs in a Rumen trace. Raises ConfigurationException with all faults."""
    faults, tally, applications, left_out = Faults(source), WorkloadCount(source), list[WorkloadApplication](), 0
    for number, (line, document) in enumerate(json_documents(text, source), 1):
        job = faults.checked(_Job, document, f"job {number}", line)
        if job is not None:
            maps = _tasks(job.maps, "map", MAP_PRIORITY, defaults)
            reduces = _tasks(job.reduces, "reduce", REDUCE_PRIORITY, defaults)
            left_out += len(job.maps) + len(job.reduces) - len(maps) - len(reduces)
            tally.add(len(maps) + len(reduces), line)
            user, queue = job.user or defaults.user, job.queue or defaults.queue
            groups = tuple(staged(maps, reduces))
            applications.append(
                WorkloadApplication(
                    job.id,
                    max(job.submit, 0),
                    user,
                    queue,
                    groups,
                    AM_RESOURCE,
                    "mapreduce",
                    am_start_ms=REAL_AM_START,
                )
            )
    ordered = rebased(applications, faults)
    faults.refuse()
    return Workload(ordered, _assumptions(left_out, defaults))


def _tasks(tasks: Sequence[_Task], name: str, priority: int, defaults: Defaults) -> list[TraceTask]:
    found: list[TraceTask] = []
    for task in tasks:
        last = task.attempts[-1] if task.attempts else None
        if last is not None and 0 < last.finish - last.start <= TIME_MS_MAX:
            hosts = (last.host.rpartition("/")[2],) if last.host else ()
            found.append(TraceTask(last.finish - last.start, defaults.container, priority, hosts, name=name))
    return found


def _assumptions(left_out: int, defaults: Defaults) -> tuple[str, ...]:
    without = (f"{left_out} tasks have no attempt that lasted, and are left out.",) if left_out else ()
    return (
        *without,
        f"The trace does not say what tasks may use: each gets {defaults.container}, each AM {AM_RESOURCE}.",
        "A task is wanted on the host of its last attempt and lasts as long as that; reduces wait for all maps.",
    )
