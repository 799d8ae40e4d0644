"""Which containers are emulated, and what each of them uses: rules, of which the first that matches decides.

A rule sees what a NodeManager knows of a container: its token and its launch context. The name and the type of the
application are not part of them.

    profile = ResourceProfile.draw(stages, resource, random.random)
    profile.ends_after_ms             2140, None if only a signal ends the container
    profile.exit_code                 0
    profile.usage_at(1200)            Usage(memory_bytes=..., cpu_ms=...)

All random numbers are drawn at the start. So a profile is a function of time and needs one timer, for its end, however
many stages it has, and the same draws give the same profile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from yarn.resource import Resource

Draw: TypeAlias = Callable[[], float]
"""The next random number, from 0 to below 1."""

_BYTES_PER_MB = 1 << 20


class Amount(Struct, frozen=True):
    """`value` MB, vcores or ms; if `relative`, a fraction of the amount passed to `of`."""

    value: float = 0.0
    relative: bool = False

    def of(self, given: float) -> float:
        return self.value * given if self.relative else self.value


class Stage(Struct, frozen=True):
    """One part of a container's run. Its length is `lasts_ms` +- `jitter_ms`; None: it ends only by a signal.

    Memory use changes linearly from `memory_first` to `memory_last`. At the end of the stage the container exits with
    `exit_code`, with `exit_probability`; otherwise the next stage starts, and after the last one it exits with 0.
    """

    lasts_ms: int | None
    jitter_ms: int = 0
    memory_first: Amount = Amount()
    memory_last: Amount = Amount()
    cpu: Amount = Amount()
    exit_code: int = 0
    exit_probability: float = 0.0

    @property
    def is_drawn(self) -> bool:
        """True if the stage needs random numbers."""
        return self.jitter_ms > 0 or 0 < self.exit_probability < 1


class Usage(NamedTuple):
    """Memory used at a moment, and CPU time used from the container's start to that moment."""

    memory_bytes: int
    cpu_ms: int


class ResourceProfile(Struct, frozen=True):
    """How long an emulated container runs, with which exit code it ends, and what it uses at each moment.

    `lengths_ms` are the lengths of the stages that are reached, without one that ends only by a signal.
    """

    stages: tuple[Stage, ...]
    resource: Resource
    lengths_ms: tuple[int, ...]
    ends_after_ms: int | None
    exit_code: int

    @staticmethod
    def draw(stages: tuple[Stage, ...], resource: Resource, draw: Draw) -> ResourceProfile:
        """A profile for a container of that size. Each stage draws its length, then whether the container exits."""
        lengths: list[int] = []
        for stage in stages:
            if stage.lasts_ms is None:
                return ResourceProfile(stages, resource, tuple(lengths), None, 0)
            jitter = stage.jitter_ms
            lengths.append(stage.lasts_ms if jitter == 0 else stage.lasts_ms - jitter + int(draw() * (2 * jitter + 1)))
            probability = stage.exit_probability
            if probability >= 1 or (probability > 0 and draw() < probability):
                return ResourceProfile(stages, resource, tuple(lengths), sum(lengths), stage.exit_code)
        return ResourceProfile(stages, resource, tuple(lengths), sum(lengths), 0)

    def usage_at(self, elapsed_ms: int) -> Usage:
        """The usage `elapsed_ms` after the start; after the end, the usage at the end."""
        cpu_ms, memory_mb, left_ms = 0.0, 0.0, float(elapsed_ms)
        for stage, length_ms in zip(self.stages, (*self.lengths_ms, None), strict=False):
            within_ms = left_ms if length_ms is None else min(left_ms, length_ms)
            cpu_ms += stage.cpu.of(self.resource.vcores) * within_ms
            memory_mb = self._memory_mb(stage, within_ms / length_ms if length_ms else 0.0)
            if length_ms is None or left_ms < length_ms:
                break
            left_ms -= length_ms
        return Usage(int(memory_mb * _BYTES_PER_MB), int(cpu_ms))

    def _memory_mb(self, stage: Stage, done: float) -> float:
        first, last = (amount.of(self.resource.memory_mb) for amount in (stage.memory_first, stage.memory_last))
        return first + (last - first) * done


class ContainerFacts(Struct, frozen=True):
    """What a node knows of a container that is to be launched. `command`: its commands, joined by spaces."""

    is_master: bool
    user: str
    command: str
    environment: Mapping[str, str]
    priority: int
    resource: Resource
    node: str


class Bounds(Struct, frozen=True):
    """Numbers from `least` to `most`, both included; None: unbounded."""

    least: int | None = None
    most: int | None = None

    def contain(self, value: int) -> bool:
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


class Match(Struct, frozen=True):
    """The conditions of a rule; None and empty match any container. Texts are regular expressions (re.search)."""

    is_master: bool | None = None
    user: str | None = None
    command: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    node: str | None = None
    priority: Bounds = Bounds()
    memory_mb: Bounds = Bounds()
    vcores: Bounds = Bounds()

    def matches(self, facts: ContainerFacts) -> bool:
        """True if the container meets all conditions; a condition on a variable that it does not have is not met."""
        return (
            self.is_master in (None, facts.is_master)
            and self.priority.contain(facts.priority)
            and self.memory_mb.contain(facts.resource.memory_mb)
            and self.vcores.contain(facts.resource.vcores)
            and _found(self.user, facts.user)
            and _found(self.node, facts.node)
            and _found(self.command, facts.command)
            and all(name in facts.environment and _found(p, facts.environment[name]) for name, p in self.environment)
        )


class Rule(Struct, frozen=True):
    """Which containers it matches, and their stages; None: they run as real processes.

    `registers`: an AM registers with the ResourceManager, sends heartbeats while its stages last, and unregisters if
    they end with exit code 0.
    """

    name: str
    match: Match = Match()
    stages: tuple[Stage, ...] | None = None
    registers: bool = False

    @property
    def is_drawn(self) -> bool:
        return any(stage.is_drawn for stage in self.stages or ())


class EmulationTable(Struct, frozen=True):
    """Rules, the first that matches wins, each with a unique name. Containers that match none run as real processes."""

    rules: tuple[Rule, ...] = ()
    seed: int = 0

    @property
    def has_masters(self) -> bool:
        """True if any rule has AMs that register."""
        return any(rule.registers for rule in self.rules)

    def rule_for(self, facts: ContainerFacts) -> Rule | None:
        """The rule by which the container is emulated, None if it is to run as a real process."""
        rule = next((rule for rule in self.rules if rule.match.matches(facts)), None)
        return None if rule is None or rule.stages is None else rule


def _found(pattern: str | None, text: str) -> bool:
    return pattern is None or re.search(pattern, text) is not None
