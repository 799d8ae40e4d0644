"""A gang: N containers that are of use only together, as those of an MPI job are.

    asking    all are asked for at once, and what comes is held, not started
    running   all were there: each is started, knowing its rank and where the others are
    resting   the time was up: everything was given back; after a pause the gang asks again

Two gangs that each hold half of what both need would wait for ever; that is what the time limit is for. If both gave up
and came back at the same times they would meet again and again: so the pause doubles with each try, and is longer for
one gang than for the other (`spread`, from the application's number).

What is held is idle, and the RM takes it back if it is not started within its own expiry: such a container is asked for
anew. While it runs, a member that fails fails the gang, as MPI has it; one that is lost without its own fault
(preempted, its node gone) has the whole gang begin again.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from msgspec import Struct

from am.core.events import (
    Allocation,
    ContainersAllocated,
    ContainersCompleted,
    ContainerStartFailed,
    Event,
    HeartbeatDone,
    HeartbeatFailed,
    Registered,
    ShutdownOrdered,
)
from am.core.requests import ContainerRequest
from am.programs.core.actions import Action, AskFor, Finish, GiveBack, Launch, Leave, Withdraw
from yarn.containers import Container, ContainerLaunchContext, ContainerStatus
from yarn.ids import ContainerId
from yarn.resource import Resource
from yarn.states import ContainerExitStatus, FinalApplicationStatus

EXIT_FAILED = 2
"""The AM's exit code if the gang did not come together or failed."""
SPREADS = 8
"""Gangs whose numbers differ by less than this rest for different times."""

LOST_STATUSES = frozenset(
    {
        ContainerExitStatus.ABORTED,
        ContainerExitStatus.PREEMPTED,
        ContainerExitStatus.DISKS_FAILED,
        ContainerExitStatus.KILLED_BY_RESOURCEMANAGER,
    }
)
"""Ends that are not the member's fault."""


class GangPlan(Struct, frozen=True):
    """`wait_ms`: how long one try holds what it has; `tries`: how often the gang may ask or begin again."""

    members: int
    capability: Resource
    priority: int = 0
    label: str | None = None
    wait_ms: int = 60_000
    pause_ms: int = 5_000
    tries: int = 5


class Member(Struct, frozen=True):
    """What a member is told: its rank, and the hosts of all by rank."""

    rank: int
    hosts: tuple[str, ...]


LaunchContextOf = Callable[[Member], ContainerLaunchContext]


class Phase(Enum):
    ASKING = "asking"
    RUNNING = "running"
    RESTING = "resting"
    OVER = "over"


