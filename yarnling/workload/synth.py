"""Reads SLS's SYNTH format: classes of jobs with distributions, from which jobs are drawn (SynthTraceJobProducer).

Hadoop draws with Java's generator; the same seed gives another workload here, with the same distributions. A deviation
of 0 means a sixth of the average, and a container has at least 1024 MB and 1 vcore, as in SynthUtils and SynthJob.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from wire.files.yaml_file import refusal
from yarn.resource import Resource
from yarnling.workload.defaults import Defaults
from yarnling.workload.distribution import Choice, Distribution, Fixed, Lognormal, Normal, weighted
from yarnling.workload.documents import Faults, LenientSection, json_documents
from yarnling.workload.limits import APPLICATIONS_MAX, CONTAINERS_MAX, NODES_MAX, TIME_MS_MAX, Amount, Name, Text
from yarnling.workload.model import TaskGroup, Workload, WorkloadApplication, WorkloadNode
from yarnling.workload.sls import AM_RESOURCE, NODE_RESOURCE
from yarnling.workload.start_times import REAL_AM_START
from yarnling.workload.submissions import in_order
from yarnling.workload.tally import WorkloadCount
from yarnling.workload.task_groups import MAP_PRIORITY, REDUCE_PRIORITY, TraceTask, grouped, staged

MEMORY_MB_MIN = 1024
VCORES_MIN = 1

_Number = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
_Weight = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class _Sample(LenientSection):
    """A number: `val` alone is fixed, with `std` a distribution, `discrete` a choice (Sample)."""

    val: _Number | None = None
    std: _Number | None = None
    dist: Name = "LOGNORM"
    discrete: Annotated[list[_Number], Field(max_length=10_000)] | None = None
    weights: Annotated[list[_Weight], Field(max_length=10_000)] | None = None

    @field_validator("dist")
    @classmethod
    def _check_dist(cls, dist: str) -> str:
        if dist not in ("LOGNORM", "NORM"):
            raise refusal("is not a valid distribution", "write LOGNORM or NORM")
        return dist

    @field_validator("weights")
    @classmethod
    def _check_weights(cls, weights: list[float] | None, info: ValidationInfo) -> list[float] | None:
        if weights is not None and (len(weights) != len(info.data.get("discrete") or ()) or not sum(weights)):
            raise refusal("is not one weight for each discrete value", "write as many, at least one of them above 0")
        return weights

    def distribution(self) -> Distribution:
        """The distribution that values are drawn from; without `val` and `discrete`, 0."""
        if self.val is None:
            values = tuple(self.discrete or (0.0,))
            return Choice(values, tuple(self.weights or [1.0] * len(values)))
        if self.std is None or not self.val:
            return Fixed(self.val)
        std = self.std or self.val / 6
        return Normal(self.val, std) if self.dist == "NORM" else Lognormal.of_mean(self.val, std)


class _Task(LenientSection):
    type: Name = "map"
    count: _Sample
    time: _Sample
    max_memory: _Sample = _Sample(val=MEMORY_MB_MIN)
    max_vcores: _Sample = _Sample(val=VCORES_MIN)
    priority: Amount = MAP_PRIORITY


class _JobClass(LenientSection):
    """A class of jobs. The older form of the format, with maps and reduces only, is turned into the newer one."""

    class_name: Text = "job"
    user_name: Name | None = None
    class_weight: _Weight = 1.0
    type: Name = "mapreduce"
    deadline_factor: _Sample = _Sample(val=0)
    duration: _Sample = _Sample(val=0)
    reservation: _Sample = _Sample(val=0)
    tasks: Annotated[list[_Task], Field(min_length=1, max_length=100)]

    @model_validator(mode="before")
    @classmethod
    def _from_older(cls, entry: Any) -> Any:
        if not isinstance(entry, dict) or entry.get("tasks") is not None:
            return entry

        def sample(name: str) -> dict[str, Any]:
            return {"val": entry.get(f"{name}_avg", 0), "std": entry.get(f"{name}_stddev", 0)}

        def task(name: str, priority: int) -> dict[str, Any]:
            letter = name[0]
            return {
                "type": name,
                "count": sample(f"{letter}tasks"),
                "time": sample(f"{letter}time"),
                "max_memory": sample(f"{name}_max_memory"),
                "max_vcores": sample(f"{name}_max_vcores"),
                "priority": priority,
            }

        return {
            **entry,
            "type": "mapreduce",
            "deadline_factor": sample("deadline_factor"),
            "duration": sample("dur"),
            "reservation": {"val": entry.get("chance_of_reservation", 0)},
            "tasks": [task("map", MAP_PRIORITY), task("reduce", REDUCE_PRIORITY)],
        }


class _TimeSample(LenientSection):
    time: Annotated[int, Field(ge=0, le=TIME_MS_MAX // 1000)]
    weight: _Weight


def _some_weight(items: list[Any], name: str) -> list[Any]:
    if not any(getattr(item, name) for item in items):
        raise refusal("has only weights of 0", "give one of them a weight above 0")
    return items


class _SynthWorkload(LenientSection):
    workload_name: Text = ""
    workload_weight: _Weight = 1.0
    queue_name: Name
    job_classes: Annotated[list[_JobClass], Field(min_length=1, max_length=1000)]
    time_distribution: Annotated[list[_TimeSample], Field(min_length=1, max_length=100_000)]

    @field_validator("job_classes", "time_distribution")
    @classmethod
    def _check_weights(cls, items: list[Any], info: ValidationInfo) -> list[Any]:
        return _some_weight(items, "class_weight" if info.field_name == "job_classes" else "weight")


class _Trace(LenientSection):
    num_nodes: Annotated[int, Field(ge=0, le=NODES_MAX)] = 0
    nodes_per_rack: Annotated[int, Field(le=NODES_MAX)] = 1
    num_jobs: Annotated[int, Field(ge=0, le=APPLICATIONS_MAX)]
    rand_seed: int = 0
    workloads: Annotated[list[_SynthWorkload], Field(min_length=1, max_length=1000)]

    @field_validator("workloads")
    @classmethod
    def _check_weights(cls, items: list[Any]) -> list[Any]:
        return _some_weight(items, "workload_weight")


def read_synth(text: str, source: str, defaults: Defaults) -> Workload:
    """A workload drawn from a SYNTH description. Raises ConfigurationException with all faults."""
    trace, tally = _trace(text, source), WorkloadCount(source)
    draw = _Draw(Random(f"{trace.rand_seed}/{defaults.seed}"), defaults, tally)
    applications = [draw.application(trace, number) for number in range(trace.num_jobs)]
    return Workload(in_order(applications), tuple(_assumptions(trace, defaults)))


def synth_nodes(text: str, source: str) -> tuple[WorkloadNode, ...]:
    """The nodes that a SYNTH description counts, on racks in turn. Raises ConfigurationException with all faults."""
    trace = _trace(text, source)
    racks = max(1, trace.num_nodes // max(1, trace.nodes_per_rack))
    return tuple(WorkloadNode(f"node{i}", NODE_RESOURCE, f"/rack{i % racks}") for i in range(trace.num_nodes))


def _trace(text: str, source: str) -> _Trace:
    faults = Faults(source)
    line, document = next(json_documents(text, source))
    trace = faults.checked(_Trace, document, "", line)
    faults.refuse()
    assert trace is not None, "without faults there is a trace"
    return trace


class _Draw:
    """Draws jobs from one stream of random numbers."""

    def __init__(self, random: Random, defaults: Defaults, tally: WorkloadCount) -> None:
        self._random = random
        self._tally = tally
        self._defaults = defaults

    def application(self, trace: _Trace, number: int) -> WorkloadApplication:
        """The next job."""
        self._tally.add(0)
        workload = self._one(trace.workloads, "workload_weight")
        submit_ms = self._submit_s(workload.time_distribution) * 1000
        job = self._one(workload.job_classes, "class_weight")
        duration_ms = min(round(self._number(job.duration) * 1000), TIME_MS_MAX)
        has_deadline = self._random.random() <= self._number(job.reservation)
        deadline_ms = min(math.ceil(self._number(job.deadline_factor) * duration_ms), TIME_MS_MAX)
        groups = self._groups(job, duration_ms)
        user = job.user_name or self._defaults.user
        name = f"{job.class_name}_{number:06d}"
        deadline = deadline_ms if has_deadline and deadline_ms else None
        return WorkloadApplication(
            name,
            submit_ms,
            user,
            workload.queue_name,
            groups,
            AM_RESOURCE,
            job.type,
            deadline_ms=deadline,
            am_start_ms=REAL_AM_START,
        )

    def _groups(self, job: _JobClass, duration_ms: int) -> tuple[TaskGroup, ...]:
        tasks = [list(self._tasks(task, job.type == "stream", duration_ms)) for task in job.tasks]
        if job.type == "mapreduce":
            stages = {
                name: [each for some in tasks for each in some if each.name == name] for name in ("map", "reduce")
            }
            return tuple(staged(*stages.values()))
        return tuple(grouped(each for some in tasks for each in some))

    def _tasks(self, task: _Task, is_stream: bool, duration_ms: int) -> Iterator[TraceTask]:
        count = min(round(self._number(task.count)), CONTAINERS_MAX)
        self._tally.add_containers(count)
        memory_mb = max(round(self._number(task.max_memory)), MEMORY_MB_MIN)
        vcores = max(round(self._number(task.max_vcores)), VCORES_MIN)
        unit_ms = 1000 if self._defaults.synth_times_in_seconds else 1
        for _ in range(count):
            lasts_ms = duration_ms if is_stream else round(self._number(task.time) * unit_ms)
            lasts_ms = min(max(lasts_ms, 1), TIME_MS_MAX)
            yield TraceTask(lasts_ms, Resource(memory_mb, vcores), task.priority, name=task.type)

    def _submit_s(self, times: list[_TimeSample]) -> int:
        at = weighted(tuple(time.weight for time in times), self._random.random())
        start = times[at].time
        length = times[min(at + 1, len(times) - 1)].time - start
        share = self._random.random()
        return start + (math.floor(share * length) if length > 0 else 0)

    def _one(self, items: list[Any], weight: str) -> Any:
        return items[weighted(tuple(getattr(item, weight) for item in items), self._random.random())]

    def _number(self, sample: _Sample) -> float:
        return sample.distribution().quantile(self._random.random())


def _assumptions(trace: _Trace, defaults: Defaults) -> Iterator[str]:
    unit = "seconds" if defaults.synth_times_in_seconds else "milliseconds, as SLS takes them"
    yield (
        f"{trace.num_jobs} jobs were drawn with the file's seed {trace.rand_seed} and seed {defaults.seed}; "
        "Hadoop's generator would draw others from the same distributions."
    )
    yield f"The times of tasks are {unit}."
    if any(job.type == "stream" for workload in trace.workloads for job in workload.job_classes):
        yield "A task of a stream runs for as long as its job; SLS starts it again whenever it ends."
    yield "A deadline counts from the submission; reservations are not made."
