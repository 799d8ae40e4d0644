"""The cluster of lab 3 as it should be, with the jobs of a quarter of an hour. Pure.

A seed draws the names, the number of machines and the mistake. The jobs come one after another, so that each rule of
the house is needed at some time: a survey that takes the idle cluster, a nightly job that takes its guarantee back, a
backfill and a computation that have the cluster to themselves, training on the machine with a GPU, a dozen reports.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from msgspec import Struct

from yarn.configuration import Configuration
from yarn.resource import Resource
from yarn.settings import nodemanager, scheduler
from yarn.settings.preemption import MAX_WAIT_BEFORE_KILL, NATURAL_TERMINATION_FACTOR, TOTAL_PER_ROUND
from yarn.settings.scheduler import PREFIX, ROOT, queue_key
from yarnling.workload.model import TaskGroup, Workload, WorkloadApplication, WorkloadNode

SEED_MAX = 1_000_000
GPU = "gpu"
MACHINE = Resource(16384, 16)
"""The size of each machine. Its NodeManager offers less memory, because the system needs some."""
OFFERED_MB = 13824
TASK_MB = AM_MB = 1152
"""Twelve of them fill a machine: what is left on each could serve nobody, and yet counts as free for preemption."""
UNTIL_MS = 1_200_000
"""The virtual time in which everything has ended on a cluster without a mistake, with time to spare."""

_QUEUES = (("etl", "reports", "science"), ("batch", "analysts", "research"), ("pipelines", "bi", "ml"))
_USERS = ("ann", "bob", "carl", "dora", "eva", "fred", "gus", "hana", "ivan", "zoe")
_DOMINANT = scheduler.RESOURCE_CALCULATOR.choices[1]


class LabNames(Struct, frozen=True):
    """The names of a seed: three leaf queues, and users by what they do. `reporters`: three of them."""

    production: str
    reports: str
    science: str
    nightly: str
    backfill: str
    survey: str
    training: str
    intern: str
    reporters: tuple[str, ...]

    @property
    def queues(self) -> tuple[str, ...]:
        """The names of all leaf queues."""
        return (self.production, self.reports, self.science, "default")


class LabJob(Struct, frozen=True):
    """An application of the lab. `kind`: what it does; several reports are of one kind. `queue`: its last name.

    `within_s`: its first containers should come within that time; None: nobody waits for them. `is_refused`: its user
    may not submit to that queue.
    """

    kind: str
    name: str
    user: str
    queue: str
    submit_s: float
    containers: int
    seconds: int
    memory_mb: int = TASK_MB
    vcores: int = 1
    within_s: float | None = None
    is_refused: bool = False

    def application(self) -> WorkloadApplication:
        """The job as an application of a workload."""
        group = TaskGroup(Resource(self.memory_mb, self.vcores), (self.seconds * 1000,) * self.containers)
        path = f"{ROOT}.{self.queue}"
        return WorkloadApplication(
            self.name, round(self.submit_s * 1000), self.user, path, (group,), Resource(AM_MB, 1), kind=self.kind
        )


class LabCluster(Struct, frozen=True):
    """A cluster of a seed without a mistake. `workers`: its machines without a GPU; one more has one.

    `settings` {key: value}. `jobs` in the order of their submission.
    """

    seed: int
    names: LabNames
    workers: int
    settings: Mapping[str, str]
    jobs: tuple[LabJob, ...]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the machines; the last one has the GPU."""
        return (*(f"worker-{number}" for number in range(1, self.workers + 1)), f"{GPU}-1")

    @property
    def workload(self) -> Workload:
        return Workload(tuple(job.application() for job in self.jobs))

    def nodes(self, conf: Configuration) -> tuple[WorkloadNode, ...]:
        """The machines with what their NodeManagers offer under a configuration."""
        memory_mb, vcores = nodemanager.RESOURCE_MEMORY_MB.of(conf), nodemanager.RESOURCE_CPU_VCORES.of(conf)
        # Without detection of the hardware, -1 is Hadoop's default.
        offered = Resource(8192 if memory_mb == -1 else memory_mb, 8 if vcores == -1 else vcores)
        return tuple(WorkloadNode(host, offered, label=GPU if host.startswith(GPU) else "") for host in self.hosts)