class Gang:
    """One gang under one attempt of its AM. `asked` + `held` are its members while it asks."""

    def __init__(self, plan: GangPlan, launch_context_of: LaunchContextOf, spread: int) -> None:
        self.plan = plan
        self.phase = Phase.RESTING
        self.tries = 0
        self.succeeded = 0
        self._launch_context_of = launch_context_of
        self._spread = spread % SPREADS
        self._request = ContainerRequest(plan.capability, plan.priority, label=plan.label)
        self._asked = 0
        self._held: dict[ContainerId, Container] = {}
        self._deadline_ms = 0

    @property
    def held(self) -> int:
        """The containers that it has, started or not."""
        return len(self._held)

    def progress(self) -> float:
        return self.succeeded / self.plan.members

    def handle(self, event: Event, now_ms: int) -> list[Action]:
        """Actions for one event; none once it is over."""
        if self.phase is Phase.OVER:
            return []
        match event:
            case Registered(maximum_capability, queue):
                return self._begin(maximum_capability, queue, now_ms)
            case ContainersAllocated(allocations):
                return self._take(allocations)
            case ContainersCompleted(statuses):
                return self._note_ends(statuses, now_ms)
            case ContainerStartFailed(container_id, diagnostics) if container_id in self._held:
                return self._scatter(f"{container_id} could not be started: {diagnostics}", now_ms)
            case HeartbeatDone():
                return self._look_at_the_clock(now_ms)
            case ShutdownOrdered(reason):
                return self._over(Leave(reason))
            case HeartbeatFailed(error):
                return self._over(Leave(str(error)))
            case _:
                return []

    def _begin(self, maximum: Resource, queue: str, now_ms: int) -> list[Action]:
        if not self.plan.capability.fits_in(maximum):
            return self._fail(f"members of {self.plan.capability} are larger than {queue} allows, {maximum}")
        return self._ask(now_ms)

    def _ask(self, now_ms: int) -> list[Action]:
        self.phase = Phase.ASKING
        self.tries += 1
        self.succeeded = 0
        self._deadline_ms = now_ms + self.plan.wait_ms
        self._asked = self.plan.members
        return [AskFor(self._request)] * self.plan.members

    def _take(self, allocations: tuple[Allocation, ...]) -> list[Action]:
        """Hold what was asked for; what comes late or over goes back. The last one starts all of them."""
        actions: list[Action] = []
        for allocation in allocations:
            container = allocation.container
            if self._asked == 0:
                actions.append(GiveBack(container.id))
                continue
            self._asked -= 1
            self._held[container.id] = container
        if self.phase is Phase.ASKING and len(self._held) == self.plan.members:
            actions += self._start()
        return actions

    def _start(self) -> list[Action]:
        self.phase = Phase.RUNNING
        members = list(self._held.values())
        hosts = tuple(container.node_id.host for container in members)
        return [Launch(one, self._launch_context_of(Member(rank, hosts))) for rank, one in enumerate(members)]

    def _note_ends(self, statuses: tuple[ContainerStatus, ...], now_ms: int) -> list[Action]:
        actions: list[Action] = []
        for status in statuses:
            if status.container_id in self._held:
                actions += self._note_end(status, now_ms)
        return actions

    def _note_end(self, status: ContainerStatus, now_ms: int) -> list[Action]:
        del self._held[status.container_id]
        if self.phase is Phase.ASKING:
            # Held for longer than the RM lets a container wait, or lost with its node.
            self._asked += 1
            return [AskFor(self._request)]
        if status.exit_status == ContainerExitStatus.SUCCESS:
            self.succeeded += 1
            done = self.succeeded == self.plan.members
            return self._over(Finish(FinalApplicationStatus.SUCCEEDED)) if done else []
        why = f"{status.container_id} ended with {status.exit_status}: {status.diagnostics}".strip(" :")
        if status.exit_status in LOST_STATUSES:
            return self._scatter(why, now_ms)
        return [*self._give_back(), *self._fail(why)]

    def _look_at_the_clock(self, now_ms: int) -> list[Action]:
        if now_ms < self._deadline_ms:
            return []
        if self.phase is Phase.ASKING:
            wanted, seconds = self.plan.members, self.plan.wait_ms / 1000
            return self._scatter(f"{len(self._held)} of {wanted} containers came within {seconds:g} s", now_ms)
        return self._ask(now_ms) if self.phase is Phase.RESTING else []

    def _scatter(self, why: str, now_ms: int) -> list[Action]:
        """Give everything back, and rest before the next try; the last one fails the application."""
        actions = self._give_back()
        if self.tries >= self.plan.tries:
            return [*actions, *self._fail(f"{why} (try {self.tries} of {self.plan.tries})")]
        self.phase = Phase.RESTING
        pause_ms = self.plan.pause_ms * 2 ** (self.tries - 1)
        self._deadline_ms = now_ms + pause_ms + pause_ms * self._spread // SPREADS
        return actions

    def _give_back(self) -> list[Action]:
        actions: list[Action] = [Withdraw(self._request)] * self._asked
        actions += [GiveBack(container_id) for container_id in self._held]
        self._asked = 0
        self._held = {}
        return actions

    def _fail(self, diagnostics: str) -> list[Action]:
        return self._over(
            Finish(FinalApplicationStatus.FAILED, f"gang of {self.plan.members}: {diagnostics}", EXIT_FAILED)
        )

    def _over(self, ending: Finish | Leave) -> list[Action]:
        self.phase = Phase.OVER
        return [ending]
