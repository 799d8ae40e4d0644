"""Checks the history of a run against the guarantees of the cluster. Pure.

Each check returns one line for each violation. Many checks use a *fencing window*. Work is superseded if another
attempt has followed it, if its task runs again in another container, or if its application has ended. Superseded work
has to end. While a fault keeps the ResourceManager from reaching the node, and for `fence` seconds after that, nothing
can stop the work, so it may still run. If it runs after this window, work is done twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from am.programs.custom.journal import confirmed_in
from am.programs.gang.core import Member
from yarn.states import FINAL_APPLICATION_STATES, FinalApplicationStatus, YarnApplicationState
from yarn.times import duration
from yarnling.faults.history import (
    FINAL_STATES,
    History,
    ProcessRole,
    ProcessSpan,
    ReportedEnd,
    SubmittedApplication,
    window_end,
)
from yarnling.faults.plan import Expectations, WorkProgram
from yarnling.report.wording import counted

SUCCEEDED = FinalApplicationStatus.SUCCEEDED


class CheckResult(Struct, frozen=True):
    """The result of one check. `figures` says how much it examined; `blind` says why it could examine nothing, or "".

    `timed`: the check depends on how long something took, so it may also fail because the machine is too busy.
    """

    name: str
    figures: str
    violations: tuple[str, ...] = ()
    blind: str = ""
    timed: bool = False


def check_all(history: History, expect: Expectations) -> list[CheckResult]:
    """Make all checks, in the order of the summary."""
    checks: tuple[Callable[[History, Expectations], CheckResult], ...] = (
        check_acknowledged,
        check_outcomes,
        check_work_is_done,
        check_confirmed,
        check_final_is_final,
        check_started_once,
        check_one_master,
        check_superseded_attempts,
        check_tasks_run_once,
        check_service_size,
        check_gangs_start,
        check_gangs_end,
        check_nothing_after_the_end,
        check_daemons_live,
        check_recovered,
        check_drained,
        check_nothing_is_left,
    )
    return [check(history, expect) for check in checks]


def check_aborted(history: History, expect: Expectations) -> list[CheckResult]:
    """Make the checks that also apply to an aborted run; the other checks need the end of a run."""
    return [
        check(history, expect)
        for check in (check_final_is_final, check_started_once, check_daemons_live, check_nothing_is_left)
    ]


def check_acknowledged(history: History, expect: Expectations) -> CheckResult:
    """Every acknowledged application is still known at the end. (check_drained checks that it has ended.)

    An application that may fail may also be refused: with a full state store, the ResourceManager accepts no new ones.
    After a fault that took the state store away, the applications before it are unknown.
    """
    acknowledged = [one for one in history.submissions if one.acknowledged_s is not None]
    wrong = []
    for one in acknowledged:
        outcome = _outcome(history, one)
        if (outcome is None or outcome.state is None) and not history.is_forgotten(one):
            wrong.append(
                f"{one.application_id} ({one.program.value} of {one.user}) was accepted but is unknown at the end"
            )
    wrong += [
        f"{one.application_id}: refused: {one.refusal}"
        for one in history.submissions
        if one.refusal and not one.may_fail
    ]
    blind = "" if acknowledged else "no submission was acknowledged"
    return CheckResult(
        "no acknowledged application is lost", counted(len(acknowledged), "submission"), tuple(wrong), blind
    )


def check_outcomes(history: History, expect: Expectations) -> CheckResult:
    """Applications succeed, except services, which are killed at the end, and applications that may fail."""
    wrong, counts = [], Counter[str]()
    for one, outcome in _ended(history):
        counts[_named(outcome)] += 1
        if one.may_fail or outcome.final_status is SUCCEEDED:
            continue
        if one.program is WorkProgram.SERVICE and outcome.state is YarnApplicationState.KILLED:
            continue
        wrong.append(
            f"{one.application_id} ({one.program.value}) ended as {_named(outcome)}: {outcome.diagnostics.strip()}"
        )
    return CheckResult(
        "applications succeed", ", ".join(f"{n} {name}" for name, n in sorted(counts.items())), tuple(wrong)
    )


def check_work_is_done(history: History, expect: Expectations) -> CheckResult:
    """All tasks of a successful application ran to completion, and the result of its word count is correct."""
    wrong, done = [], 0
    for one, outcome in _ended(history):
        if outcome.final_status is not SUCCEEDED:
            continue
        ended = [span for span in history.spans_of(one.application_id) if span.status == 0]
        if one.program is WorkProgram.BATCH:
            count = sum(1 for span in ended if span.role is ProcessRole.CONTAINER)
            if count < one.tasks:
                wrong.append(f"{one.application_id} succeeded with {count} of {one.tasks} containers done")
        elif one.program in (WorkProgram.TASKS, WorkProgram.CUSTOM):
            missing = set(range(1, one.tasks + 1)) - {span.task for span in ended if span.role is ProcessRole.TASK}
            if missing:
                wrong.append(f"{one.application_id} succeeded without task {', '.join(map(str, sorted(missing)))}")
        elif one.program is WorkProgram.GANG:
            tries = Counter(_try_of(span) for span in ended if span.member is not None)
            if (most := max(tries.values(), default=0)) < one.tasks:
                wrong.append(f"{one.application_id} succeeded with {most} of {one.tasks} members of a try done")
        elif one.program is WorkProgram.WORDCOUNT and not outcome.right:
            wrong.append(f"{one.application_id} succeeded, but its counts are wrong")
        done += 1
    return CheckResult("successful work is complete", f"{done} applications", tuple(wrong))


def check_confirmed(history: History, expect: Expectations) -> CheckResult:
    """A custom AM confirms each task once, after a container has done it, and holds no container when it finishes.

    Two attempts that run at once may both confirm a task: neither knows of the other.
    """
    wrong, count = [], 0
    for one in history.submissions:
        entries, spans = history.journals.get(one.application_id, []), history.spans_of(one.application_id)
        for entry in entries:
            where = f"{one.application_id}, attempt {entry.attempt}"
            done = any(span.task == entry.task and span.status == 0 and span.last_s <= entry.at_s for span in spans)
            if entry.task and not done:
                wrong.append(f"{where}: task {entry.task} was confirmed before a container had done it")
            if entry.was_known:
                wrong.append(f"{where}: task {entry.task} was confirmed again")
            if entry.held:
                wrong.append(f"{where}: the job ended while its AM held {', '.join(entry.held)}")
        outcome = _outcome(history, one)
        if one.program is WorkProgram.CUSTOM and outcome is not None and outcome.final_status is SUCCEEDED:
            missing = set(range(1, one.tasks + 1)) - confirmed_in(entries)
            wrong += [f"{one.application_id} succeeded, but task {task} is not confirmed" for task in sorted(missing)]
        count += sum(1 for entry in entries if entry.task)
    return CheckResult("tasks are confirmed once", f"{count} confirmations", tuple(wrong))


def check_final_is_final(history: History, expect: Expectations) -> CheckResult:
    """The final state of an application never changes."""
    final: dict[str, str] = {}
    wrong = []
    for change in history.changes:
        if change.subject in final and change.state != final[change.subject]:
            wrong.append(f"{change.subject} was {final[change.subject]}, then {change.state}")
        if change.state in FINAL_STATES:
            final[change.subject] = change.state
    return CheckResult("final states stay final", counted(len(final), "application"), tuple(wrong))


def check_started_once(history: History, expect: Expectations) -> CheckResult:
    """The command of a container is started at most once, for each time that its application was submitted."""
    starts = Counter(span.container_id for span in history.spans if span.role is not ProcessRole.TASK)
    most = {one.application_id: 1 + history.times_resubmitted(one) for one in history.submissions}
    wrong = [
        f"{container} was started {count} times"
        for container, count in starts.items()
        if count > most.get(container.application_id, 1)
    ]
    blind = "" if starts else "no container was started"
    return CheckResult("a container starts once", counted(len(starts), "container"), tuple(wrong), blind)


def check_one_master(history: History, expect: Expectations) -> CheckResult:
    """After the fencing window, no ApplicationMaster runs at the same time as one of a later attempt.

    One that a node starts late, because a fault held back the call, has the window from its own start.
    """
    wrong, windows = [], []
    for one in history.submissions:
        masters = history.spans_of(one.application_id, ProcessRole.MASTER)
        for later in masters:
            for earlier in masters:
                if earlier.attempt < later.attempt:
                    both_s = max(earlier.start_s, later.start_s)
                    windows.append(earlier.last_s - both_s)
                    why = f"the ApplicationMaster {later.container_id} started"
                    wrong += _beyond(expect, earlier, both_s, history.unstoppable(earlier), why)
    return CheckResult("one ApplicationMaster at a time", _widest(windows), tuple(wrong), timed=True)


def check_superseded_attempts(history: History, expect: Expectations) -> CheckResult:
    """Containers of a superseded attempt end, unless the application keeps containers across attempts."""
    wrong, windows = [], []
    for one in history.submissions:
        if one.keep_containers:
            continue
        masters = history.spans_of(one.application_id, ProcessRole.MASTER)
        for span in history.spans_of(one.application_id, ProcessRole.CONTAINER, ProcessRole.TASK):
            successors = [master.start_s for master in masters if master.attempt > span.attempt]
            if successors:
                windows.append(span.last_s - min(successors))
                why = "the next attempt's ApplicationMaster started"
                wrong += _beyond(expect, span, min(successors), history.unstoppable(span), why)
    return CheckResult("superseded attempts do no work", _widest(windows), tuple(wrong), timed=True)


def check_tasks_run_once(history: History, expect: Expectations) -> CheckResult:
    """After the fencing window, no earlier run of a task continues beside a later one."""
    wrong, windows, again = [], [], 0
    for one in history.submissions:
        runs = history.spans_of(one.application_id, ProcessRole.TASK)
        for index, later in enumerate(runs):
            earlier = [run for run in runs[:index] if run.task == later.task]
            again += bool(earlier)
            for run in earlier:
                windows.append(run.last_s - later.start_s)
                why = f"task {run.task} was restarted"
                wrong += _beyond(expect, run, later.start_s, history.unstoppable(run), why)
    return CheckResult(
        "a task runs once at a time", f"{again} tasks restarted, {_widest(windows)}", tuple(wrong), timed=True
    )


def check_service_size(history: History, expect: Expectations) -> CheckResult:
    """A service of N containers has at most N running: a container and its replacement do not run at the same time.

    Containers whose end the ResourceManager forgot (History.forgets_end_of) do not count, also if it ended them before
    a call that was held back started them. Nobody stops a container that was given up while its service has no
    ApplicationMaster.
    """
    wrong = []
    services = [one for one in history.submissions if one.program is WorkProgram.SERVICE]
    for one in services:
        no_master = history.without_master(one.application_id)
        spans = history.spans_of(one.application_id, ProcessRole.CONTAINER)
        for index, new in enumerate(spans):
            if _was_started_late(expect, new, history.unstoppable(new)):
                continue
            if history.forgets_end_of(new, before_s=new.start_s):
                continue
            beside = [span for span in spans[:index] if span.last_s > new.start_s]
            lasting = [
                span
                for span in beside
                if span.last_s > _deadline(expect, new.start_s, sorted([*history.unstoppable(span), *no_master]))
                and not history.forgets_end_of(span)
            ]
            if len(lasting) + 1 > one.tasks:
                wrong.append(
                    f"{one.application_id}: {new.container_id} started beside {len(lasting)} running containers; "
                    f"{one.tasks} are allowed"
                )
    return CheckResult("a service has no extra containers", counted(len(services), "service"), tuple(wrong), timed=True)


def check_gangs_start(history: History, expect: Expectations) -> CheckResult:
    """The members of a gang start when all of them have containers, each rank once in a try.

    Each member has recorded the hosts of all members that its ApplicationMaster gave it, so it cannot have started
    before those containers were allocated.
    """
    wrong, tries = [], 0
    for one in history.submissions:
        members = _members(history, one)
        early = {_try_of(span): len(member.hosts) for span, member in members if len(member.hosts) != one.tasks}
        wrong += [
            f"{one.application_id}: members of try {number} started when {have} of {one.tasks} had containers"
            for (_, number), have in early.items()
        ]
        most = 1 + history.times_resubmitted(one)
        ranks = Counter((*_try_of(span), member.rank) for span, member in members)
        wrong += [
            f"{one.application_id}: rank {rank} of try {number} started {count} times"
            for (_, number, rank), count in ranks.items()
            if count > most
        ]
        tries += len({_try_of(span) for span, _ in members})
    return CheckResult("a gang starts whole", f"{tries} tries", tuple(wrong))


def check_gangs_end(history: History, expect: Expectations) -> CheckResult:
    """When a member of a gang is lost or fails, the others end; before the next try runs, all have ended.

    An ApplicationMaster that is cut off or gone does not learn of the loss. A gang that was submitted again after its
    ResourceManager lost its state has the same attempts and tries twice, and is left out.
    """
    wrong, windows = [], []
    for one in history.submissions:
        if history.times_resubmitted(one):
            continue
        for superseded, at_s, excused, why in _superseded_members(history, _members(history, one)):
            windows.append(superseded.last_s - at_s)
            wrong += _beyond(expect, superseded, at_s, excused, why)
    return CheckResult("a gang ends together", _widest(windows), tuple(wrong), timed=True)


def check_nothing_after_the_end(history: History, expect: Expectations) -> CheckResult:
    """All processes of an application end when the application ends."""
    wrong, windows = [], []
    for one in history.submissions:
        end = next(
            (change for change in history.changes_of(str(one.application_id)) if change.state in FINAL_STATES), None
        )
        if end is None:
            continue
        for span in history.spans_of(one.application_id):
            windows.append(span.last_s - end.at_s)
            # An AM exits when its unregistration is answered. Without an answer it retries (AMFinishingMonitor).
            retries = span.role is ProcessRole.MASTER and end.state == YarnApplicationState.FINISHED.name
            excused = history.isolated(span) if retries else history.unstoppable(span)
            wrong += _beyond(expect, span, end.at_s, excused, "its application ended")
    return CheckResult("nothing runs for ended applications", _widest(windows), tuple(wrong), timed=True)


def check_daemons_live(history: History, expect: Expectations) -> CheckResult:
    """No daemon exits, except those that were killed or stopped on purpose."""
    return CheckResult("no daemon exited unexpectedly", "", tuple(history.crashed))


def check_recovered(history: History, expect: Expectations) -> CheckResult:
    """After the faults, the ResourceManager answers and every node is RUNNING."""
    figure = f"after {duration(1000 * (history.recovered_s - history.started_s))}" if history.recovered_s else ""
    return CheckResult("the cluster recovers", figure, tuple(history.not_recovered), timed=True)


def check_drained(history: History, expect: Expectations) -> CheckResult:
    """After the recovery, all applications end and all resources that they used are released.

    They need not end if a node gets no containers any more (History.unplaced_nodes).
    """
    states = {one.application_id: outcome.state for one in history.submissions if (outcome := _outcome(history, one))}
    wrong = [
        f"{application_id} is still {state.name}"
        for application_id, state in states.items()
        if state is not None and state not in FINAL_APPLICATION_STATES
    ]
    wrong += history.not_drained
    figure = f"{duration(1000 * (history.drained_s - history.recovered_s))} after recovery" if history.drained_s else ""
    unplaced = history.unplaced_nodes()
    if wrong and unplaced:
        wrong, figure = [], f"except what waits for {', '.join(unplaced)}"
    return CheckResult("all resources are released", figure, tuple(wrong), timed=True)


def check_nothing_is_left(history: History, expect: Expectations) -> CheckResult:
    """No process, port or file remains after the cluster has stopped."""
    return CheckResult("no process, port or file is left behind", "", tuple(history.left))


Superseded = tuple[ProcessSpan, float, list[tuple[float, float]], str]
"""A process that has to end: since when, in which periods nothing can end it, and why it has to."""


def _members(history: History, one: SubmittedApplication) -> list[tuple[ProcessSpan, Member]]:
    """The members of a gang that have started, by start time; empty for another application."""
    spans = history.spans_of(one.application_id, ProcessRole.CONTAINER)
    return [(span, span.member) for span in spans if span.member is not None]


def _try_of(span: ProcessSpan) -> tuple[int, int]:
    """The attempt and the try of a member of a gang."""
    assert span.member is not None, f"{span.container_id} is not a member of a gang"
    return span.attempt, span.member.try_number


def _superseded_members(history: History, members: list[tuple[ProcessSpan, Member]]) -> Iterator[Superseded]:
    """The members of one gang that have to end: because one of their try has ended, or because a later try runs.

    Members whose end or release the ResourceManager forgot (History) are left out.
    """
    for span, member in members:
        beside = [(other, given) for other, given in members if other.attempt == span.attempt and other is not span]
        later = [(other, given) for other, given in beside if given.try_number > member.try_number]
        lost = [
            (other, given) for other, given in beside if given.try_number == member.try_number and other.status != 0
        ]
        if history.forgets_end_of(span) or _is_release_forgotten(history, span, later, lost):
            continue
        excused = [*history.unstoppable(span), *history.without_master(span.application_id)]
        if later:
            first, given = later[0]
            yield span, max(first.start_s, span.start_s), sorted(excused), f"try {given.try_number} of its gang started"
        if lost:
            first, given = min(lost, key=lambda pair: pair[0].last_s)
            excused += history.hidden(first.node)
            for master in history.spans_of(span.application_id, ProcessRole.MASTER):
                excused += history.isolated(master)
            yield span, max(first.last_s, span.start_s), sorted(excused), f"rank {given.rank} of its gang ended"


def _is_release_forgotten(
    history: History, span: ProcessSpan, later: list[tuple[ProcessSpan, Member]], lost: list[tuple[ProcessSpan, Member]]
) -> bool:
    """True if the AM released the member in vain: when one of its try ended, or for the next try at the latest."""
    releases_s = [*(other.last_s for other, _ in lost), *(other.start_s for other, _ in later)]
    return bool(releases_s) and history.forgets_release_of(span, min(releases_s))


def _outcome(history: History, submission: SubmittedApplication) -> ReportedEnd | None:
    return history.outcomes.get(submission.application_id)


def _ended(history: History) -> list[tuple[SubmittedApplication, ReportedEnd]]:
    """The acknowledged applications that have ended, with their outcomes."""
    return [
        (one, outcome)
        for one in history.submissions
        if one.acknowledged_s is not None
        and (outcome := _outcome(history, one)) is not None
        and outcome.state in FINAL_APPLICATION_STATES
    ]


def _named(outcome: ReportedEnd) -> str:
    if outcome.state is YarnApplicationState.FINISHED:
        return outcome.final_status.name
    return outcome.state.name if outcome.state is not None else "UNKNOWN"


def _deadline(expect: Expectations, superseded_s: float, excused: Iterable[tuple[float, float]]) -> float:
    """The time until which work that was superseded at `superseded_s` may still run.

    `excused` are the periods, in order, in which a fault made it impossible to stop the work.
    """
    return window_end(superseded_s, expect.fence, excused)


def _was_started_late(expect: Expectations, span: ProcessSpan, excused: Iterable[tuple[float, float]]) -> bool:
    """True if a node started the container in one of the periods `excused`, or soon after, and then ended it in time.

    A NodeManager that was paused first carries out the calls that arrived meanwhile. Only then does it learn that the
    container is no longer wanted.
    """
    is_late = any(from_s <= span.start_s <= to_s + expect.fence for from_s, to_s in excused)
    return is_late and span.last_s <= _deadline(expect, span.start_s, excused)


def _beyond(
    expect: Expectations, span: ProcessSpan, superseded_s: float, excused: Iterable[tuple[float, float]], why: str
) -> list[str]:
    """A line that reports a process that ran on after the fencing window; empty if it did not."""
    deadline_s = _deadline(expect, superseded_s, excused)
    if span.last_s <= deadline_s:
        return []
    what = f"task {span.task} in {span.container_id}" if span.role is ProcessRole.TASK else str(span.container_id)
    return [
        f"{what} on nm-{span.node} ran on for {span.last_s - superseded_s:.1f} s after {why}; "
        f"the limit was {deadline_s - superseded_s:.1f} s"
    ]


def _widest(windows: Iterable[float]) -> str:
    widest = max((window for window in windows if window > 0), default=0.0)
    return f"at most {widest:.1f} s side by side" if widest else "never side by side"
