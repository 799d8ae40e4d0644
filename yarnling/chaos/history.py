"""What happened in a run, as the runner saw it and as the containers themselves noted it. Pure records.

Times are in seconds since the machine's start (CLOCK_BOOTTIME), which a shell can read too and nobody sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from msgspec import Struct

from yarn.ids import ApplicationId, ContainerId
from yarn.states import FinalApplicationStatus, YarnApplicationState
from yarnling.chaos.plan import Program, Scope
from yarnling.chaos.schedule import Blow


class Submission(Struct, frozen=True):
    """An application. `acknowledged_s` is None if its client never heard that it was accepted; `refusal`: why not."""

    application_id: ApplicationId
    program: Program
    user: str
    tasks: int
    begun_s: float
    acknowledged_s: float | None = None
    refusal: str = ""
    may_fail: bool = False
    keep_containers: bool = False


class Role(Enum):
    """What a process is to its application, as it notes it."""

    MASTER = "master"
    CONTAINER = "container"
    TASK = "task"


class Life(Struct, frozen=True):
    """A process of a container. `last_s`: when it was last seen alive by its own note; `status`: None if it was killed.

    `node`: the number of its node. `task`: its number, of a task that a worker runs.
    """

    container_id: ContainerId
    role: Role
    pid: int
    node: int
    start_s: float
    last_s: float
    status: int | None = None
    task: int = 0

    @property
    def application_id(self) -> ApplicationId:
        return self.container_id.application_id

    @property
    def attempt(self) -> int:
        return self.container_id.attempt_id.attempt


class Injected(Struct, frozen=True):
    """A blow that fell. `healed_s` is None if it has no end. `whom`: what it was done to, for people.

    `problem`: why it could not be done, or not be undone; `skipped`: there was nothing to do it to, and no need.
    """

    blow: Blow
    start_s: float
    healed_s: float | None = None
    whom: str = ""
    problem: str = ""
    skipped: bool = False

    def hides(self, node: int) -> bool:
        """Whether it keeps the ResourceManager from having what runs on the node ended."""
        return self.blow.kind.hides and (self.blow.kind.scope is Scope.RM or node in self.blow.nodes)

    def silences(self, master: Life) -> bool:
        """Whether it keeps that master from hearing what the ResourceManager says."""
        is_hit = master.node in self.blow.nodes or self.whom == str(master.container_id)
        return self.blow.kind.silences and is_hit


class Change(Struct, frozen=True):
    """At some look `subject` (a node's name, an application's id, "rm") was in another state or attempt than before."""

    at_s: float
    subject: str
    state: str
    attempt: int = 0


class Outcome(Struct, frozen=True):
    """How an application ended, as the ResourceManager says at the end; None of a state: it does not know it.

    `right`: of a word count, whether its counts are those of a plain count.
    """

    state: YarnApplicationState | None
    final_status: FinalApplicationStatus = FinalApplicationStatus.UNDEFINED
    attempt: int = 0
    diagnostics: str = ""
    right: bool | None = None


@dataclass(slots=True)
class History:
    """All of a run. `problem`: why it could not be told what the product does, such as a cluster that never came up.

    `lag_s`: how much too late this program woke up at worst; the cluster's processes will have fared no better.
    `unhealed`, `undrained`, `left`, `died`: a line for each thing that should not be.
    """

    submissions: list[Submission] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)
    injected: list[Injected] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    outcomes: dict[ApplicationId, Outcome] = field(default_factory=dict)
    killed_at_s: dict[ApplicationId, float] = field(default_factory=dict)
    begun_s: float = 0.0
    healed_s: float = 0.0
    drained_s: float = 0.0
    ended_s: float = 0.0
    unhealed: list[str] = field(default_factory=list)
    undrained: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    died: list[str] = field(default_factory=list)
    lag_s: float = 0.0
    problem: str = ""

    def of(self, application_id: ApplicationId, *roles: Role) -> list[Life]:
        """The lives of an application in the order of their starts; in these roles, if any are named."""
        wanted = [
            life for life in self.lives if life.application_id == application_id and (not roles or life.role in roles)
        ]
        return sorted(wanted, key=lambda life: life.start_s)

    def hidden(self, node: int) -> list[tuple[float, float]]:
        """When the ResourceManager could not reach the node, or was not there itself: (from, to), in order."""
        return sorted(self._span(one) for one in self.injected if not one.skipped and one.hides(node))

    def silenced(self, master: Life) -> list[tuple[float, float]]:
        """When the master could not hear the ResourceManager, or its node was hidden: (from, to), in order."""
        silent = [self._span(one) for one in self.injected if not one.skipped and one.silences(master)]
        return sorted([*silent, *self.hidden(master.node)])

    def changes_of(self, subject: str) -> Iterator[Change]:
        return (change for change in self.changes if change.subject == subject)

    def _span(self, one: Injected) -> tuple[float, float]:
        return one.start_s, self.ended_s if one.healed_s is None else one.healed_s
