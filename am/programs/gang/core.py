"""A gang: N containers that are useful only together, such as those of an MPI job.

    REQUESTING  all containers are requested at once; allocated containers are held, but not started
    RUNNING     all containers were allocated: each is started with its rank and the hosts of all others
    RESTING     the time limit was reached: all containers were released; after a pause the gang tries again

Without the time limit, two gangs that each hold half of what both need would wait forever. If both gave up and tried
again at the same times, they would collide again and again. So the pause doubles with each try, and it differs between
gangs (`spread`, which depends on the application's number).

Containers that are held are idle, and the RM takes a container back if it is not started within the RM's expiry time;
the gang then requests it again. While the gang runs, it fails if one of its members fails, as in MPI. If a member is
lost without its own fault (it was preempted, or its node was lost), the whole gang starts again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum

from msgspec import Struct

from am.core.actions import Action, Finish, Launch, ReleaseContainer, RequestContainer, WithdrawRequest
from am.core.application import ApplicationCore
from am.core.events import (
    ContainersAllocated,
    ContainersCompleted,
    ContainerStartFailed,
    Event,
    HeartbeatDone,
    Registered,
)
from am.core.requests import ContainerRequest
from yarn.containers import Container, ContainerLaunchContext, ContainerStatus
from yarn.ids import ContainerId
from yarn.machine import Lifecycle, Machine, Row
from yarn.resource import Resource
from yarn.states import ContainerExitStatus, FinalApplicationStatus

EXIT_FAILED = 2
"""The AM's exit code if the gang was never complete, or failed."""
SPREADS = 8
"""Gangs whose application numbers differ by less than this have pauses of different lengths."""

LOST_STATUSES = frozenset(
    {
        ContainerExitStatus.ABORTED,
        ContainerExitStatus.PREEMPTED,
        ContainerExitStatus.DISKS_FAILED,
        ContainerExitStatus.KILLED_BY_RESOURCEMANAGER,
    }
)
"""Exit statuses of members that were lost without their own fault."""


class GangPlan(Struct, frozen=True):
    """A gang's size and timing. `wait_ms` is how long one try holds its containers.

    `tries` is how often the gang may try or start again.
    """

    members: int
    capability: Resource
    priority: int = 0
    label: str | None = None
    wait_ms: int = 60_000
    pause_ms: int = 5_000
    tries: int = 5


class Member(Struct, frozen=True):
    """The data of a member that starts: its rank, the hosts of all members by rank, and the number of its try."""

    rank: int
    hosts: tuple[str, ...]
    try_number: int = 1


LaunchContextOf = Callable[[Member], ContainerLaunchContext]


class GangPhase(Enum):
    REQUESTING = "requesting"
    RUNNING = "running"
    RESTING = "resting"
    OVER = "over"


class TryDue(Struct, frozen=True):
    """Request all members, because the AM has registered or the pause is over."""


class SizeRefused(Struct, frozen=True):
    """The queue does not allow containers of the members' size."""

    why: str


class GangComplete(Struct, frozen=True):
    """All members have a container."""


class TimeLimitReached(Struct, frozen=True):
    """The gang is still incomplete after `wait_ms`."""

    why: str


class MemberLost(Struct, frozen=True):
    """A member ended without its own fault, or could not be started."""

    why: str


class MemberFailed(Struct, frozen=True):
    """A member ended with an error."""

    why: str


class AllSucceeded(Struct, frozen=True):
    """All members ended with exit status 0."""


