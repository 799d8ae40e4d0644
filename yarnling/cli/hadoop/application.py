"""`yarnling application` (or `app`) and `yarnling applicationattempt` (Hadoop's ApplicationCLI).

The commands list, show, kill and change applications, and list, show and fail application attempts.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from yarn.applications import ApplicationAttemptReport, ApplicationFilter, ApplicationReport
from yarn.errors import ApplicationAttemptNotFoundException, ApplicationNotFoundException, InvalidArgumentException
from yarn.ids import ApplicationAttemptId, ApplicationId
from yarn.java.values import parse_int, parse_long
from yarn.states import FINAL_APPLICATION_STATES, YarnApplicationState
from yarn.times import format_iso8601
from yarnling.cli.hadoop import form
from yarnling.cli.hadoop.verb import REFUSED, Invocation, Option, Verb
from yarnling.cli.shared.output import NOT_AVAILABLE, live, without_dead_pages

ALL = "ALL"
LISTED = (YarnApplicationState.SUBMITTED, YarnApplicationState.ACCEPTED, YarnApplicationState.RUNNING)
"""The states that -list shows by default."""

WIDTHS = (30, 20, 20, 10, 10, 18, 18, 15, 35)
HEADER = (
    "Application-Id",
    "Application-Name",
    "Application-Type",
    "User",
    "Queue",
    "State",
    "Final-State",
    "Progress",
    "Tracking-URL",
)


async def _run(call: Invocation) -> int:
    given = call.given
    if "status" in given:
        return await _status(call) if given.only("status", "appTypes") else call.refuse()
    if "list" in given:
        return await _list(call)
    if "kill" in given:
        return await _kill(call) if given.only("kill") else call.refuse()
    if "movetoqueue" in given:
        return await _move(call, given.one("movetoqueue"), "queue")
    if "appId" not in given:
        return call.refuse()
    if "updatePriority" in given:
        return await _update_priority(call)
    if "updateLifetime" in given:
        return await _update_lifetime(call)
    return await _move(call, given.one("appId"), "changeQueue")


async def _list(call: Invocation) -> int:
    types = sorted({word.upper() for word in call.given.words("appTypes")})
    tags = sorted(set(call.given.words("appTags")))
    states = []
    for word in call.given.words("appStates"):
        if word.upper() == ALL:
            states = list(YarnApplicationState)
            break
        if word.upper() not in YarnApplicationState.__members__:
            known = ",".join((ALL, *YarnApplicationState.__members__))
            call.say(f"The application state {word} is invalid.")
            call.say(f"The valid application state can be one of the following: {known}")
            return REFUSED
        states.append(YarnApplicationState[word.upper()])
    states = sorted(set(states or LISTED), key=lambda state: state.value)
    wanted = ApplicationFilter(types=frozenset(types), states=frozenset(states), tags=frozenset(tags))
    reports = await call.client.applications(wanted)
    names = ", ".join(state.name for state in states)
    title = (
        f"Total number of applications (application-types: [{', '.join(types)}], states: [{names}] "
        f"and tags: [{', '.join(tags)}]):{len(reports)}"
    )
    call.show(reports, form.listing(title, WIDTHS, HEADER, (_cells(call, each) for each in reports)))
    return 0


def _cells(call: Invocation, report: ApplicationReport) -> tuple[object, ...]:
    return (
        report.application_id,
        report.name,
        report.type,
        report.user,
        report.queue,
        report.state.name,
        report.final_status.name,
        form.progress(report.progress),
        live(report.original_tracking_url, call.state.web),
    )


async def _status(call: Invocation) -> int:
    application = call.given.one("status")
    try:
        report = await call.client.report(ApplicationId.parse(application))
    except ApplicationNotFoundException:
        call.show(None, f"Application with id '{application}' doesn't exist in RM or Timeline Server.")
        return REFUSED
    # Hadoop ends the report's last line with a newline and then prints it with println, which adds another newline.
    call.show(report, form.report("Application Report", _entries(call, report)) + "\n")
    return 0


def _entries(call: Invocation, report: ApplicationReport) -> list[tuple[str, object]]:
    used = report.usage
    return [
        ("Application-Id", report.application_id),
        ("Application-Name", report.name),
        ("Application-Type", report.type),
        ("User", report.user),
        ("Queue", report.queue),
        ("Application Priority", report.priority),
        ("Start-Time", report.start_time_ms),
        ("Finish-Time", report.finish_time_ms),
        ("Progress", form.progress(report.progress)),
        ("State", report.state.name),
        ("Final-State", report.final_status.name),
        ("Tracking-URL", live(report.original_tracking_url, call.state.web)),
        ("RPC Port", report.rpc_port),
        ("AM Host", report.host),
        ("Aggregate Resource Allocation", f"{used.memory_seconds} MB-seconds, {used.vcore_seconds} vcore-seconds"),
        (
            "Aggregate Resource Preempted",
            f"{used.preempted_memory_seconds} MB-seconds, {used.preempted_vcore_seconds} vcore-seconds",
        ),
        ("Log Aggregation Status", "N/A" if report.log_aggregation is None else report.log_aggregation.name),
        ("Diagnostics", without_dead_pages(report.diagnostics, call.state.web)),
        ("Unmanaged Application", str(report.unmanaged).lower()),
        ("Application Node Label Expression", report.label_expression),
        ("AM container Node Label Expression", report.am_label_expression or "null"),
        (
            "TimeoutType",
            f"LIFETIME\tExpiryTime : {report.lifetime_ends}\tRemainingTime : {report.lifetime_remaining_s}seconds",
        ),
    ]


async def _kill(call: Invocation) -> int:
    """Kill applications. Succeeds if at least one of them exists; stops at the first malformed id."""
    outcomes: dict[str, str] = {}
    for application in call.given.values["kill"]:
        app_id = ApplicationId.parse(application)
        try:
            report = await call.client.report(app_id)
        except ApplicationNotFoundException:
            call.say(f"Application with id '{application}' doesn't exist in RM.")
            outcomes[application] = "unknown"
            continue
        if report.state in FINAL_APPLICATION_STATES:
            call.say(f"Application {application} has already finished ")
            outcomes[application] = "finished before"
        else:
            call.say(f"Killing application {application}")
            await call.client.kill(app_id)
            outcomes[application] = "killed"
    call.done(**outcomes)
    return REFUSED if set(outcomes.values()) == {"unknown"} else 0


async def _move(call: Invocation, application: str, option: str) -> int:
    if option not in call.given:
        return call.refuse()
    app_id, queue = ApplicationId.parse(application), call.given.one(option)
    report = await call.client.report(app_id)
    if report.state in FINAL_APPLICATION_STATES:
        call.say(f"Application {application} has already finished ")
    else:
        call.say(f"Moving application {application} to queue {queue}")
        await call.client.move(app_id, queue)
        call.say("Successfully completed move.")
        report = await call.client.report(app_id)
    return call.done(application_id=app_id, state=report.state, queue=report.queue)


async def _update_priority(call: Invocation) -> int:
    application = call.given.one("appId")
    app_id, priority = ApplicationId.parse(application), _integer(call, "updatePriority", parse_int)
    call.say(f"Updating priority of an application {application}")
    granted = await call.client.update_priority(app_id, priority)
    if granted == priority:
        call.say(f"Successfully updated the application {application} with priority '{priority}'")
    else:
        call.say(
            f"Updated priority of an application  {application} to cluster max priority OR keeping old priority as "
            "application is in final states"
        )
    return call.done(application_id=app_id, priority=granted)


async def _update_lifetime(call: Invocation) -> int:
    application = call.given.one("appId")
    app_id, seconds = ApplicationId.parse(application), _integer(call, "updateLifetime", parse_long)
    wanted = format_iso8601(int(time.time() * 1000) + seconds * 1000)
    call.say(f"Updating timeout for given timeoutType: LIFETIME of an application {application}")
    granted = await call.client.update_lifetime(app_id, wanted)
    if granted == wanted:
        call.say(f"Successfully updated LIFETIME of an application {application}. New expiry time is {granted}")
    else:
        call.say(
            f"Updated lifetime of an application  {application} to queue max/default lifetime. "
            f"New expiry time is {granted}"
        )
    return call.done(application_id=app_id, lifetime_ends=granted)


def _integer(call: Invocation, option: str, parse: Callable[[str], int]) -> int:
    text = call.given.one(option)
    try:
        return parse(text)
    except ValueError as error:
        raise InvalidArgumentException(f"-{option} {text!r}: {error}") from None


APPLICATION = Verb(
    "application",
    (
        Option("list", "list applications; by default those in the states SUBMITTED, ACCEPTED and RUNNING"),
        Option("appTypes", "with -list: only these types, comma-separated", "TYPES", many=True),
        Option("appStates", "with -list: only these states, comma-separated, or ALL", "STATES", many=True),
        Option("appTags", "with -list: only applications with one of these tags", "TAGS", many=True),
        Option("status", "print the report of an application", "APPLICATION_ID"),
        Option("kill", "kill applications; ids are separated by spaces", "APPLICATION_ID", many=True),
        Option("appId", "the application for the next three options", "APPLICATION_ID"),
        Option("changeQueue", "move the application with its containers to another leaf queue", "QUEUE"),
        Option("updatePriority", "set the application's priority, limited by the cluster's maximum", "PRIORITY"),
        Option("updateLifetime", "kill the application this many seconds from now", "SECONDS"),
        Option("movetoqueue", "deprecated, with -queue: same as -appId ID -changeQueue QUEUE", "APPLICATION_ID"),
        Option("queue", "with -movetoqueue: the target queue", "QUEUE"),
    ),
    _run,
    commands=(
        "list",
        "status",
        "kill",
        "movetoqueue",
        "updatePriority",
        "updateLifetime",
        "changeQueue",
    ),
)


ATTEMPT_WIDTHS = (30, 20, 35, 35)
ATTEMPT_HEADER = ("ApplicationAttempt-Id", "State", "AM-Container-Id", "Tracking-URL")


async def _run_attempt(call: Invocation) -> int:
    if "status" in call.given:
        return await _attempt_status(call) if call.given.only("status") else call.refuse()
    if "list" in call.given:
        return await _list_attempts(call) if call.given.only("list") else call.refuse()
    return await _fail_attempt(call)


async def _list_attempts(call: Invocation) -> int:
    attempts = await call.client.attempts(ApplicationId.parse(call.given.one("list")))
    rows = [
        (a.attempt_id, a.state.name, a.am_container_id or NOT_AVAILABLE, live(a.tracking_url, call.state.web))
        for a in attempts
    ]
    title = f"Total number of application attempts :{len(attempts)}"
    call.show(attempts, form.listing(title, ATTEMPT_WIDTHS, ATTEMPT_HEADER, rows))
    return 0


async def _attempt_status(call: Invocation) -> int:
    text = call.given.one("status")
    try:
        report = await call.client.attempt(ApplicationAttemptId.parse(text))
    except ApplicationNotFoundException:
        call.show(None, f"Application for AppAttempt with id '{text}' doesn't exist in RM or Timeline Server.")
        return REFUSED
    except ApplicationAttemptNotFoundException:
        call.show(None, f"Application Attempt with id '{text}' doesn't exist in RM or Timeline Server.")
        return REFUSED
    call.show(report, form.report("Application Attempt Report", _attempt_entries(call, report)))
    return 0


def _attempt_entries(call: Invocation, report: ApplicationAttemptReport) -> list[tuple[str, object]]:
    return [
        ("ApplicationAttempt-Id", report.attempt_id),
        ("State", report.state.name),
        ("AMContainer", report.am_container_id or NOT_AVAILABLE),
        ("Tracking-URL", live(report.tracking_url, call.state.web)),
        ("RPC Port", report.rpc_port),
        ("AM Host", report.host),
        ("Diagnostics", without_dead_pages(report.diagnostics, call.state.web)),
    ]


async def _fail_attempt(call: Invocation) -> int:
    attempt_id = ApplicationAttemptId.parse(call.given.one("fail"))
    call.say(f"Failing attempt {attempt_id} of application {attempt_id.application_id}")
    await call.client.fail_attempt(attempt_id)
    return call.done(attempt_id=attempt_id)


ATTEMPT = Verb(
    "applicationattempt",
    (
        Option("list", "list the attempts of an application", "APPLICATION_ID"),
        Option("status", "print the report of an attempt", "ATTEMPT_ID"),
        Option("fail", "fail an attempt; the next one may start", "ATTEMPT_ID"),
    ),
    _run_attempt,
    commands=("list", "status", "fail"),
)
