"""Which containers are emulated, and how: a list of rules, of which the first that matches decides.

A rule sees what a NodeManager knows of a container: its token and its launch context. The name and the type of an
application are not among that: no NodeManager of YARN is told them.
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
    """So much of something: `value` MB or vcores, or (`relative`) a fraction of what the container was given."""

    value: float = 0.0
    relative: bool = False

    def of(self, given: float) -> float:
        return self.value * given if self.relative else self.value


class Stage(Struct, frozen=True):
    """A part of a container's life. `lasts_ms` None: until a signal ends it; `jitter_ms` is drawn to both sides.

    Memory goes evenly from `memory_first` to `memory_last`. At its end the container exits with `exit_code`, with
    `exit_probability`; else the next stage begins, and after the last one it exits with 0.
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
        """True if chance decides anything of it."""
        return self.jitter_ms > 0 or 0 < self.exit_probability < 1


class Use(NamedTuple):
    """What a container uses: memory at a moment, CPU time from its start to that moment."""

    memory_bytes: int
    cpu_ms: int


class Course(Struct, frozen=True):
    """`lengths_ms` are those of the stages that are reached, without the one that never ends."""

    stages: tuple[Stage, ...]
    resource: Resource
    lengths_ms: tuple[int, ...]
    ends_after_ms: int | None
    exit_code: int

    @staticmethod
    def draw(stages: tuple[Stage, ...], resource: Resource, draw: Draw) -> Course:
        """A course for a container of that size. Each stage draws its length first, then whether it is the last."""
        lengths: list[int] = []
        for stage in stages:
            if stage.lasts_ms is None:
                return Course(stages, resource, tuple(lengths), None, 0)
            jitter = stage.jitter_ms
            lengths.append(stage.lasts_ms if jitter == 0 else stage.lasts_ms - jitter + int(draw() * (2 * jitter + 1)))
            probability = stage.exit_probability
            if probability >= 1 or (probability > 0 and draw() < probability):
                return Course(stages, resource, tuple(lengths), sum(lengths), stage.exit_code)
        return Course(stages, resource, tuple(lengths), sum(lengths), 0)

    def use_at(self, elapsed_ms: int) -> Use:
        """What it uses so long after its start; after its end what it used last."""
        cpu_ms, memory_mb, left_ms = 0.0, 0.0, float(elapsed_ms)
        for stage, length_ms in zip(self.stages, (*self.lengths_ms, None), strict=False):
            within_ms = left_ms if length_ms is None else min(left_ms, length_ms)
            cpu_ms += stage.cpu.of(self.resource.vcores) * within_ms
            memory_mb = self._memory_mb(stage, within_ms / length_ms if length_ms else 0.0)
            if length_ms is None or left_ms < length_ms:
                break
            left_ms -= length_ms
        return Use(int(memory_mb * _BYTES_PER_MB), int(cpu_ms))

    def _memory_mb(self, stage: Stage, done: float) -> float:
        first, last = (amount.of(self.resource.memory_mb) for amount in (stage.memory_first, stage.memory_last))
        return first + (last - first) * done


class ContainerFacts(Struct, frozen=True):
    """What a node knows of a container that is to start. `command`: its commands, joined by spaces."""

    is_master: bool
    user: str
    command: str
    environment: Mapping[str, str]
    priority: int
    resource: Resource
    node: str


class Bounds(Struct, frozen=True):
    """Numbers from `least` to `most`, both included; None is no bound."""

    least: int | None = None
    most: int | None = None

    def hold(self, value: int) -> bool:
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


class Match(Struct, frozen=True):
    """What a container must be; None and empty ask nothing. Texts are regular expressions, searched for anywhere."""

    is_master: bool | None = None
    user: str | None = None
    command: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    node: str | None = None
    priority: Bounds = Bounds()
    memory_mb: Bounds = Bounds()
    vcores: Bounds = Bounds()

    def holds(self, facts: ContainerFacts) -> bool:
        """True if the container is all of that; a variable that it does not have never matches."""
        return (
            self.is_master in (None, facts.is_master)
            and self.priority.hold(facts.priority)
            and self.memory_mb.hold(facts.resource.memory_mb)
            and self.vcores.hold(facts.resource.vcores)
            and _found(self.user, facts.user)
            and _found(self.node, facts.node)
            and _found(self.command, facts.command)
            and all(name in facts.environment and _found(p, facts.environment[name]) for name, p in self.environment)
        )


class Rule(Struct, frozen=True):
    """`stages` None: a container that matches runs as a real process. `registers`: a master that registers with the
    ResourceManager, sends heartbeats while its stages last, and unregisters if they end with 0."""

    name: str
    match: Match = Match()
    stages: tuple[Stage, ...] | None = None
    registers: bool = False

    @property
    def is_drawn(self) -> bool:
        return any(stage.is_drawn for stage in self.stages or ())


class EmulationTable(Struct, frozen=True):
    """Rules by rank, each with a name of its own. What none of them matches runs as a real process."""

    rules: tuple[Rule, ...] = ()
    seed: int = 0

    @property
    def has_masters(self) -> bool:
        """True if any master is emulated that registers."""
        return any(rule.registers for rule in self.rules)

    def rule_for(self, facts: ContainerFacts) -> Rule | None:
        """The rule by which the container is emulated, None if it is to be a real process."""
        rule = next((rule for rule in self.rules if rule.match.holds(facts)), None)
        return None if rule is None or rule.stages is None else rule


def _found(pattern: str | None, text: str) -> bool:
    return pattern is None or re.search(pattern, text) is not None