class Gang(ApplicationCore[Event, Action]):
    """A gang under one attempt of its AM. While REQUESTING, `requested` + `held` is the number of its members."""

    def __init__(
        self, plan: GangPlan, launch_context_of: LaunchContextOf, spread: int, *, check_invariants: bool = False
    ) -> None:
        super().__init__(check_invariants=check_invariants)
        self.plan = plan
        self.machine = Machine(GangPhase.RESTING)
        self.tries = 0
        self.succeeded = 0
        self._launch_context_of = launch_context_of
        self._spread = spread % SPREADS
        self._request = ContainerRequest(plan.capability, plan.priority, label=plan.label)
        self._requested = 0
        self._held: dict[ContainerId, Container] = {}
        self._deadline_ms = 0
        self._dispatcher.on(Registered, self._registered)
        self._dispatcher.on(ContainersAllocated, self._hold)
        self._dispatcher.on(ContainersCompleted, self._completed)
        self._dispatcher.on(ContainerStartFailed, self._start_failed)
        self._dispatcher.on(HeartbeatDone, self._check_deadline)

    def __str__(self) -> str:
        return f"gang of {self.plan.members}"

    @property
    def phase(self) -> GangPhase:
        return self.machine.state

    @property
    def held(self) -> int:
        """The number of containers that the gang has, started or not."""
        return len(self._held)

    def progress(self) -> float:
        return self.succeeded / self.plan.members

    def violations(self) -> Iterator[str]:
        """Check A-16: each member is requested, held or has succeeded; a gang that is RESTING has no containers."""
        counts = {
            GangPhase.REQUESTING: (self._requested + self.held, self.plan.members),
            GangPhase.RUNNING: (self._requested + self.held + self.succeeded, self.plan.members),
            GangPhase.RESTING: (self._requested + self.held, 0),
        }
        have, want = counts.get(self.phase, (0, 0))
        if have != want:
            yield f"A-16: {self} is {self.phase.name} with {have} members in place of {want}"

    def _registered(self, event: Registered) -> None:
        maximum = event.maximum_capability
        if self.plan.capability.fits_in(maximum):
            self._transition(TryDue())
        else:
            size = self.plan.capability
            self._transition(SizeRefused(f"members of {size} are larger than {event.queue} allows, {maximum}"))

    def _hold(self, event: ContainersAllocated) -> None:
        """Hold containers that were requested, and release those that are late or surplus.

        When the last member has its container, all members are started.
        """
        for allocation in event.allocations:
            container = allocation.container
            if self._requested == 0:
                self._dispatcher.emit(ReleaseContainer(container.id))
            else:
                self._requested -= 1
                self._held[container.id] = container
        if self.phase is GangPhase.REQUESTING and self.held == self.plan.members:
            self._transition(GangComplete())

    def _completed(self, event: ContainersCompleted) -> None:
        """Handle the ends of members. Several may end in one event, with their node; none of them is released then."""
        ended = [status for status in event.statuses if self._held.pop(status.container_id, None) is not None]
        for status in ended:
            self._member_completed(status)

    def _member_completed(self, status: ContainerStatus) -> None:
        if self.phase is GangPhase.REQUESTING:
            # The container was held for longer than the RM allows before a start, or its node was lost.
            self._requested += 1
            self._dispatcher.emit(RequestContainer(self._request))
        elif self.phase is not GangPhase.RUNNING:
            return
        elif status.exit_status == ContainerExitStatus.SUCCESS:
            self.succeeded += 1
            if self.succeeded == self.plan.members:
                self._transition(AllSucceeded())
        else:
            why = f"{status.container_id} ended with {status.exit_status}: {status.diagnostics}".strip(" :")
            self._transition(MemberLost(why) if status.exit_status in LOST_STATUSES else MemberFailed(why))

    def _start_failed(self, event: ContainerStartFailed) -> None:
        if event.container_id in self._held:
            self._transition(MemberLost(f"{event.container_id} could not be started: {event.diagnostics}"))

    def _check_deadline(self, _: HeartbeatDone) -> None:
        if self.now_ms < self._deadline_ms:
            return
        if self.phase is GangPhase.REQUESTING:
            wanted, seconds = self.plan.members, self.plan.wait_ms / 1000
            self._transition(TimeLimitReached(f"{self.held} of {wanted} containers came within {seconds:g} s"))
        elif self.phase is GangPhase.RESTING and self.tries > 0:
            self._transition(TryDue())

    def _transition(self, event: object) -> None:
        self._dispatcher.transition(GANG_LIFECYCLE, self, self.machine, event)

    def request_all(self, _: TryDue) -> None:
        self.tries += 1
        self.succeeded = 0
        self._deadline_ms = self.now_ms + self.plan.wait_ms
        self._requested = self.plan.members
        for _number in range(self.plan.members):
            self._dispatcher.emit(RequestContainer(self._request))

    def start_all(self, _: GangComplete) -> None:
        members = list(self._held.values())
        hosts = tuple(container.node_id.host for container in members)
        for rank, container in enumerate(members):
            self._dispatcher.emit(Launch(container, self._launch_context_of(Member(rank, hosts, self.tries))))

    def release_and_rest(self, event: TimeLimitReached | MemberLost) -> GangPhase:
        """Release all containers and pause before the next try. After the last try the application fails."""
        self._release_all()
        if self.tries >= self.plan.tries:
            return self._fail(f"{event.why} (try {self.tries} of {self.plan.tries})")
        pause_ms = self.plan.pause_ms * 2 ** (self.tries - 1)
        self._deadline_ms = self.now_ms + pause_ms + pause_ms * self._spread // SPREADS
        return GangPhase.RESTING

    def release_and_fail(self, event: MemberFailed | SizeRefused) -> GangPhase:
        self._release_all()
        return self._fail(event.why)

    def succeed(self, _: AllSucceeded) -> None:
        self._end(Finish(FinalApplicationStatus.SUCCEEDED))

    def _release_all(self) -> None:
        for _ in range(self._requested):
            self._dispatcher.emit(WithdrawRequest(self._request))
        for container_id in self._held:
            self._dispatcher.emit(ReleaseContainer(container_id))
        self._requested = 0
        self._held = {}

    def _fail(self, diagnostics: str) -> GangPhase:
        self._end(Finish(FinalApplicationStatus.FAILED, f"{self}: {diagnostics}", EXIT_FAILED))
        return GangPhase.OVER


GANG_LIFECYCLE: Lifecycle[Gang, GangPhase] = Lifecycle(
    "Gang",
    GangPhase.RESTING,
    [
        Row(GangPhase.RESTING, TryDue, GangPhase.REQUESTING, Gang.request_all, "request all members at once"),
        Row(GangPhase.RESTING, SizeRefused, GangPhase.OVER, Gang.release_and_fail, "no try can succeed in this queue"),
        Row(GangPhase.REQUESTING, GangComplete, GangPhase.RUNNING, Gang.start_all, "all members start together"),
        Row(
            GangPhase.REQUESTING,
            TimeLimitReached,
            (GangPhase.RESTING, GangPhase.OVER),
            Gang.release_and_rest,
            "release containers that other gangs may need; OVER after the last try",
        ),
        Row(
            GangPhase.RUNNING,
            MemberLost,
            (GangPhase.RESTING, GangPhase.OVER),
            Gang.release_and_rest,
            "members cannot go on without one another; OVER after the last try",
        ),
        Row(
            GangPhase.RUNNING, MemberFailed, GangPhase.OVER, Gang.release_and_fail, "a member that fails fails the gang"
        ),
        Row(GangPhase.RUNNING, AllSucceeded, GangPhase.OVER, Gang.succeed, "all members ended with 0"),
    ],
)
