"""Decides which fault is injected when, and on which node, from a plan and a seed.

The same seed gives the same schedule. Pure. The schedule names nodes. ApplicationMasters and containers are not known
in advance, so an injection has `pick`, a fraction from 0 to 1 that selects one of those running at that time, in the
order of their ids.

A random plan does not mix all kinds of faults into every run: it includes each kind with a probability of one half
("swarm testing"). So a bug that one fault hides is found in a run without that fault.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from yarn.settings import resourcemanager, scheduler
from yarnling.faults.kinds import KINDS, FaultKind, FaultScope
from yarnling.faults.plan import ClusterPlan, FaultPlan, Plan, WorkPlan, WorkProgram

RANDOM_LASTS_S = (8.0, 8.0, 14.0)
"""The lengths of random plans in seconds. The longest gives faults time to last until an
ApplicationMaster has expired."""
INJECTIONS_MAX = 4
"""The limit on injections of one kind in one random run."""
RANDOM_KINDS = tuple(
    name for name, kind in KINDS.items() if name not in ("full-disk", "full-store") and not kind.only_simulated
)
"""The kinds of faults in random plans: all that processes have, except those that need to mount a file system, which
takes privileges."""
SIMULATED_KINDS = tuple(name for name in KINDS if name not in RANDOM_KINDS)
"""The other kinds, which are in random plans for the simulation, each with a probability of a quarter."""
_RANDOM_OPTIONS: dict[str, tuple[object, ...]] = {
    "containers": (True, True, False),
    "timeout": (0, 5, 30),
    "lost": ("both", "requests", "replies"),
    "how": ("silent", "lost", "reset"),
    "delay": ((0.0, 0.05), (0.05, 0.3)),
    "loss": (0.0, 0.05, 0.3),
    "kilobytes": (0.0, 0.0, 50.0),
    "breaks": (0.0, 0.0, 0.02),
    "write": ("before", "after"),
    "nth": (1, 2, 5),
    "ahead": (3600.0, -3600.0),
    "drift": (0.3, 0.01, -0.3),
    "exit": (0, 1, 137, 255),
    "file": ("good", "bad"),
}
PICK_DIGITS = 6
"""The digits of a `pick` in plans that are written."""
_DEFAULT_OPTIONS = (0.0, True, "both", "silent")


class FaultInjection(Struct, frozen=True):
    """A fault at one time, in ms since the start of the work. `until_ms` is None if the fault has no end.

    `nodes` are the numbers of the target nodes; it is empty for other targets.
    """

    number: int
    kind: FaultKind
    at_ms: int
    until_ms: int | None
    nodes: tuple[int, ...] = ()
    pick: float = 0.0
    options: Mapping[str, object] = field(default_factory=dict)
    optional: bool = False

    def amount(self, option: str) -> float:
        """The value of an option that is a number."""
        value = self.options[option]
        assert isinstance(value, int | float)
        return value

    def __str__(self) -> str:
        """For example `2.0 s kill-node 3 for 2.5 s`. Options that have their default value are left out."""
        parts = [f"{self.at_ms / 1000:.1f} s {self.kind.name}"]
        if self.nodes:
            parts.append(", ".join(map(str, self.nodes)))
        if self.until_ms is not None:
            parts.append(f"for {(self.until_ms - self.at_ms) / 1000:.1f} s")
        for name, value in self.options.items():
            if value not in _DEFAULT_OPTIONS:
                parts.append(f"{name}={value:.2f}" if isinstance(value, float) else f"{name}={value}")
        return " ".join(parts)


def schedule(plan: Plan, seed: int) -> tuple[FaultInjection, ...]:
    """The injections of a plan, in the order of their times. Every fault ends with the plan at the latest."""
    draw = random.Random(seed)
    end_ms = _ms(plan.lasts)
    injections: list[FaultInjection] = []
    for fault in plan.faults:
        at_s = draw.uniform(*fault.at)
        for _ in range(fault.times):
            for nodes in _targets(fault, plan.cluster, draw):
                injection = _injection(fault, at_s, nodes, end_ms, draw)
                if injection.at_ms < end_ms:
                    injections.append(injection)
            at_s += draw.uniform(*fault.every)
    injections.sort(key=lambda injection: injection.at_ms)
    return tuple(replace(injection, number=number) for number, injection in enumerate(injections, 1))


def _injection(
    fault: FaultPlan, at_s: float, nodes: tuple[int, ...], end_ms: int, draw: random.Random
) -> FaultInjection:
    at_ms, lasts_ms = _ms(at_s), _ms(draw.uniform(*fault.lasts))
    until_ms = min(at_ms + lasts_ms, end_ms) if fault.kind.has_end else None
    options = {
        name: draw.uniform(*value) if isinstance(value, tuple) else value for name, value in fault.options.items()
    }
    drawn = draw.random()
    pick = drawn if fault.pick is None else fault.pick
    return FaultInjection(0, fault.kind, at_ms, until_ms, nodes, pick, options, fault.optional)


def _targets(fault: FaultPlan, cluster: ClusterPlan, draw: random.Random) -> list[tuple[int, ...]]:
    """The target nodes of each simultaneous injection. A fault of nodes is one injection for all of them.

    A fault of AMs or containers is `count` injections.
    """
    if fault.kind.scope is not FaultScope.NODE:
        return [()] * (fault.count if fault.kind.scope in (FaultScope.MASTER, FaultScope.CONTAINER) else 1)
    everyone = list(range(1, cluster.nodes + 1))
    if fault.node == "any":
        return [tuple(sorted(draw.sample(everyone, fault.count)))]
    if fault.node == "all":
        return [tuple(everyone)]
    if fault.node == "half":
        return [tuple(sorted(draw.sample(everyone, (cluster.nodes + 1) // 2)))]
    if fault.node.startswith("rack-"):
        rack = int(fault.node.removeprefix("rack-"))
        return [tuple(number for number in everyone if (number - 1) % cluster.racks + 1 == rack)]
    return [tuple(sorted(map(int, fault.node.split(","))))]


def pinned(plan: Plan, seed: int) -> Plan:
    """The plan with what a seed draws written out: one fault for each injection, with its time, target and options.

    Its schedule is the same with every seed. The seed itself is kept in the plan, because it also decides the rest of a
    simulated run.
    """
    return replace(plan, faults=tuple(map(_pinned, schedule(plan, seed))), seed=seed)


def _pinned(injection: FaultInjection) -> FaultPlan:
    kind, at_s = injection.kind, injection.at_ms / 1000
    lasts_s = 0.0 if injection.until_ms is None else (injection.until_ms - injection.at_ms) / 1000
    return FaultPlan(
        kind=kind,
        at=(at_s, at_s),
        lasts=(lasts_s, lasts_s),
        node=", ".join(map(str, injection.nodes)),
        options=injection.options,
        optional=injection.optional,
        pick=round(injection.pick, PICK_DIGITS) if kind.scope in (FaultScope.MASTER, FaultScope.CONTAINER) else None,
    )


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def random_plan(seed: int, *, all_faults: bool = False) -> Plan:
    """The random plan of a seed. `schedule` must then be called with the same seed.

    With `all_faults` it also has faults that processes do not have, or only with privileges. In some of these plans
    gangs run, too, distributed shells and gangs ignore SIGTERM, and users kill batches and gangs. In some the
    ResourceManager's recovery is not work-preserving, or it passes increases on to nodes itself.
    """
    plan = _random_plan(seed)
    if not all_faults:
        return plan
    draw = random.Random(f"all faults {seed}")
    kinds = [name for name in SIMULATED_KINDS if draw.random() < 0.25] or [draw.choice(SIMULATED_KINDS)]
    more = tuple(_random_fault(name, plan.lasts, draw) for name in kinds)
    work = tuple(_harder_to_end(work, number, seed) for number, work in enumerate((*plan.work, *_random_gangs(seed))))
    cluster = plan.cluster.model_copy(update={"settings": {**plan.cluster.settings, **_rare_settings(seed)}})
    about = f"{plan.about}, {', '.join(kinds)}"
    return replace(plan, about=about, cluster=cluster, work=work, faults=(*plan.faults, *more))


def _rare_settings(seed: int) -> dict[str, str]:
    """Draw settings that are rare, from a random stream of their own, so that the faults of a seed stay the same."""
    draw = random.Random(f"settings {seed}")
    settings = {}
    if draw.random() < 1 / 8:
        settings[resourcemanager.WORK_PRESERVING_RECOVERY_ENABLED.key] = "false"
    if draw.random() < 1 / 4:
        settings[scheduler.AUTO_UPDATE_CONTAINERS.key] = "true"
    return settings


def _random_plan(seed: int) -> Plan:
    draw = random.Random(f"plan {seed}")
    kinds = [name for name in RANDOM_KINDS if draw.random() < 0.5] or [draw.choice(RANDOM_KINDS)]
    # Every third run has no proxies: they are between the processes and could themselves hide a bug.
    if draw.random() < 1 / 3:
        kinds = [name for name in kinds if not KINDS[name].links] or ["kill-node"]
    lasts_s = draw.choice(RANDOM_LASTS_S)
    faults = tuple(_random_fault(name, lasts_s, draw) for name in kinds)
    cluster = ClusterPlan(
        nodes=draw.randint(3, 5),
        racks=draw.randint(1, 2),
        same_ports=draw.random() < 0.5,
        settings={resourcemanager.AM_EXPIRY_INTERVAL.key: "160s"} if lasts_s > min(RANDOM_LASTS_S) else {},
    )
    return Plan(
        name=f"random-{seed}",
        about=f"Drawn from seed {seed}: {', '.join(kinds)}",
        cluster=cluster,
        work=_random_work(draw),
        faults=faults,
        lasts=lasts_s,
        awaits_work=draw.random() < 0.7,
    )


def _random_work(draw: random.Random) -> tuple[WorkPlan, ...]:
    """Random work of several programs, because each shows other bugs: lost or surplus containers, a task run twice, a
    wrong count.
    """
    batch = WorkPlan(
        program=WorkProgram.BATCH,
        applications=draw.randint(2, 4),
        tasks=draw.randint(2, 6),
        seconds=draw.uniform(0.3, 3.0),
        users=("ann", "bob"),
        may_fail=True,
    )
    service = WorkPlan(
        program=WorkProgram.SERVICE,
        tasks=draw.randint(2, 5),
        may_fail=True,
        keep_containers=draw.random() < 0.3,
        users=("cleo",),
    )
    tasks = WorkPlan(
        program=WorkProgram.TASKS,
        tasks=draw.randint(12, 40),
        seconds=draw.uniform(0.3, 1.0),
        users=("dan",),
        may_fail=True,
    )
    if draw.random() < 0.4:
        return batch, service, tasks, WorkPlan(program=WorkProgram.WORDCOUNT, users=("eve",), may_fail=True)
    return batch, service, tasks


def _random_gangs(seed: int) -> tuple[WorkPlan, ...]:
    """Gangs, in every third plan. Two large ones do not fit beside the other work, so they wait for one another."""
    draw = random.Random(f"gangs {seed}")
    if draw.random() >= 1 / 3:
        return ()
    gangs = WorkPlan(
        program=WorkProgram.GANG,
        applications=draw.randint(1, 2),
        tasks=draw.choice((3, 8, 20, 30)),
        seconds=draw.uniform(0.3, 8.0),
        at=draw.uniform(0.0, 1.0),
        users=("finn", "gus"),
        may_fail=True,
    )
    return (gangs,)


def _harder_to_end(work: WorkPlan, number: int, seed: int) -> WorkPlan:
    """The work, perhaps with processes that ignore SIGTERM, and with users who kill it.

    The numbers are of a stream of their own, so the faults of a seed do not depend on them.
    """
    draw = random.Random(f"harder to end {seed} {number}")
    ignores_term, is_killed, after_s = draw.random() < 0.25, draw.random() < 0.25, draw.uniform(0.3, 3.0)
    if work.program not in (WorkProgram.BATCH, WorkProgram.SERVICE, WorkProgram.GANG):
        return work
    killed_after = after_s if is_killed and work.program is not WorkProgram.SERVICE else None
    return work.model_copy(update={"ignores_term": ignores_term, "killed_after": killed_after})


def _random_fault(name: str, lasts_s: float, draw: random.Random) -> FaultPlan:
    kind = KINDS[name]
    return FaultPlan(
        kind=kind,
        at=(0.3, lasts_s * 0.7),
        lasts=draw.choice(((0.2, 1.5), (0.5, 3.0), (3.5, 5.0), (9.0, 12.0))) if kind.has_end else (0.0, 0.0),
        times=draw.randint(1, INJECTIONS_MAX),
        every=(0.3, 2.5),
        node=draw.choice(("any", "any", "any", "half", "all")),
        count=1,
        options={option: draw.choice(_RANDOM_OPTIONS[option]) for option in kind.parameters},
        optional=True,
    )
