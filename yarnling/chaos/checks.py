"""What must hold of a run, read off its history. Pure; each check gives a line for every violation.

The fencing window is the heart of it. What was given up (an attempt that another has followed, a container whose task
runs again, anything of an application that is over) has to end. It may run on while a fault keeps the ResourceManager
from its node, and for a while after (`fence`): to end it sooner nobody has the means. Beyond that it runs twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from msgspec import Struct

from yarn.states import FINAL_APPLICATION_STATES, FinalApplicationStatus, YarnApplicationState
from yarnling.chaos.history import History, Life, Outcome, Role, Submission
from yarnling.chaos.plan import Expectations, Program

SUCCEEDED = FinalApplicationStatus.SUCCEEDED
SHOWN_MAX = 10
"""Violations of one check that are told; the rest is counted."""


class Checked(Struct, frozen=True):
    """One check: `figures` say what it looked at, `violations` what was wrong; `blind`: why it could see nothing.

    `timed`: it goes by how long something took, so that a machine that is too busy can break it too.
    """

    name: str
    figures: str
    violations: tuple[str, ...] = ()
    blind: str = ""
    timed: bool = False


def check_all(history: History, expect: Expectations) -> list[Checked]:
    """Every check, in the order of a summary."""
    checks: tuple[Callable[[History, Expectations], Checked], ...] = (
        check_acknowledged,
        check_outcomes,
        check_work_is_done,
        check_final_is_final,
        check_started_once,
        check_one_master,
        check_superseded_attempts,
        check_tasks_run_once,
        check_services_are_no_wider,
        check_nothing_after_the_end,
        check_daemons_live,
        check_healed,
        check_drained,
        check_nothing_is_left,
    )
    return [check(history, expect) for check in checks]


def check_begun(history: History, expect: Expectations) -> list[Checked]:
    """What can be told of a run that was given up: the others need its end."""
    return [
        check(history, expect)
        for check in (check_final_is_final, check_started_once, check_daemons_live, check_nothing_is_left)
    ]


# Nothing acknowledged is lost


def check_acknowledged(history: History, expect: Expectations) -> Checked:
    """Whoever heard "accepted" has an application that is known at the end (and over: check_drained).

    A refusal is an answer too, for what may fail: a full store takes nothing new.
    """
    acknowledged = [one for one in history.submissions if one.acknowledged_s is not None]
    wrong = []
    for one in acknowledged:
        outcome = _outcome(history, one)
        if outcome is None or outcome.state is None:
            wrong.append(f"{one.application_id} ({one.program.value} of {one.user}) was accepted and is not known")
    wrong += [
        f"{one.application_id}: refused: {one.refusal}"
        for one in history.submissions
        if one.refusal and not one.may_fail
    ]
    blind = "" if acknowledged else "no submission was acknowledged"
    return Checked("nothing acknowledged is lost", f"{len(acknowledged)} submissions", tuple(wrong), blind)


def check_outcomes(history: History, expect: Expectations) -> Checked:
    """Applications succeed, but for those that may fail; a service is killed at the end."""
    wrong, counts = [], Counter[str]()
    for one, outcome in _ended(history):
        counts[_named(outcome)] += 1
        if one.may_fail or outcome.final_status is SUCCEEDED:
            continue
        if one.program is Program.SERVICE and outcome.state is YarnApplicationState.KILLED:
            continue
        wrong.append(
            f"{one.application_id} ({one.program.value}) ended as {_named(outcome)}: {outcome.diagnostics.strip()}"
        )
    return Checked(
        "applications end well", ", ".join(f"{n} {name}" for name, n in sorted(counts.items())), tuple(wrong)
    )


def check_work_is_done(history: History, expect: Expectations) -> Checked:
    """Of an application that succeeded, every task has run to its end, and every word is counted."""
    wrong, done = [], 0
    for one, outcome in _ended(history):
        if outcome.final_status is not SUCCEEDED:
            continue
        ended = [life for life in history.of(one.application_id) if life.status == 0]
        if one.program is Program.BATCH:
            count = sum(1 for life in ended if life.role is Role.CONTAINER)
            if count < one.tasks:
                wrong.append(f"{one.application_id} succeeded with {count} of {one.tasks} containers done")
        elif one.program is Program.TASKS:
            missing = set(range(1, one.tasks + 1)) - {life.task for life in ended if life.role is Role.TASK}
            if missing:
                wrong.append(f"{one.application_id} succeeded without task {', '.join(map(str, sorted(missing)))}")
        elif one.program is Program.WORDCOUNT and not outcome.right:
            wrong.append(f"{one.application_id} succeeded, and its counts are not those of a plain count")
        done += 1
    return Checked("what succeeded was done", f"{done} applications", tuple(wrong))


def check_final_is_final(history: History, expect: Expectations) -> Checked:
    """An end that was told is never taken back."""
    final: dict[str, str] = {}
    wrong = []
    names = {state.name for state in FINAL_APPLICATION_STATES}
    for change in history.changes:
        if change.subject in final and change.state != final[change.subject]:
            wrong.append(f"{change.subject} was {final[change.subject]} and then {change.state}")
        if change.state in names:
            final[change.subject] = change.state
    return Checked("an end is never taken back", f"{len(final)} ends", tuple(wrong))


# Nothing runs twice


def check_started_once(history: History, expect: Expectations) -> Checked:
    """A container's command is started once."""
    starts = Counter(life.container_id for life in history.lives if life.role is not Role.TASK)
    wrong = [f"{container} was started {count} times" for container, count in starts.items() if count > 1]
    blind = "" if starts else "no container was started"
    return Checked("a container starts once", f"{len(starts)} containers", tuple(wrong), blind)


