"""When what is done to whom: a plan and a seed give one list of blows, the same in every run. Pure.

Nodes are drawn here. Masters and containers are not known yet: a blow carries a number from 0 to 1, `pick`, which
says who of those that run then, in the order of their ids.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from msgspec import Struct, field

from yarnling.chaos.plan import ClusterPlan, FaultKind, FaultPlan, Plan, Scope


class Blow(Struct, frozen=True):
    """One fault at one time, in ms since the start of the work. `until_ms` is None if it has no end to wait for."""

    number: int
    kind: FaultKind
    at_ms: int
    until_ms: int | None
    nodes: tuple[int, ...] = ()
    pick: float = 0.0
    options: Mapping[str, object] = field(default_factory=dict)
    optional: bool = False

    def __str__(self) -> str:
        """Such as `2.0 s kill-node 3 for 2.5 s`."""
        whom = f" {', '.join(map(str, self.nodes))}" if self.nodes else ""
        lasts = "" if self.until_ms is None else f" for {(self.until_ms - self.at_ms) / 1000:.1f} s"
        told = " ".join(f"{name}={_told(value)}" for name, value in self.options.items() if _says(value))
        return f"{self.at_ms / 1000:.1f} s {self.kind.name}{whom}{lasts}{' ' * bool(told)}{told}"


def schedule(plan: Plan, seed: int) -> tuple[Blow, ...]:
    """The blows in the order of their times; at the plan's end everything is healed, so none lasts beyond it."""
    draw = random.Random(seed)
    end_ms = _ms(plan.lasts)
    blows: list[Blow] = []
    for fault in plan.faults:
        at_s = draw.uniform(*fault.at)
        for _ in range(fault.times):
            for whom in _targets(fault, plan.cluster, draw):
                blow = _blow(fault, at_s, whom, end_ms, draw)
                if blow.at_ms < end_ms:
                    blows.append(blow)
            at_s += draw.uniform(*fault.every)
    blows.sort(key=lambda blow: blow.at_ms)
    return tuple(_numbered(blow, number) for number, blow in enumerate(blows, 1))


def _blow(fault: FaultPlan, at_s: float, nodes: tuple[int, ...], end_ms: int, draw: random.Random) -> Blow:
    at_ms, lasts_ms = _ms(at_s), _ms(draw.uniform(*fault.lasts))
    until_ms = min(at_ms + lasts_ms, end_ms) if fault.kind.has_end else None
    options = {name: _drawn(value, draw) for name, value in fault.options.items()}
    return Blow(0, fault.kind, at_ms, until_ms, nodes, draw.random(), options, fault.optional)


def _targets(fault: FaultPlan, cluster: ClusterPlan, draw: random.Random) -> list[tuple[int, ...]]:
    """The nodes of each blow that falls at once: one for all nodes together, `count` of masters or containers."""
    if fault.kind.scope is not Scope.NODE:
        return [()] * (fault.count if fault.kind.scope in (Scope.MASTER, Scope.CONTAINER) else 1)
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
    return [(int(fault.node),)]


def _numbered(blow: Blow, number: int) -> Blow:
    return Blow(number, blow.kind, blow.at_ms, blow.until_ms, blow.nodes, blow.pick, blow.options, blow.optional)


def _drawn(value: object, draw: random.Random) -> object:
    """A span stands for a number of it."""
    return draw.uniform(*value) if isinstance(value, tuple) else value


def _told(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _says(value: object) -> bool:
    """An option that says what goes without saying is not told."""
    return value not in (0.0, True, "both", "silent")


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
