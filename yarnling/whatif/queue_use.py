"""Use of queues over time, against what they are guaranteed and at most allowed, from samples.

A sample counts until the next one. Amounts are of one resource type, the one that the cluster has least left of among
those that the scheduler compares: with the DefaultResourceCalculator always memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from yarn.resource import MEMORY_MB, Resource
from yarn.settings.scheduler import ROOT
from yarnling.whatif.result import QueueSample, WhatIfResult

SamplesByQueue: TypeAlias = dict[tuple[str, str], list[QueueSample]]
"""{(queue, partition): its samples}."""
AT_MAXIMUM_FRACTION = 0.95
"""A queue counts as at its maximum from this share of it on: the rest is often smaller than a container."""


class QueueUse(Struct, frozen=True):
    """The use of a queue in one partition; amounts are means over time if not called peak.

    `above_guarantee` and `at_maximum` are fractions of the time. `use`: of the guarantee, of the root of the cluster.
    `peak_use`: the highest use as a fraction of the guarantee at that moment; None for a queue without one.
    """

    queue: str
    label: str
    average: float
    peak: int
    guaranteed: float
    maximum: float
    pending: float
    pending_peak: int
    above_guarantee: float
    at_maximum: float
    peak_use: float | None

    @property
    def name(self) -> str:
        """The queue's path, with the partition unless it is the default one."""
        return self.name_of(self.queue)

    def name_of(self, queue: str) -> str:
        """Append the partition to `queue`, a name of this queue, unless it is the default partition."""
        return f"{queue} ({self.label})" if self.label else queue

    @property
    def use(self) -> float | None:
        """The average as a fraction of the guarantee; None for a queue without one."""
        return self.average / self.guaranteed if self.guaranteed else None


def measured_type(result: WhatIfResult) -> str:
    """The counted resource type that the cluster used most of, as a fraction of what it has."""
    amounts = result.cluster.amounts()
    types = [name for name in result.counted if amounts.get(name)] or [MEMORY_MB]
    if len(types) == 1:
        return types[0]
    of_root = [sample.used.amounts() for sample in result.samples if sample.queue == ROOT]
    return max(types, key=lambda name: sum(used.get(name, 0) for used in of_root) / amounts[name])


def queue_uses(by_queue: SamplesByQueue, measured: str, until_ms: int) -> tuple[QueueUse, ...]:
    """The use of each queue in each partition that it has a share or containers of, in the order of the samples."""
    uses = (_use_of(samples, measured, until_ms) for samples in by_queue.values())
    return tuple(use for use in uses if not use.label or use.guaranteed or use.peak)


def whole_uses(whole: Mapping[str, list[QueueSample]], measured: str, until_ms: int) -> dict[str, QueueUse]:
    """{queue: its use in all partitions together}, from `whole_samples`."""
    return {queue: _use_of(samples, measured, until_ms) for queue, samples in whole.items()}


def whole_samples(by_queue: SamplesByQueue) -> dict[str, list[QueueSample]]:
    """{queue: its samples, of all partitions together}."""
    of_queue: dict[str, list[list[QueueSample]]] = {}
    for (queue, _), samples in by_queue.items():
        of_queue.setdefault(queue, []).append(samples)
    return {queue: [_sum(same_time) for same_time in zip(*each, strict=True)] for queue, each in of_queue.items()}


def _sum(samples: Sequence[QueueSample]) -> QueueSample:
    """A sample made of those of a queue's partitions at one time."""
    first, *others = samples
    amounts = {
        field: sum((getattr(other, field) for other in others), getattr(first, field))
        for field in ("used", "reserved", "pending", "guaranteed", "maximum")
        if others
    }
    return replace(first, label="", **amounts)


def samples_by_queue(result: WhatIfResult) -> SamplesByQueue:
    """The samples at the same times for all queues: while a queue does not exist, it has nothing."""
    found: dict[tuple[str, str], dict[int, QueueSample]] = {}
    times: dict[int, None] = {}
    for sample in result.samples:
        found.setdefault((sample.queue, sample.label), {})[sample.time_ms] = sample
        times[sample.time_ms] = None
    none = Resource(0, 0)
    return {
        (queue, label): [
            samples.get(time_ms) or QueueSample(time_ms, queue, none, none, none, none, none, 0, 0, label)
            for time_ms in times
        ]
        for (queue, label), samples in found.items()
    }


def _use_of(samples: Sequence[QueueSample], measured: str, until_ms: int) -> QueueUse:
    times = [sample.time_ms for sample in samples] + [max(until_ms, samples[-1].time_ms)]
    lasts = [later - earlier for earlier, later in pairwise(times)]
    if not sum(lasts):
        lasts = [1] * len(samples)

    def of(field: str) -> list[int]:
        return [getattr(sample, field).amounts().get(measured, 0) for sample in samples]

    def mean(values: Sequence[float]) -> float:
        return sum(value * last for value, last in zip(values, lasts, strict=True)) / sum(lasts)

    used, pending, guaranteed, maximum = of("used"), of("pending"), of("guaranteed"), of("maximum")
    return QueueUse(
        queue=samples[0].queue,
        label=samples[0].label,
        average=mean(used),
        peak=max(used),
        guaranteed=mean(guaranteed),
        maximum=mean(maximum),
        pending=mean(pending),
        pending_peak=max(pending),
        above_guarantee=mean([amount > bound for amount, bound in zip(used, guaranteed, strict=True)]),
        at_maximum=mean(
            [0 < bound <= amount / AT_MAXIMUM_FRACTION for amount, bound in zip(used, maximum, strict=True)]
        ),
        peak_use=max((amount / bound for amount, bound in zip(used, guaranteed, strict=True) if bound), default=None),
    )
