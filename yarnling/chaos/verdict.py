"""The verdict on a run: it holds, it does not, or it cannot be told. Pure.

A violation that was seen was seen, whatever else went wrong. Without one, a run tells something only if its faults fell
and what it expects could be looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from msgspec import Struct

from yarn.states import FinalApplicationStatus
from yarnling.chaos.checks import Checked, check_all, check_begun
from yarnling.chaos.costs import nodes_lost, times_to_lost
from yarnling.chaos.history import History, Role
from yarnling.chaos.plan import Plan

LAG_MAX_S = 1.0
"""Where a sleep lasts so much longer than it should, a node may be late by three of them and be taken for lost."""


class Verdict(IntEnum):
    """Also the exit status of the command; 2 is that of a wrong command line."""

    PASS = 0
    FAIL = 1
    CANNOT_TELL = 3


class Judgement(Struct, frozen=True):
    """`reasons`: why it fails, or why it cannot be told; none if it passes."""

    verdict: Verdict
    checks: tuple[Checked, ...]
    reasons: tuple[str, ...]


def judge(plan: Plan, history: History) -> Judgement:
    """Hold a history against what must hold of every run, and what the plan expects of this one."""
    if history.problem:
        checks = check_begun(history, plan.expect)
    else:
        checks = [*check_all(history, plan.expect), *_expected(plan, history)]
    violations = tuple(f"{check.name}: {line}" for check in checks for line in check.violations)
    is_busy = history.lag_s > LAG_MAX_S
    if violations and not (is_busy and all(check.timed for check in checks if check.violations)):
        return Judgement(Verdict.FAIL, tuple(checks), violations)
    doubts = [history.problem] if history.problem else []
    if violations:
        doubts += [f"this machine is too busy for times: a sleep was {history.lag_s:.1f} s too long", *violations]
    doubts += [f"{one.blow} could not be done: {one.problem}" for one in history.injected if one.problem]
    doubts += [check.blind for check in checks if check.blind and not history.problem]
    if not history.problem and plan.faults and all(one.skipped for one in history.injected):
        doubts.append("no fault fell")
    return Judgement(Verdict.CANNOT_TELL if doubts else Verdict.PASS, tuple(checks), tuple(doubts))


def _expected(plan: Plan, history: History) -> Iterator[Checked]:
    """What the plan itself asks for."""
    expect = plan.expect
    if expect.nodes_lost is not None:
        yield _bounded("nodes lost as expected", nodes_lost(history), expect.nodes_lost)
    if expect.attempts is not None:
        attempts = max((life.attempt for life in history.lives if life.role is Role.MASTER), default=0)
        yield _bounded("attempts as expected", attempts, expect.attempts)
    if expect.failed is not None:
        failed = sum(1 for one in history.outcomes.values() if one.final_status is FinalApplicationStatus.FAILED)
        yield _bounded("applications that failed as expected", failed, expect.failed)
    if expect.refused is not None:
        refused = sum(1 for one in history.submissions if one.refusal)
        yield _bounded("submissions refused as expected", refused, expect.refused)
    if expect.lost_within is not None:
        late = [
            f"{one.blow}: lost after {took_s:.1f} s, expected within {expect.lost_within:g} s"
            for one, took_s in times_to_lost(history)
            if took_s > expect.lost_within
        ]
        slowest = max((took_s for _, took_s in times_to_lost(history)), default=0.0)
        yield Checked("lost in time", f"{slowest:.1f} s at most", tuple(late), timed=True)


def _bounded(name: str, value: int, bounds: tuple[int, int]) -> Checked:
    least, most = bounds
    expected = str(least) if least == most else f"{least} to {most}"
    wrong = () if least <= value <= most else (f"{value}, expected {expected}",)
    return Checked(name, str(value), wrong, timed=True)
