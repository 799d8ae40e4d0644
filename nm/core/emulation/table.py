"""Which containers are emulated, and how: a list of rules, of which the first that matches decides.

A rule sees what a NodeManager knows of a container: its token and its launch context. The name and the type of an
application are not among that: no NodeManager of YARN is told them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from nm.core.emulation.course import Stage
from yarn.resource import Resource


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