def check_one_master(history: History, expect: Expectations) -> Checked:
    """Beside the master of a later attempt none of an earlier one lives on, beyond the fencing window."""
    wrong, windows = [], []
    for one in history.submissions:
        masters = history.of(one.application_id, Role.MASTER)
        for later in masters:
            for earlier in masters:
                if earlier.attempt < later.attempt:
                    windows.append(earlier.last_s - later.start_s)
                    why = f"the master {later.container_id} began"
                    wrong += _beyond(expect, earlier, later.start_s, history.hidden(earlier.node), why)
    return Checked("one master an application", _widest(windows), tuple(wrong), timed=True)


def check_superseded_attempts(history: History, expect: Expectations) -> Checked:
    """Once an attempt is followed by another, its containers end; those of applications that keep them do not."""
    wrong, windows = [], []
    for one in history.submissions:
        if one.keep_containers:
            continue
        masters = history.of(one.application_id, Role.MASTER)
        for life in history.of(one.application_id, Role.CONTAINER, Role.TASK):
            successors = [master.start_s for master in masters if master.attempt > life.attempt]
            if successors:
                windows.append(life.last_s - min(successors))
                why = "the next attempt's master began"
                wrong += _beyond(expect, life, min(successors), history.hidden(life.node), why)
    return Checked("no work of attempts that are over", _widest(windows), tuple(wrong), timed=True)


def check_tasks_run_once(history: History, expect: Expectations) -> Checked:
    """A task that is begun again has no earlier run beside it."""
    wrong, windows, again = [], [], 0
    for one in history.submissions:
        runs = history.of(one.application_id, Role.TASK)
        for index, later in enumerate(runs):
            earlier = [run for run in runs[:index] if run.task == later.task]
            again += bool(earlier)
            for run in earlier:
                windows.append(run.last_s - later.start_s)
                why = f"task {run.task} was begun again"
                wrong += _beyond(expect, run, later.start_s, history.hidden(run.node), why)
    return Checked("no task twice at once", f"{again} tasks begun again, {_widest(windows)}", tuple(wrong), timed=True)


def check_services_are_no_wider(history: History, expect: Expectations) -> Checked:
    """Of a service's N containers no more than N run at once: one more takes the place of one that was given up."""
    wrong = []
    services = [one for one in history.submissions if one.program is Program.SERVICE]
    for one in services:
        lives = history.of(one.application_id, Role.CONTAINER)
        for index, new in enumerate(lives):
            beside = [life for life in lives[:index] if life.last_s > new.start_s]
            lasting = [
                life for life in beside if life.last_s > _deadline(expect, new.start_s, history.hidden(life.node))
            ]
            if len(lasting) + 1 > one.tasks:
                wrong.append(
                    f"{one.application_id}: {new.container_id} began beside {len(lasting)} containers that ran on, "
                    f"of {one.tasks} there may be"
                )
    return Checked("a service is no wider than asked", f"{len(services)} services", tuple(wrong), timed=True)


