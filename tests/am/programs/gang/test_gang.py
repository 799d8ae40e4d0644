"""A gang holds its containers until it has all, releases them at its time limit, and tries again."""

from __future__ import annotations

import pytest

from am.core.actions import Action, Finish, Launch, Leave, ReleaseContainer, RequestContainer, WithdrawRequest
from am.core.events import (
    AllocatedContainer,
    AllocateFailed,
    ContainersAllocated,
    ContainersCompleted,
    ContainerStartFailed,
    Event,
    HeartbeatDone,
    Registered,
    ShutdownOrdered,
)
from am.core.requests import ContainerRequest
from am.programs.gang.core import GANG_LIFECYCLE, Gang, GangPhase, GangPlan, Member
from tests.am.builders import GB, MB_512, container, container_id, ended
from yarn.containers import ContainerLaunchContext
from yarn.errors import YarnException
from yarn.ids import ContainerId
from yarn.machine import IllegalTransition, StateChanged, complement
from yarn.resource import NONE, Resource
from yarn.states import FinalApplicationStatus

PLAN = GangPlan(3, MB_512, wait_ms=1000, pause_ms=100, tries=3)
REQUEST = ContainerRequest(MB_512, priority=0)
REGISTERED = Registered(GB, "root.default")
BEAT = HeartbeatDone(NONE, 1)


def unregistered(plan: GangPlan = PLAN, spread: int = 0) -> Gang:
    def launch_context(member: Member) -> ContainerLaunchContext:
        return ContainerLaunchContext(commands=(f"{member.rank} of {','.join(member.hosts)} ({member.try_number})",))

    return Gang(plan, launch_context, spread, check_invariants=True)


def gang(plan: GangPlan = PLAN, spread: int = 0) -> Gang:
    made = unregistered(plan, spread)
    assert handle(made, REGISTERED) == [RequestContainer(REQUEST)] * plan.members
    return made


def handle(made: Gang, event: Event, now_ms: int | None = None) -> list[Action]:
    """The actions of one event, without state changes. If `now_ms` is None, the event has the time of the last one."""
    actions = made.handle(event, made.now_ms if now_ms is None else now_ms)
    return [action for action in actions if not isinstance(action, StateChanged)]


def give(made: Gang, *numbers: int, now_ms: int | None = None) -> list[Action]:
    given = tuple(AllocatedContainer(container(n, f"h{n}", priority=0, size=MB_512), REQUEST) for n in numbers)
    return handle(made, ContainersAllocated(given), now_ms)


def end(made: Gang, number: int, status: int = 0, now_ms: int | None = None) -> list[Action]:
    return handle(made, ContainersCompleted((ended(number, status),)), now_ms)


def given_back(*numbers: int) -> list[Action]:
    return [ReleaseContainer(container_id(number)) for number in numbers]


def test_members_start_together_and_know_one_another() -> None:
    made = gang()
    assert give(made, 2, 3) == []
    starts = give(made, 4)
    assert [a.launch_context.commands for a in starts if isinstance(a, Launch)] == [
        ("0 of h2,h3,h4 (1)",),
        ("1 of h2,h3,h4 (1)",),
        ("2 of h2,h3,h4 (1)",),
    ]
    assert end(made, 2) == end(made, 3) == []
    assert made.progress() == pytest.approx(2 / 3)
    assert end(made, 4) == [Finish(FinalApplicationStatus.SUCCEEDED)]


def test_at_the_time_limit_everything_is_released_and_requested_again_after_a_pause() -> None:
    made = gang()
    give(made, 2, 3)
    assert handle(made, BEAT, 999) == []
    assert handle(made, BEAT, 1000) == [WithdrawRequest(REQUEST), *given_back(2, 3)]
    assert (made.held, made.phase) == (0, GangPhase.RESTING)
    assert give(made, 4, now_ms=1010) == given_back(4)
    assert end(made, 2, -100) == []
    assert handle(made, BEAT, 1099) == []
    assert handle(made, BEAT, 1100) == [RequestContainer(REQUEST)] * 3
    starts = give(made, 5, 6, 7)
    assert [a.launch_context.commands for a in starts if isinstance(a, Launch)] == [
        ("0 of h5,h6,h7 (2)",),
        ("1 of h5,h6,h7 (2)",),
        ("2 of h5,h6,h7 (2)",),
    ]


def test_the_pause_doubles_and_the_last_try_fails_the_gang() -> None:
    made = gang()
    handle(made, BEAT, 1000)
    handle(made, BEAT, 1100)
    give(made, 2, now_ms=1200)
    assert handle(made, BEAT, 2100) == [WithdrawRequest(REQUEST)] * 2 + given_back(2)
    assert handle(made, BEAT, 2299) == []
    assert handle(made, BEAT, 2300) == [RequestContainer(REQUEST)] * 3
    *_, finish = handle(made, BEAT, 3300)
    assert finish == Finish(
        FinalApplicationStatus.FAILED, "gang of 3: 0 of 3 containers came within 1 s (try 3 of 3)", exit_code=2
    )
    assert handle(made, BEAT, 9999) == []


def test_gangs_pause_for_different_times() -> None:
    rests = set()
    for spread in range(8):
        made = gang(spread=spread)
        handle(made, BEAT, 1000)
        rests.add(next(ms for ms in range(1000, 1300) if handle(made, BEAT, ms)))
    assert len(rests) == 8


