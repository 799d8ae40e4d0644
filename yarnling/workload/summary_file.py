"""Reads summary files: how many applications an hour each queue gets and what they ask for, when there is no trace.

An application is drawn for each arrival; arrivals of a queue are independent of one another (a Poisson process). Each
queue has a stream of random numbers of its own, so a change to one queue leaves the applications of the others alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Annotated, Any

from msgspec.structs import replace
from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from wire.files.yaml_file import MEMORY_KEYS, Section, parse_yaml, refusal
from yarn.resource import Resource
from yarnling.workload.defaults import Defaults
from yarnling.workload.distribution import Exponential, Fixed, weighted
from yarnling.workload.distribution_text import (
    CountDistribution,
    MemoryDistribution,
    StartTimeText,
    Time,
    TimeDistribution,
)
from yarnling.workload.limits import (
    AMOUNT_MAX,
    CONTAINERS_MAX,
    MEMORY_MB_MAX,
    TIME_MS_MAX,
    Amount,
    MemoryMb,
    Name,
    Priority,
    Text,
)
from yarnling.workload.model import (
    AM_RESOURCE,
    RequestStyle,
    TaskGroup,
    Workload,
    WorkloadApplication,
)
from yarnling.workload.start_times import REAL_AM_START, REAL_TASK_START
from yarnling.workload.submissions import in_order
from yarnling.workload.tally import WorkloadCount

HOUR_MS = 3_600_000


_Rate = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


def _weights(value: object) -> object:
    """Users as one name, as a list, or as a mapping of names to weights."""
    names = [value] if isinstance(value, str) else value
    return dict.fromkeys(names, "1") if isinstance(names, list) and all(isinstance(n, str) for n in names) else names


class _Am(Section):
    memory: Annotated[MemoryMb, MEMORY_KEYS] = AM_RESOURCE.memory_mb
    vcores: Annotated[int, Field(ge=1, le=AMOUNT_MAX)] = AM_RESOURCE.vcores


class _Tasks(Section):
    """Containers of one kind. `waits`: for the containers of all entries above."""

    name: Text = ""
    containers: CountDistribution = Fixed(1.0)
    memory: Annotated[MemoryDistribution, MEMORY_KEYS] = Fixed(1024.0)
    vcores: CountDistribution = Fixed(1.0)
    resources: Annotated[dict[Name, Amount], Field(max_length=100, default_factory=dict)]
    duration: TimeDistribution
    priority: Priority = 20
    label: Text = ""
    waits: bool = False


class _Application(Section):
    name: Text = "application"
    weight: _Rate = 1.0
    kind: Text = "yarnling"
    priority: Priority = 0
    label: Text = ""
    deadline: Time | None = None
    am: _Am = _Am()
    tasks: Annotated[list[_Tasks], Field(min_length=1, max_length=100)]


class _Queue(Section):
    """A queue. `per_hour`: applications an hour; as a list, one number for each hour, which repeats."""

    queue: Name
    users: Annotated[
        dict[Name, _Rate], BeforeValidator(_weights), Field(min_length=1, max_length=100_000, default_factory=dict)
    ]
    per_hour: Annotated[
        list[_Rate],
        BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
        Field(min_length=1, max_length=24 * 366),
    ]
    applications: Annotated[list[_Application], Field(min_length=1, max_length=1000)]

    @field_validator("users")
    @classmethod
    def _check_users(cls, users: dict[str, float]) -> dict[str, float]:
        if not any(users.values()):
            raise refusal("has only weights of 0", "give one of them a weight above 0")
        return users

    @field_validator("applications")
    @classmethod
    def _check_weights(cls, items: list[_Application], _: ValidationInfo) -> list[_Application]:
        if not any(item.weight for item in items):
            raise refusal("has only weights of 0", "give one of them a weight above 0")
        return items


class _Summary(Section):
    lasts: Time = 24 * HOUR_MS
    client: RequestStyle = RequestStyle.HADOOP
    am_start: StartTimeText = REAL_AM_START
    task_start: StartTimeText = REAL_TASK_START
    queues: Annotated[list[_Queue], Field(min_length=1, max_length=10_000)]


def read_summary(text: str, source: str, defaults: Defaults) -> Workload:
    """A workload drawn from a summary. Raises ConfigurationException with all faults."""
    summary, tally = parse_yaml(text, source, _Summary), WorkloadCount(source)
    applications: list[WorkloadApplication] = []
    for queue in summary.queues:
        drawn = _Draw(queue, defaults, tally).applications(summary.lasts)
        applications += (
            replace(one, client=summary.client, am_start_ms=summary.am_start, task_start_ms=summary.task_start)
            for one in drawn
        )
    return Workload(
        in_order(applications),
        (
            f"All applications were drawn from a summary with seed {defaults.seed}; nothing was recorded.",
            "Applications of a queue arrive independently of one another, at the rate of their hour.",
        ),
    )


class _Draw:
    """Draws the applications of one queue from a stream of its own."""

    def __init__(self, queue: _Queue, defaults: Defaults, tally: WorkloadCount) -> None:
        self._queue = queue
        self._tally = tally
        self._users = queue.users or {defaults.user: 1.0}
        self._random = Random(f"{defaults.seed}/{queue.queue}")

    def applications(self, until_ms: int) -> Iterator[WorkloadApplication]:
        """The applications in the order of their arrival."""
        for number, submit_ms in enumerate(self._arrivals(until_ms), 1):
            self._tally.add(0)
            kind = self._queue.applications[self._pick([each.weight for each in self._queue.applications])]
            user = list(self._users)[self._pick(list(self._users.values()))]
            name = f"{kind.name}-{self._queue.queue.rpartition('.')[2]}-{number}"
            groups, am = tuple(self._groups(kind)), Resource(kind.am.memory, kind.am.vcores)
            yield WorkloadApplication(
                name,
                submit_ms,
                user,
                self._queue.queue,
                groups,
                am,
                kind.kind,
                kind.priority,
                kind.label,
                kind.deadline,
            )

    def _arrivals(self, until_ms: int) -> Iterator[int]:
        """The times of a Poisson process whose rate changes by the hour."""
        rates, hour = self._queue.per_hour, 0
        while hour * HOUR_MS < until_ms:
            rate, at = rates[hour % len(rates)], 0.0
            while rate:
                at += Exponential(HOUR_MS / rate).quantile(self._random.random())
                if at >= HOUR_MS or hour * HOUR_MS + at >= until_ms:
                    break
                yield hour * HOUR_MS + int(at)
            hour += 1

    def _groups(self, kind: _Application) -> Iterator[TaskGroup]:
        for position, tasks in enumerate(kind.tasks):
            count = min(max(round(self._number(tasks.containers)), 1), CONTAINERS_MAX)
            memory_mb = min(max(round(self._number(tasks.memory)), 1), MEMORY_MB_MAX)
            vcores = min(max(round(self._number(tasks.vcores)), 1), AMOUNT_MAX)
            self._tally.add_containers(count)
            durations = tuple(self._duration_ms(tasks) for _ in range(count))
            after = position - 1 if tasks.waits and position else None
            resource = Resource(memory_mb, vcores, tuple(tasks.resources.items()))
            yield TaskGroup(resource, durations, tasks.priority, after, label=tasks.label, name=tasks.name)

    def _duration_ms(self, tasks: _Tasks) -> int:
        return min(max(round(self._number(tasks.duration)), 1), TIME_MS_MAX)

    def _number(self, distribution: Any) -> float:
        return float(distribution.quantile(self._random.random()))

    def _pick(self, weights: list[float]) -> int:
        return weighted(tuple(weights), self._random.random())
