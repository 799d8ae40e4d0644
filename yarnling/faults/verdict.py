"""The verdict on a run (pass, fail, or cannot tell), and the effect of each fault. Pure.

A run with a violation always fails, even if something else went wrong. A run without violations passes only if its
faults were injected, and if everything that its plan expects could be examined.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum

from msgspec import Struct

from yarn.ids import ContainerId
from yarn.states import FinalApplicationStatus
from yarn.times import duration
from yarnling.faults.checks import CheckResult, check_aborted, check_all
from yarnling.faults.history import SILENT, History, InjectedFault, ObservedChange, ProcessRole
from yarnling.faults.kinds import FaultScope
from yarnling.faults.plan import Plan

LAG_MAX_S = 1.0
"""The longest acceptable delay of a sleep in seconds: three such delays can make a healthy node expire."""


class RunVerdict(IntEnum):
    """The verdict; the value is the exit status of the command. (2 is used for a wrong command line.)"""

    PASS = 0
    FAIL = 1
    CANNOT_TELL = 3

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")


class Judgement(Struct, frozen=True):
    """The verdict with its reasons, which are empty if the run passes."""

    verdict: RunVerdict
    checks: tuple[CheckResult, ...]
    reasons: tuple[str, ...]


def judge(plan: Plan, history: History) -> Judgement:
    """Check a history against the guarantees that every run must keep, and against the expectations of this plan."""
    if history.problem:
        checks = check_aborted(history, plan.expect)
    else:
        checks = [*check_all(history, plan.expect), *_expected(plan, history)]
    violations = tuple(f"{check.name}: {line}" for check in checks for line in check.violations)
    is_busy = history.lag_s > LAG_MAX_S
    if violations and not (is_busy and all(check.timed for check in checks if check.violations)):
        return Judgement(RunVerdict.FAIL, tuple(checks), violations)
    doubts = [history.problem] if history.problem else []
    if violations:
        doubts += [f"this machine is too busy to check times: a sleep was {history.lag_s:.1f} s too long", *violations]
    doubts += [f"{one.injection} could not be injected: {one.problem}" for one in history.injected if one.problem]
    doubts += [check.blind for check in checks if check.blind and not history.problem]
    if not history.problem and plan.faults and all(one.skipped for one in history.injected):
        doubts.append("no fault was injected")
    return Judgement(RunVerdict.CANNOT_TELL if doubts else RunVerdict.PASS, tuple(checks), tuple(doubts))


def _expected(plan: Plan, history: History) -> Iterator[CheckResult]:
    """The checks of what the plan itself expects."""
    expect = plan.expect
    if expect.nodes_lost is not None:
        lost = sum(1 for one in history.changes if one.state == "LOST" and one.subject.startswith("nm-"))
        yield _bounded("nodes lost as expected", lost, expect.nodes_lost)
    if expect.attempts is not None:
        attempts = max((span.attempt for span in history.spans if span.role is ProcessRole.MASTER), default=0)
        yield _bounded("attempts as expected", attempts, expect.attempts)
    if expect.failed is not None:
        failed = sum(1 for one in history.outcomes.values() if one.final_status is FinalApplicationStatus.FAILED)
        yield _bounded("failed applications as expected", failed, expect.failed)
    if expect.refused is not None:
        refused = sum(1 for one in history.submissions if one.refusal)
        yield _bounded("submissions refused as expected", refused, expect.refused)
    if expect.lost_within is not None:
        times = times_to_lost(history)
        late = [
            f"{one.injection}: lost after {took_s:.1f} s, expected within {expect.lost_within:g} s"
            for one, took_s in times
            if took_s > expect.lost_within
        ]
        slowest = max((took_s for _, took_s in times), default=0.0)
        yield CheckResult("nodes lost in time", f"{slowest:.1f} s at most", tuple(late), timed=True)


def _bounded(name: str, value: int, bounds: tuple[int, int]) -> CheckResult:
    least, most = bounds
    expected = str(least) if least == most else f"{least} to {most}"
    wrong = () if least <= value <= most else (f"{value}, expected {expected}",)
    return CheckResult(name, str(value), wrong, timed=True)


def effect_of(fault: InjectedFault, history: History) -> str:
    """The observed effect of a fault, for example `LOST after 3.1 s, back 0.4 s after the fault ended`.

    Returns "" if no effect was observed.
    """
    scope = fault.injection.kind.scope
    parts: list[str] = []
    if scope is FaultScope.NODE:
        parts = [part for number in fault.injection.nodes for part in _on_node(fault, history, f"nm-{number}")]
    elif scope is FaultScope.RM:
        parts = _on_rm(fault, history)
    elif scope is FaultScope.MASTER and fault.target:
        parts = _on_master(fault, history)
    elif scope is FaultScope.CONTAINER and fault.target:
        parts = _on_container(fault, history)
    return ", ".join(dict.fromkeys(parts))


def times_to_lost(history: History) -> list[tuple[InjectedFault, float]]:
    """Each fault that killed or paused a node, with the seconds until the node was LOST.

    Nodes that were not LOST are left out.
    """
    found = []
    for one in history.injected:
        if one.injection.kind.name in ("kill-node", "pause-node") and not one.skipped:
            for number in one.injection.nodes:
                lost = _first(history.changes_of(f"nm-{number}"), one.start_s, history.end_of(one), "LOST")
                if lost is not None:
                    found.append((one, lost.at_s - one.start_s))
    return found


def _on_node(fault: InjectedFault, history: History, name: str) -> list[str]:
    changes, end_s = list(history.changes_of(name)), history.end_of(fault)
    away = next((one for one in changes if fault.start_s <= one.at_s <= end_s and one.state != "RUNNING"), None)
    if away is None:
        return []
    parts = [f"{away.state} after {duration(1000 * (away.at_s - fault.start_s))}"]
    back = _first(changes, away.at_s, float("inf"), "RUNNING")
    if back is not None and fault.recovered_s is not None and back.at_s >= fault.recovered_s:
        parts.append(f"back {duration(1000 * (back.at_s - fault.recovered_s))} after the fault ended")
    return parts


def _on_rm(fault: InjectedFault, history: History) -> list[str]:
    silent = _first(history.changes_of("rm"), fault.start_s, history.end_of(fault), SILENT)
    if silent is None:
        return []
    answers = _first(history.changes_of("rm"), silent.at_s, float("inf"), "ANSWERS")
    return [] if answers is None else [f"silent for {duration(1000 * (answers.at_s - fault.start_s))}"]


def _on_master(fault: InjectedFault, history: History) -> list[str]:
    container = ContainerId.parse(fault.target)
    masters = history.spans_of(container.application_id, ProcessRole.MASTER)
    following = [master for master in masters if master.attempt > container.attempt_id.attempt]
    return [f"next attempt after {duration(1000 * (following[0].start_s - fault.start_s))}"] if following else []


def _on_container(fault: InjectedFault, history: History) -> list[str]:
    """The next run of a task in another container."""
    container = ContainerId.parse(fault.target)
    spans = history.spans_of(container.application_id, ProcessRole.CONTAINER, ProcessRole.TASK)
    tasks = {span.task for span in spans if span.container_id == container} - {0}
    again = [
        span for span in spans if span.task in tasks and span.container_id != container and span.start_s > fault.start_s
    ]
    return [
        f"task {span.task} started again after {duration(1000 * (span.start_s - fault.start_s))}" for span in again[:1]
    ]


def _first(changes: Iterable[ObservedChange], from_s: float, to_s: float, state: str) -> ObservedChange | None:
    return next((change for change in changes if from_s <= change.at_s <= to_s and change.state == state), None)