def check_nothing_after_the_end(history: History, expect: Expectations) -> Checked:
    """When an application is over, all that it has running ends."""
    wrong, windows = [], []
    names = {state.name for state in FINAL_APPLICATION_STATES}
    for one in history.submissions:
        end = next((change for change in history.changes_of(str(one.application_id)) if change.state in names), None)
        if end is None:
            continue
        for life in history.of(one.application_id):
            windows.append(life.last_s - end.at_s)
            # A master that has unregistered ends itself; one that never heard the answer asks on (AMFinishingMonitor).
            asks_on = life.role is Role.MASTER and end.state == YarnApplicationState.FINISHED.name
            excused = history.silenced(life) if asks_on else history.hidden(life.node)
            wrong += _beyond(expect, life, end.at_s, excused, "its application was over")
    return Checked("nothing runs for what is over", _widest(windows), tuple(wrong), timed=True)


# What is left


def check_daemons_live(history: History, expect: Expectations) -> Checked:
    """No daemon ended but those that were ended."""
    return Checked("no daemon ended by itself", "", tuple(history.died))


def check_healed(history: History, expect: Expectations) -> Checked:
    """With the faults gone, the ResourceManager answers and every node is RUNNING."""
    figure = f"after {history.healed_s - history.begun_s:.1f} s" if history.healed_s else ""
    return Checked("it heals", figure, tuple(history.unhealed), timed=True)


def check_drained(history: History, expect: Expectations) -> Checked:
    """Then all applications end, and what they held is free."""
    states = {one.application_id: outcome.state for one in history.submissions if (outcome := _outcome(history, one))}
    wrong = [
        f"{application_id} is still {state.name}"
        for application_id, state in states.items()
        if state is not None and state not in FINAL_APPLICATION_STATES
    ]
    figure = f"{history.drained_s - history.healed_s:.1f} s after it was healed" if history.drained_s else ""
    return Checked("it drains to zero", figure, (*wrong, *history.undrained), timed=True)


def check_nothing_is_left(history: History, expect: Expectations) -> Checked:
    """No process, no port, no file."""
    return Checked("no process, port or file is left", "", tuple(history.left))


def _outcome(history: History, submission: Submission) -> Outcome | None:
    return history.outcomes.get(submission.application_id)


def _ended(history: History) -> list[tuple[Submission, Outcome]]:
    """The acknowledged applications that are over, and how."""
    return [
        (one, outcome)
        for one in history.submissions
        if one.acknowledged_s is not None
        and (outcome := _outcome(history, one)) is not None
        and outcome.state in FINAL_APPLICATION_STATES
    ]


def _named(outcome: Outcome) -> str:
    if outcome.state is YarnApplicationState.FINISHED:
        return outcome.final_status.name
    return outcome.state.name if outcome.state is not None else "UNKNOWN"


def _deadline(expect: Expectations, given_up_s: float, excused: Iterable[tuple[float, float]]) -> float:
    """Until when may go on what was given up then; `excused`: when a fault kept it from ending, in order."""
    deadline_s = given_up_s + expect.fence
    for from_s, to_s in excused:
        if from_s <= deadline_s and to_s >= given_up_s:
            deadline_s = max(deadline_s, to_s + expect.fence)
    return deadline_s


def _beyond(
    expect: Expectations, life: Life, given_up_s: float, excused: Iterable[tuple[float, float]], why: str
) -> list[str]:
    """A line, if `life` went on beyond the fencing window."""
    deadline_s = _deadline(expect, given_up_s, excused)
    if life.last_s <= deadline_s:
        return []
    what = f"task {life.task} in {life.container_id}" if life.role is Role.TASK else str(life.container_id)
    return [
        f"{what} on nm-{life.node} ran on for {life.last_s - given_up_s:.1f} s after {why}; "
        f"it had to end {deadline_s - given_up_s:.1f} s after"
    ]


def _widest(windows: Iterable[float]) -> str:
    widest = max((window for window in windows if window > 0), default=0.0)
    return f"at most {widest:.1f} s side by side" if widest else "never side by side"
