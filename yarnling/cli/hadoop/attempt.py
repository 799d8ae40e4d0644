"""`yarnling applicationattempt`: list, show and fail application attempts (Hadoop's ApplicationCLI)."""

from __future__ import annotations

from yarn.applications import ApplicationAttemptReport
from yarn.errors import ApplicationAttemptNotFoundException, ApplicationNotFoundException
from yarn.ids import ApplicationAttemptId, ApplicationId
from yarnling.cli.hadoop import form
from yarnling.cli.hadoop.options import Option
from yarnling.cli.hadoop.verb import REFUSED, Call, Verb
from yarnling.cli.output import NOT_AVAILABLE, live, without_pages

WIDTHS = (30, 20, 35, 35)
HEADER = ("ApplicationAttempt-Id", "State", "AM-Container-Id", "Tracking-URL")


async def _run(call: Call) -> int:
    if "status" in call.given:
        return await _status(call) if call.given.only("status") else call.refuse()
    if "list" in call.given:
        return await _list(call) if call.given.only("list") else call.refuse()
    return await _fail(call)


async def _list(call: Call) -> int:
    attempts = await call.client.attempts(ApplicationId.parse(call.given.one("list")))
    rows = [(a.attempt_id, a.state.name, a.am_container_id or NOT_AVAILABLE, live(a.tracking_url)) for a in attempts]
    title = f"Total number of application attempts :{len(attempts)}"
    call.show(attempts, form.listing(title, WIDTHS, HEADER, rows))
    return 0


async def _status(call: Call) -> int:
    text = call.given.one("status")
    try:
        report = await call.client.attempt(ApplicationAttemptId.parse(text))
    except ApplicationNotFoundException:
        call.show(None, f"Application for AppAttempt with id '{text}' doesn't exist in RM or Timeline Server.")
        return REFUSED
    except ApplicationAttemptNotFoundException:
        call.show(None, f"Application Attempt with id '{text}' doesn't exist in RM or Timeline Server.")
        return REFUSED
    call.show(report, form.report("Application Attempt Report", _entries(report)))
    return 0


def _entries(report: ApplicationAttemptReport) -> list[tuple[str, object]]:
    return [
        ("ApplicationAttempt-Id", report.attempt_id),
        ("State", report.state.name),
        ("AMContainer", report.am_container_id or NOT_AVAILABLE),
        ("Tracking-URL", live(report.tracking_url)),
        ("RPC Port", report.rpc_port),
        ("AM Host", report.host),
        ("Diagnostics", without_pages(report.diagnostics)),
    ]


async def _fail(call: Call) -> int:
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
    _run,
    commands=("list", "status", "fail"),
)