def lab_cluster(seed: int) -> LabCluster:
    """The cluster of a seed."""
    draw = random.Random(f"lab mistake {seed}")
    production, reports, science = draw.choice(_QUEUES)
    nightly, backfill, survey, training, intern, *others = draw.sample(_USERS, len(_USERS))
    names = LabNames(production, reports, science, nightly, backfill, survey, training, intern, tuple(others[:3]))
    workers = draw.choice((4, 5))
    return LabCluster(seed, names, workers, _settings(names), _jobs(names, workers))


def _settings(names: LabNames) -> dict[str, str]:
    nothing = " "
    return {
        scheduler.ACL_ENABLE.key: "true",
        scheduler.NODE_LABELS_ENABLED.key: "true",
        nodemanager.RESOURCE_MEMORY_MB.key: str(OFFERED_MB),
        nodemanager.RESOURCE_CPU_VCORES.key: str(MACHINE.vcores),
        scheduler.MINIMUM_ALLOCATION_MB.key: "128",
        scheduler.MONITOR_ENABLE.key: "true",
        MAX_WAIT_BEFORE_KILL.key: "10000",
        NATURAL_TERMINATION_FACTOR.key: "1.0",
        TOTAL_PER_ROUND.key: "1.0",
        scheduler.RESOURCE_CALCULATOR.key: _DOMINANT,
        scheduler.QUEUE_MAPPINGS.key: "u:%user:default",
        scheduler.QUEUE_MAPPINGS_OVERRIDE.key: "false",
        queue_key(ROOT, "queues"): ",".join(names.queues),
        queue_key(ROOT, f"accessible-node-labels.{GPU}.capacity"): "100",
        queue_key(ROOT, "acl_submit_applications"): nothing,
        queue_key(ROOT, "acl_administer_queue"): nothing,
        **_queue(names.production, capacity="45", factor="2.2", submit=f"{names.nightly},{names.backfill}"),
        **_queue(names.reports, capacity="25", factor="4", submit="*"),
        **_queue(names.science, capacity="20", factor="5", submit="*", label=GPU),
        **_queue("default", capacity="10", factor="1", submit="*"),
    }


def _queue(name: str, *, capacity: str, factor: str, submit: str, label: str = "") -> dict[str, str]:
    properties = {
        "capacity": capacity,
        "maximum-capacity": "100",
        "user-limit-factor": factor,
        "maximum-am-resource-percent": "0.5",
        "disable_preemption": "false",
        "acl_submit_applications": submit,
        "accessible-node-labels": label,
    }
    if label:
        properties |= {f"accessible-node-labels.{label}.capacity": "100", "default-node-label-expression": label}
    return {queue_key(f"{ROOT}.{name}", key): value for key, value in properties.items()}


def _jobs(names: LabNames, workers: int) -> tuple[LabJob, ...]:
    production, reports = names.production, names.reports
    return (
        LabJob("survey", "survey", names.survey, reports, 0, 10 * workers, 180, within_s=45),
        LabJob("tryout", "tryout", names.intern, production, 5, 1, 10, is_refused=True),
        LabJob("training", "training", names.training, names.science, 30, 4, 120, memory_mb=2048, within_s=45),
        LabJob("nightly", "nightly", names.nightly, production, 60, 4 * workers, 100, within_s=60),
        LabJob("backfill", "backfill", names.backfill, production, 420, 9 * workers, 60, within_s=40),
        LabJob("computation", "computation", names.nightly, production, 540, 6 * workers, 50, vcores=4),
        *(
            LabJob(
                "report",
                f"report-{number + 1}",
                names.reporters[number % len(names.reporters)],
                reports,
                720 + number,
                2,
                40,
                within_s=30,
            )
            for number in range(3 * workers)
        ),
    )


def is_of_queues(key: str) -> bool:
    """True for a key that belongs into capacity-scheduler.xml."""
    return key.startswith(PREFIX)
