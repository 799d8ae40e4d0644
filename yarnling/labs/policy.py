"""Lab 2: an ordering policy. The learner's function decides which application of a queue is offered a node first.

Each seed draws a workload for one queue: large applications, many small ones behind them, and urgent ones. It runs
under Hadoop's own policies and under the learner's. In every seed the order must be valid and nobody may starve; over
all seeds, applications must end sooner than with fifo, and urgent ones about as soon.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean

from msgspec import Struct

from rm.scheduler.capacity.queue_update import reorder
from rm.scheduler.model.application_order import GivenOrderingPolicy
from rm.scheduler.model.leaf_queue import LeafQueue
from yarn.resource import Resource
from yarnling.labs.limits import TooSlow, processor_time
from yarnling.labs.order import CheckedOrder, OrderMistake, load_order
from yarnling.simulation.cluster import SimulatedCluster
from yarnling.whatif.containers import ContainerOutcome
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.run import RunOptions, run_what_if, what_if_configuration
from yarnling.workload.model import RequestStyle, TaskGroup, Workload, WorkloadApplication, WorkloadNode

QUEUE = "default"
CS = "yarn.scheduler.capacity."
_POLICY = f"{CS}root.{QUEUE}.ordering-policy"
FIFO, FAIR, FAIR_BY_SIZE = "fifo", "fair", "fair-by-size"
HADOOP_POLICIES: dict[str, dict[str, str]] = {
    FIFO: {_POLICY: "fifo"},
    FAIR: {_POLICY: "fair"},
    FAIR_BY_SIZE: {_POLICY: "fair", f"{_POLICY}.fair.enable-size-based-weight": "true"},
}
"""{policy of Hadoop's: its settings}; fair-by-size is fair with enable-size-based-weight."""
YOURS = "yours"
AM_SIZE = Resource(256, 1)
URGENT = 5
"""The priority of urgent applications; that of the others is 0."""
SETTINGS = {
    "yarn.scheduler.minimum-allocation-mb": str(AM_SIZE.memory_mb),
    f"{CS}maximum-am-resource-percent": "1",
    "yarn.cluster.max-application-priority": str(URGENT),
}
NODE = Resource(8192, 8)
SIZE = Resource(1024, 1)
SLOTS = NODE.memory_mb // SIZE.memory_mb
"""The containers that a node holds."""
UNTIL_MS = 1_800_000
"""The end of a run. The work of a seed takes about three minutes, whatever the order."""
PROCESSOR_S = 30.0
"""The processor time that a run with the learner's order may take. It takes about half a second."""

IN_TIME = "order returns in time"
ENDS = "every application ends"
SERVED = "no application starves"
SOONER = "applications end sooner than with fifo"
URGENT_FIRST = "urgent applications end as soon as with fifo"
STARVED_FACTOR = 1.1
"""An application may wait for its next container at most so many times as long as the longest wait with fifo."""
SOONER_FACTOR = 0.75
"""The mean time until an application ends must be at most this part of that with fifo."""
URGENT_FACTOR = 1.5
"""That of urgent applications may be at most so many times that with fifo: a container that runs is not taken away."""


class ApplicationRun(Struct, frozen=True):
    """An application in one run. `took_s`: from its submission to its end, None if it did not end.

    `longest_wait_s`: the longest time in which it had requests and got no container.
    """

    name: str
    priority: int
    took_s: float | None
    longest_wait_s: float


class PolicyRun(Struct, frozen=True):
    """A run of a seed's workload with one policy."""

    applications: tuple[ApplicationRun, ...]
    result: WhatIfResult

    @property
    def longest_wait_s(self) -> float:
        return max(each.longest_wait_s for each in self.applications)

    def took_s(self, *, urgent: bool = False) -> list[float]:
        """The times of all applications, or only of urgent ones; the length of the run for one that did not end."""
        chosen = [each for each in self.applications if each.priority == URGENT or not urgent]
        return [UNTIL_MS / 1000 if each.took_s is None else each.took_s for each in chosen]


class PolicySeed(Struct, frozen=True):
    """The runs of one seed by policy, and the checks that the learner's failed, each with a sentence.

    Without a run of the learner's, its order was stopped.
    """

    seed: int
    runs: dict[str, PolicyRun]
    failed: tuple[OrderMistake, ...]


class PolicyFigures(Struct, frozen=True):
    """The figures of a policy over all seeds, in seconds: mean times to the end, and the longest wait of all."""

    took_s: float
    urgent_took_s: float
    longest_wait_s: float


def start_file() -> str:
    """The file that a learner starts with: the order of fifo."""
    return Path(__file__).with_name("start").joinpath("policy.py").read_text()


def lab_nodes(seed: int) -> tuple[WorkloadNode, ...]:
    """The nodes of a seed's cluster."""
    count = random.Random(f"lab policy {seed} nodes").randint(3, 5)
    return tuple(WorkloadNode(f"n{number}", NODE) for number in range(1, count + 1))


def lab_workload(seed: int) -> Workload:
    """The workload of a seed: it keeps the cluster busy for two minutes, and more is requested than it holds.

    One or two large applications come first. The small ones that follow need the whole cluster, one after the other,
    so that a large one that always gives way to them gets nothing until the last has ended.
    """
    draw = random.Random(f"lab policy {seed}")
    slots = SLOTS * len(lab_nodes(seed))
    drawn: list[tuple[float, str, int, float, int]] = []
    for _ in range(draw.choice((1, 1, 2))):
        drawn.append((draw.uniform(0, 8), "large", round(slots * draw.uniform(2.5, 4)), draw.uniform(10, 14), 0))
    at_s = 4.0
    for _ in range(draw.randint(14, 18)):
        tasks, seconds = round(slots * draw.uniform(0.4, 0.9)), draw.uniform(6, 10)
        drawn.append((at_s, "small", tasks, seconds, 0))
        at_s += tasks * seconds / slots * draw.uniform(0.8, 1.1)
    for _ in range(2):
        drawn.append(
            (draw.uniform(10, at_s), "urgent", round(slots * draw.uniform(0.2, 0.5)), draw.uniform(5, 8), URGENT)
        )
    return Workload(tuple(_application(number, *each) for number, each in enumerate(sorted(drawn), 1)))


def _application(number: int, at_s: float, kind: str, tasks: int, seconds: float, priority: int) -> WorkloadApplication:
    return WorkloadApplication(
        f"{number} {kind}",
        round(1000 * at_s),
        "ann",
        QUEUE,
        (TaskGroup(SIZE, (round(1000 * seconds),) * max(2, tasks)),),
        am_resource=AM_SIZE,
        priority=priority,
        client=RequestStyle.EXACT,
    )


def run_hadoop(seed: int, policy: str) -> PolicyRun:
    """Run the workload of a seed with a policy of Hadoop's."""
    return _run(seed, HADOOP_POLICIES[policy], RunOptions(until_ms=UNTIL_MS))


def judge_seed(path: Path, seed: int) -> PolicySeed:
    """Run the workload of a seed with Hadoop's policies and with the learner's, and check the latter."""
    runs = {policy: run_hadoop(seed, policy) for policy in HADOOP_POLICIES}
    try:
        with processor_time(PROCESSOR_S, str(path)):
            yours, mistake = _run_yours(path, seed)
    except TooSlow as slow:
        return PolicySeed(seed, runs, (OrderMistake(IN_TIME, slow.sentence(path)),))
    if mistake is not None:
        return PolicySeed(seed, runs, (mistake,))
    failed = tuple(_violated(yours, runs[FIFO]))
    return PolicySeed(seed, {**runs, YOURS: yours}, failed)


def _run_yours(path: Path, seed: int) -> tuple[PolicyRun, OrderMistake | None]:
    checked: list[CheckedOrder] = []

    def began(cluster: SimulatedCluster) -> None:
        leaf = cluster.rm.core.context.scheduler.queue(QUEUE)
        assert isinstance(leaf, LeafQueue)
        checked.append(CheckedOrder(load_order(path), str(path), cluster.engine.now_ms))
        reorder(leaf, GivenOrderingPolicy(checked[0]))

    def is_valid(_: object) -> bool:
        return checked[0].mistake is None

    options = RunOptions(until_ms=UNTIL_MS, began=began)
    run = _run(seed, HADOOP_POLICIES[FIFO], options, is_valid)
    return run, checked[0].mistake


def _run(
    seed: int, settings: dict[str, str], options: RunOptions, goes_on: Callable[[object], bool] = lambda _: True
) -> PolicyRun:
    conf = what_if_configuration(None, {**SETTINGS, **settings}).conf
    workload = lab_workload(seed)
    result = run_what_if(conf, workload, lab_nodes(seed), options, goes_on)
    containers: dict[int, list[ContainerOutcome]] = {}
    for container in result.containers:
        containers.setdefault(container.application, []).append(container)
    applications = [
        ApplicationRun(
            work.name,
            work.priority,
            None if outcome.ended_ms is None else (outcome.ended_ms - outcome.submitted_ms) / 1000,
            longest_wait_ms(containers.get(position, ()), result.until_ms) / 1000,
        )
        for position, (work, outcome) in enumerate(zip(workload.applications, result.applications, strict=True))
    ]
    return PolicyRun(tuple(applications), result)


def longest_wait_ms(containers: Iterable[ContainerOutcome], until_ms: int) -> int:
    """The longest time in which an application with these containers had requests and got no container."""
    happened: list[tuple[int, int]] = []
    for container in containers:
        over_ms = next((at for at in (container.allocated_ms, container.withdrawn_ms) if at is not None), until_ms)
        happened += [(container.requested_ms, 1), (max(over_ms, container.requested_ms), -1)]
    longest_ms = waiting = since_ms = 0
    # What is requested at the same time comes first.
    for at_ms, change in sorted(happened, key=lambda one: (one[0], -one[1])):
        if change < 0:
            longest_ms = max(longest_ms, at_ms - since_ms)
        if change < 0 or not waiting:
            since_ms = at_ms
        waiting += change
    return longest_ms


def _violated(yours: PolicyRun, fifo: PolicyRun) -> Iterable[OrderMistake]:
    for each in yours.applications:
        if each.took_s is None:
            yield OrderMistake(ENDS, f"application {each.name} has not ended after {UNTIL_MS // 60_000} min.")
    bound_s = STARVED_FACTOR * fifo.longest_wait_s
    longest = max(yours.applications, key=lambda each: each.longest_wait_s)
    if longest.longest_wait_s > bound_s:
        yield OrderMistake(
            SERVED,
            f"application {longest.name} had requests and got no container for {longest.longest_wait_s:.0f} s; the "
            f"longest wait with fifo is {fifo.longest_wait_s:.0f} s, and at most {bound_s:.0f} s are allowed.",
        )


def figures_of(seeds: Sequence[PolicySeed], policy: str) -> PolicyFigures | None:
    """The figures of a policy over the seeds; None if one has no run with it."""
    runs = [seed.runs[policy] for seed in seeds if policy in seed.runs]
    if len(runs) < len(seeds):
        return None
    return PolicyFigures(
        fmean(took_s for run in runs for took_s in run.took_s()),
        fmean(took_s for run in runs for took_s in run.took_s(urgent=True)),
        max(run.longest_wait_s for run in runs),
    )


def judge_all(seeds: Sequence[PolicySeed]) -> tuple[OrderMistake, ...]:
    """The checks that fail over all seeds together; none while a seed has no run of the learner's."""
    fifo, yours = figures_of(seeds, FIFO), figures_of(seeds, YOURS)
    if fifo is None or yours is None:
        return ()
    wrong: list[OrderMistake] = []
    for check, took_s, compared_s, factor in (
        (SOONER, yours.took_s, fifo.took_s, SOONER_FACTOR),
        (URGENT_FIRST, yours.urgent_took_s, fifo.urgent_took_s, URGENT_FACTOR),
    ):
        if took_s > factor * compared_s:
            wrong.append(
                OrderMistake(
                    check,
                    f"they end {took_s:.1f} s after their submission on average, with fifo {compared_s:.1f} s; at most "
                    f"{factor * compared_s:.1f} s are allowed.",
                )
            )
    return tuple(wrong)
