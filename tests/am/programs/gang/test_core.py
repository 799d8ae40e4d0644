"""A gang holds what it gets until it has all, gives everything back when the time is up, and comes again."""

from __future__ import annotations

import pytest

from am.core.events import (
    Allocation,
    ContainersAllocated,
    ContainersCompleted,
    ContainerStartFailed,
    HeartbeatDone,
    HeartbeatFailed,
    Registered,
    ShutdownOrdered,
)
from am.core.requests import ContainerRequest
from am.programs.core.actions import Action, AskFor, Finish, GiveBack, Launch, Leave, Withdraw
from am.programs.gang.core import Gang, GangPlan, Phase
from tests.am.builders import GB, MB_512, container, container_id, ended
from yarn.containers import ContainerLaunchContext
from yarn.errors import YarnException
from yarn.ids import ContainerId
from yarn.resource import NONE, Resource
from yarn.states import FinalApplicationStatus

PLAN = GangPlan(3, MB_512, wait_ms=1000, pause_ms=100, tries=3)
REQUEST = ContainerRequest(MB_512, priority=0)
REGISTERED = Registered(GB, "root.default")
BEAT = HeartbeatDone(NONE, 1)


def gang(plan: GangPlan = PLAN, spread: int = 0) -> Gang:
    made = Gang(plan, lambda m: ContainerLaunchContext(commands=(f"{m.rank} of {','.join(m.hosts)}",)), spread)
    assert made.handle(REGISTERED, 0) == [AskFor(REQUEST)] * plan.members
    return made


def give(made: Gang, *numbers: int, now_ms: int = 0) -> list[Action]:
    given = tuple(Allocation(container(n, f"h{n}", priority=0, size=MB_512), REQUEST) for n in numbers)
    return made.handle(ContainersAllocated(given), now_ms)


def end(made: Gang, number: int, status: int = 0, now_ms: int = 0) -> list[Action]:
    return made.handle(ContainersCompleted((ended(number, status),)), now_ms)


def given_back(*numbers: int) -> list[Action]:
    return [GiveBack(container_id(number)) for number in numbers]


def test_nothing_starts_before_the_last_has_come_and_then_each_knows_the_others() -> None:
    made = gang()
    assert give(made, 2, 3) == []
    starts = give(made, 4)
    assert [a.launch_context.commands for a in starts if isinstance(a, Launch)] == [
        ("0 of h2,h3,h4",),
        ("1 of h2,h3,h4",),
        ("2 of h2,h3,h4",),
    ]
    assert end(made, 2) == end(made, 3) == []
    assert made.progress() == pytest.approx(2 / 3)
    assert end(made, 4) == [Finish(FinalApplicationStatus.SUCCEEDED)]


def test_when_the_time_is_up_all_goes_back_and_after_a_pause_it_asks_again() -> None:
    made = gang()
    give(made, 2, 3)
    assert made.handle(BEAT, 999) == []
    assert made.handle(BEAT, 1000) == [Withdraw(REQUEST), *given_back(2, 3)]
    assert (made.held, made.phase) == (0, Phase.RESTING)
    assert give(made, 4, now_ms=1010) == given_back(4)
    assert end(made, 2, -100) == []
    assert made.handle(BEAT, 1099) == []
    assert made.handle(BEAT, 1100) == [AskFor(REQUEST)] * 3
    assert [type(action) for action in give(made, 5, 6, 7)] == [Launch] * 3


def test_the_pause_doubles_and_the_last_try_fails_it_with_nothing_kept() -> None:
    made = gang()
    made.handle(BEAT, 1000)
    made.handle(BEAT, 1100)
    give(made, 2, now_ms=1200)
    assert made.handle(BEAT, 2100) == [Withdraw(REQUEST)] * 2 + given_back(2)
    assert made.handle(BEAT, 2299) == []
    assert made.handle(BEAT, 2300) == [AskFor(REQUEST)] * 3
    *_, finish = made.handle(BEAT, 3300)
    assert finish == Finish(
        FinalApplicationStatus.FAILED, "gang of 3: 0 of 3 containers came within 1 s (try 3 of 3)", exit_code=2
    )
    assert made.handle(BEAT, 9999) == []


def test_gangs_rest_for_different_times() -> None:
    rests = set()
    for spread in range(8):
        made = gang(spread=spread)
        made.handle(BEAT, 1000)
        rests.add(next(ms for ms in range(1000, 1300) if made.handle(BEAT, ms)))
    assert len(rests) == 8


def test_a_held_container_that_the_rm_takes_back_is_asked_for_anew() -> None:
    made = gang()
    give(made, 2, 3)
    assert end(made, 3, -100) == [AskFor(REQUEST)]
    assert [type(action) for action in give(made, 5, 6)] == [Launch] * 3


def test_more_than_asked_for_goes_back() -> None:
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
def test_a_member_that_is_lost_has_the_gang_begin_again(status: int) -> None:
    made = gang()
    give(made, 2, 3, 4)
    end(made, 2)
    assert end(made, 3, status, now_ms=500) == given_back(4)
    assert made.handle(BEAT, 600) == [AskFor(REQUEST)] * 3
    assert made.progress() == 0


def test_a_start_that_fails_has_the_gang_begin_again() -> None:
    made = gang()
    give(made, 2, 3, 4)
    assert made.handle(ContainerStartFailed(container_id(4), "no"), 0) == given_back(2, 3, 4)
    assert made.phase is Phase.RESTING


def test_members_larger_than_the_queue_allows_fail_it_at_once() -> None:
    made = Gang(PLAN, lambda member: ContainerLaunchContext(), 0)
    (finish,) = made.handle(Registered(Resource(256, 1), "root.s"), 0)
    assert isinstance(finish, Finish)
    assert "larger than root.s allows, <memory:256, vCores:1>" in finish.diagnostics


def test_it_leaves_when_it_is_told_to_or_cut_off() -> None:
    assert gang().handle(ShutdownOrdered("gone"), 0) == [Leave("gone")]
    assert gang().handle(HeartbeatFailed(YarnException("silent")), 0) == [Leave("silent")]


class Slots:
    """Room for so many containers, handed out in turns: what two gangs meet on a cluster."""

    def __init__(self, free: int, *gangs: Gang) -> None:
        self.free = free
        self.wanted = dict.fromkeys(gangs, 0)
        self.started: dict[Gang, list[ContainerId]] = {made: [] for made in gangs}
        self._numbers = iter(range(2, 10_000))

    def apply(self, made: Gang, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case AskFor():
                    self.wanted[made] += 1
                case Withdraw():
                    self.wanted[made] -= 1
                case GiveBack():
                    self.free += 1
                case Launch(given):
                    self.started[made].append(given.id)

    def step(self, made: Gang, now_ms: int) -> None:
        """One heartbeat, which brings one container at most, and ends what was started."""
        done, self.started[made] = self.started[made], []
        for container_id_ in done:
            self.free += 1
            self.apply(made, made.handle(ContainersCompleted((ended(container_id_.sequence),)), now_ms))
        if self.wanted[made] and self.free:
            self.wanted[made] -= 1
            self.free -= 1
            self.apply(made, give(made, next(self._numbers), now_ms=now_ms))
        self.apply(made, made.handle(BEAT, now_ms))


@pytest.mark.parametrize(("first", "second"), [(0, 1), (3, 4), (7, 8), (5, 10)])
def test_two_gangs_that_each_hold_half_do_not_wait_for_ever(first: int, second: int) -> None:
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
