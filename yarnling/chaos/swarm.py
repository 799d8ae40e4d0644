"""A plan from a seed: each class of faults is in it or not (as for a coin), with rates and lengths drawn. Pure.

A swarm finds more than a mixture of everything in every run: what one fault would hide, another run shows without it.
"""

from __future__ import annotations

import random

from yarn.settings import resourcemanager
from yarnling.chaos.plan import KINDS, ClusterPlan, Expectations, FaultPlan, Plan, Program, Work

LASTS_S = (8.0, 8.0, 14.0)
"""The longer ones are for what lasts until a master counts as failed."""
BLOWS_MAX = 4
"""Of one class in one run."""
CLASSES = tuple(
    name
    for name in KINDS
    # They need a mount, which not everybody may make.
    if name not in ("full-disk", "full-store")
)


def random_plan(seed: int) -> Plan:
    """The plan of a seed; its schedule is drawn from the same seed."""
    draw = random.Random(f"plan {seed}")
    kinds = [name for name in CLASSES if draw.random() < 0.5] or [draw.choice(CLASSES)]
    # Every third run is without proxies: they are between the processes and could hide something themselves.
    if draw.random() < 1 / 3:
        kinds = [name for name in kinds if not KINDS[name].needs_network] or ["kill-node"]
    lasts_s = draw.choice(LASTS_S)
    faults = tuple(_fault(name, lasts_s, draw) for name in kinds)
    cluster = ClusterPlan(
        nodes=draw.randint(3, 5),
        racks=draw.randint(1, 2),
        same_ports=draw.random() < 0.5,
        settings={resourcemanager.AM_EXPIRY_INTERVAL.key: "160s"} if lasts_s > min(LASTS_S) else {},
    )
    return Plan(
        name=f"random-{seed}",
        about=f"Drawn from seed {seed}: {', '.join(kinds)}",
        cluster=cluster,
        work=_work(draw),
        faults=faults,
        lasts=lasts_s,
        expect=Expectations(),
        awaits_work=draw.random() < 0.7,
    )


def _work(draw: random.Random) -> tuple[Work, ...]:
    """Something of everything: what shows a loss, a container too many, a task done twice, a count that is wrong."""
    works = [
        Work(
            Program.BATCH,
            draw.randint(2, 4),
            draw.randint(2, 6),
            draw.uniform(0.3, 3.0),
            users=("ann", "bob"),
            may_fail=True,
        ),
        Work(
            Program.SERVICE, 1, draw.randint(2, 5), may_fail=True, keep_containers=draw.random() < 0.3, users=("cleo",)
        ),
        Work(Program.TASKS, 1, draw.randint(12, 40), draw.uniform(0.3, 1.0), users=("dan",), may_fail=True),
    ]
    if draw.random() < 0.4:
        works.append(Work(Program.WORDCOUNT, 1, users=("eve",), may_fail=True))
    return tuple(works)


def _fault(name: str, lasts_s: float, draw: random.Random) -> FaultPlan:
    kind = KINDS[name]
    return FaultPlan(
        kind=kind,
        at=(0.3, lasts_s * 0.7),
        lasts=draw.choice(((0.2, 1.5), (0.5, 3.0), (3.5, 5.0), (9.0, 12.0))) if kind.has_end else (0.0, 0.0),
        times=draw.randint(1, BLOWS_MAX),
        every=(0.3, 2.5),
        node=draw.choice(("any", "any", "any", "half", "all")),
        count=1,
        options={option: draw.choice(_OPTIONS[option]) for option in kind.parameters},
        optional=True,
    )


_OPTIONS: dict[str, tuple[object, ...]] = {
    "containers": (True, True, False),
    "timeout": (0, 5, 30),
    "lost": ("both", "requests", "replies"),
    "how": ("silent", "lost", "reset"),
    "delay": ((0.0, 0.05), (0.05, 0.3)),
    "loss": (0.0, 0.05, 0.3),
    "kilobytes": (0.0, 0.0, 50.0),
    "breaks": (0.0, 0.0, 0.02),
}