def test_a_held_container_that_the_rm_takes_back_is_requested_again() -> None:
    made = gang()
    give(made, 2, 3)
    assert end(made, 3, -100) == [RequestContainer(REQUEST)]
    assert [type(action) for action in give(made, 5, 6)] == [Launch] * 3


def test_surplus_containers_are_released() -> None:
    made = gang()
    assert give(made, 2, 3, 4, 5)[:1] == given_back(5)


def test_a_member_that_fails_fails_the_gang() -> None:
    made = gang()
    give(made, 2, 3, 4)
    *back, finish = end(made, 3, 1)
    assert back == given_back(2, 4)
    assert isinstance(finish, Finish)
    assert finish.diagnostics.endswith("_000003 ended with 1")


@pytest.mark.parametrize("status", [-100, -101, -102, -106])
def test_a_lost_member_restarts_the_gang(status: int) -> None:
    made = gang()
    give(made, 2, 3, 4)
    end(made, 2)
    assert end(made, 3, status, now_ms=500) == given_back(4)
    assert handle(made, BEAT, 600) == [RequestContainer(REQUEST)] * 3
    assert made.progress() == 0


def test_members_that_are_lost_with_one_node_are_not_released_once_more() -> None:
    made = gang()
    give(made, 2, 3, 4)
    both = ContainersCompleted((ended(2, -100), ended(3, -100)))
    assert handle(made, both) == given_back(4)
    assert made.phase is GangPhase.RESTING


def test_the_last_members_may_end_together() -> None:
    made = gang()
    give(made, 2, 3, 4)
    ends = ContainersCompleted((ended(2), ended(4), ended(3)))
    assert handle(made, ends) == [Finish(FinalApplicationStatus.SUCCEEDED)]


def test_held_containers_that_are_lost_together_are_requested_again() -> None:
    made = gang()
    give(made, 2, 3)
    assert handle(made, ContainersCompleted((ended(2, -100), ended(3, -100)))) == [RequestContainer(REQUEST)] * 2


def test_a_failed_start_restarts_the_gang() -> None:
    made = gang()
    give(made, 2, 3, 4)
    assert handle(made, ContainerStartFailed(container_id(4), "no")) == given_back(2, 3, 4)
    assert made.phase is GangPhase.RESTING


def test_members_larger_than_the_queue_allows_fail_the_gang_at_once() -> None:
    made = unregistered()
    (finish,) = handle(made, Registered(Resource(256, 1), "root.s"))
    assert isinstance(finish, Finish)
    assert "larger than root.s allows, <memory:256, vCores:1>" in finish.diagnostics


def test_it_exits_when_the_rm_does_not_know_it_or_cannot_be_reached() -> None:
    assert handle(gang(), ShutdownOrdered("gone")) == [Leave("gone")]
    assert handle(gang(), AllocateFailed(YarnException("silent"))) == [Leave("silent")]


class Slots:
    """A cluster with a number of free slots that two gangs get in turns."""

    def __init__(self, free: int, *gangs: Gang) -> None:
        self.free = free
        self.wanted = dict.fromkeys(gangs, 0)
        self.started: dict[Gang, list[ContainerId]] = {made: [] for made in gangs}
        self._numbers = iter(range(2, 10_000))

    def apply(self, made: Gang, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case RequestContainer():
                    self.wanted[made] += 1
                case WithdrawRequest():
                    self.wanted[made] -= 1
                case ReleaseContainer():
                    self.free += 1
                case Launch(given):
                    self.started[made].append(given.id)

    def step(self, made: Gang, now_ms: int) -> None:
        """Handle one heartbeat, which brings at most one container, and end the members that were started."""
        done, self.started[made] = self.started[made], []
        for container_id_ in done:
            self.free += 1
            self.apply(made, handle(made, ContainersCompleted((ended(container_id_.sequence),)), now_ms))
        if self.wanted[made] and self.free:
            self.wanted[made] -= 1
            self.free -= 1
            self.apply(made, give(made, next(self._numbers), now_ms=now_ms))
        self.apply(made, handle(made, BEAT, now_ms))


@pytest.mark.parametrize(("first", "second"), [(0, 1), (3, 4), (7, 8), (5, 10)])
def test_two_gangs_that_each_hold_half_do_not_wait_forever(first: int, second: int) -> None:
    plan = GangPlan(6, MB_512, wait_ms=1000, pause_ms=1000, tries=6)
    gangs = [gang(plan, spread) for spread in (first, second)]
    slots = Slots(8, *gangs)
    for made in gangs:
        slots.wanted[made] = plan.members
    for now_ms in range(0, 200_000, 50):
        for made in gangs:
            slots.step(made, now_ms)
        assert slots.free >= 0
    assert [made.succeeded for made in gangs] == [6, 6]
    assert all(made.tries > 1 for made in gangs)
    assert slots.free == 8


def test_illegal_events_of_a_gang() -> None:
    illegal = complement(GANG_LIFECYCLE)
    assert illegal
    for state, event in illegal:
        made = unregistered()
        made.machine.state = state
        with pytest.raises(IllegalTransition):
            GANG_LIFECYCLE.handle(made, made.machine, event("why") if event.__struct_fields__ else event(), 0)
        assert made.phase is state
