"""Rules that decide which containers are emulated, and what each emulated container uses.

The first matching rule decides. A rule can match what a NodeManager knows about a container: its token and its launch
context. A rule cannot match the application's name or type, because the node does not know them.

    profile = ResourceProfile.draw(stages, resource, random.random)
    profile.ends_after_ms             2140, None if only a signal ends the container
    profile.exit_code                 0
    profile.usage_at(1200)            Usage(memory_bytes=..., cpu_ms=...)

All random numbers are drawn when the container starts. After that, its profile depends only on time. So a container
needs a single timer, for its end, and the same random numbers always give the same profile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from yarn.resource import Resource

Draw: TypeAlias = Callable[[], float]
"""A function that returns the next random number, at least 0 and less than 1."""

_BYTES_PER_MB = 1 << 20


class Amount(Struct, frozen=True):
    """An amount of memory, vcores or time in a rule.

    `value` is in MB, vcores or ms. If `relative`, it is a fraction of the amount that is passed to `of`.
    """

    value: float = 0.0
    relative: bool = False

    def of(self, given: float) -> float:
        return self.value * given if self.relative else self.value


class EmulationStage(Struct, frozen=True):
    """A part of a container's run. The stage lasts `lasts_ms` +- `jitter_ms`; None: until a signal.

    Memory use changes linearly from `memory_first` to `memory_last`. At the end of the stage the container exits with
    `exit_code`, with the probability `exit_probability`. Otherwise the next stage starts; after the last stage the
    container exits with 0.
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
        """True if the stage depends on random numbers."""
        return self.jitter_ms > 0 or 0 < self.exit_probability < 1


class PlannedUsage(NamedTuple):
    """The memory that a container uses at one moment, and the CPU time that it has used since its start."""

    memory_bytes: int
    cpu_ms: int


class ResourceProfile(Struct, frozen=True):
    """The time an emulated container runs, its exit code, and what it uses at each moment.

    `lengths_ms` are the lengths of the stages that are reached, except a stage that only a signal ends.
    """

    stages: tuple[EmulationStage, ...]
    resource: Resource
    lengths_ms: tuple[int, ...]
    ends_after_ms: int | None
    exit_code: int

    @staticmethod
    def draw(stages: tuple[EmulationStage, ...], resource: Resource, draw: Draw) -> ResourceProfile:
        """Draw a profile for a container of size `resource`: for each stage its length, then whether the container
        exits.
        """
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

    def usage_at(self, elapsed_ms: int) -> PlannedUsage:
        """The usage `elapsed_ms` after the start. After the container's end, this is the usage at the end."""
        cpu_ms, memory_mb, left_ms = 0.0, 0.0, float(elapsed_ms)
        for stage, length_ms in zip(self.stages, (*self.lengths_ms, None), strict=False):
            within_ms = left_ms if length_ms is None else min(left_ms, length_ms)
            cpu_ms += stage.cpu.of(self.resource.vcores) * within_ms
            memory_mb = self._memory_mb(stage, within_ms / length_ms if length_ms else 0.0)
            if length_ms is None or left_ms < length_ms:
                break
            left_ms -= length_ms
        return PlannedUsage(int(memory_mb * _BYTES_PER_MB), int(cpu_ms))

    def _memory_mb(self, stage: EmulationStage, done: float) -> float:
        first, last = (amount.of(self.resource.memory_mb) for amount in (stage.memory_first, stage.memory_last))
        return first + (last - first) * done


class ContainerFacts(Struct, frozen=True):
    """A node's knowledge about a container that is to be launched.

    `command` is the container's commands, joined by spaces.
    """

    is_master: bool
    user: str
    command: str
    environment: Mapping[str, str]
    priority: int
    resource: Resource
    node: str


class Bounds(Struct, frozen=True):
    """A range of numbers from `least` to `most`, both included. None means that the range has no bound on that side."""

    least: int | None = None
    most: int | None = None

    def contain(self, value: int) -> bool:
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


class Match(Struct, frozen=True):
    """The conditions of a rule. A condition that is None or empty is met by every container.

    Texts are regular expressions and are found anywhere in the value (re.search).
    """

    is_master: bool | None = None
    user: str | None = None
    command: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    node: str | None = None
    priority: Bounds = Bounds()
    memory_mb: Bounds = Bounds()
    vcores: Bounds = Bounds()

    def matches(self, facts: ContainerFacts) -> bool:
        """True if the container meets all conditions. A condition on a variable that the container lacks is not met."""
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
    """A rule: the containers that it matches, and the stages that they follow.

    `stages` None: they run as real processes. If `registers`, a container that is an AM registers with the
    ResourceManager, sends heartbeats while its stages last, and unregisters if they end with exit code 0.
    `after_term_ms` is how long a container takes to exit after SIGTERM; None: it ignores SIGTERM. SIGKILL ends it at
    once.
    """

    name: str
    match: Match = Match()
    stages: tuple[EmulationStage, ...] | None = None
    registers: bool = False
    after_term_ms: int | None = 0

    @property
    def is_drawn(self) -> bool:
        return any(stage.is_drawn for stage in self.stages or ())


class EmulationTable(Struct, frozen=True):
    """Rules with unique names.

    The first rule that matches a container decides; a container that none matches is real.
    """

    rules: tuple[Rule, ...] = ()
    seed: int = 0

    @property
    def has_masters(self) -> bool:
        """True if a rule has AMs that register with the ResourceManager."""
        return any(rule.registers for rule in self.rules)

    def rule_for(self, facts: ContainerFacts) -> Rule | None:
        """The rule by which a container is emulated; None if the container runs as a real process."""
        rule = next((rule for rule in self.rules if rule.match.matches(facts)), None)
        return None if rule is None or rule.stages is None else rule


def _found(pattern: str | None, text: str) -> bool:
    return pattern is None or re.search(pattern, text) is not None
