"""`yarnling container`: list, show and signal live containers (Hadoop's ApplicationCLI)."""

from __future__ import annotations

from yarn.applications import ContainerReport
from yarn.errors import (
    ApplicationAttemptNotFoundException,
    ApplicationNotFoundException,
    ContainerNotFoundException,
    InvalidArgumentException,
)
from yarn.ids import ApplicationAttemptId, ContainerId
from yarn.states import SignalContainerCommand
from yarnling.cli.hadoop import form
from yarnling.cli.hadoop.verb import REFUSED, Invocation, Option, Verb
from yarnling.cli.shared.output import NOT_AVAILABLE, live

WIDTHS = (30, 20, 20, 20, 20, 20, 35)
HEADER = ("Container-Id", "Start Time", "Finish Time", "State", "Host", "Node Http Address", "LOG-URL")


async def _run(call: Invocation) -> int:
    for option, command in (("status", _status), ("list", _list), ("signal", _signal)):
        if option in call.given:
            return await command(call) if call.given.only(option) else call.refuse()
    return call.refuse()


async def _list(call: Invocation) -> int:
    containers = await call.client.containers(ApplicationAttemptId.parse(call.given.one("list")))
    title = f"Total number of containers :{len(containers)}"
    call.show(containers, form.listing(title, WIDTHS, HEADER, map(_cells, containers)))
    return 0


def _cells(report: ContainerReport) -> tuple[object, ...]:
    return (
        report.container_id,
        form.moment(report.creation_time_ms),
        form.moment(report.finish_time_ms),
        report.state.name,
        report.node_id,
        live(report.node_http_address or NOT_AVAILABLE),
        live(report.log_url),
    )


async def _status(call: Invocation) -> int:
    text = call.given.one("status")
    try:
        report = await call.client.container(ContainerId.parse(text))
    except (ApplicationNotFoundException, ApplicationAttemptNotFoundException, ContainerNotFoundException) as error:
        of = {
            ApplicationNotFoundException: "Application for Container",
            ApplicationAttemptNotFoundException: "Application Attempt for Container",
        }.get(type(error), "Container")
        call.show(None, f"{of} with id '{text}' doesn't exist in RM or Timeline Server.")
        return REFUSED
    call.show(report, form.report("Container Report", _entries(report)))
    return 0


def _entries(report: ContainerReport) -> list[tuple[str, object]]:
    return [
        ("Container-Id", report.container_id),
        ("Start-Time", report.creation_time_ms),
        ("Finish-Time", report.finish_time_ms),
        ("State", report.state.name),
        ("Execution-Type", report.execution_type.name),
        ("LOG-URL", live(report.log_url)),
        ("Host", report.node_id),
        ("NodeHttpAddress", live(report.node_http_address or NOT_AVAILABLE)),
        ("ExposedPorts", ""),
        ("Diagnostics", report.diagnostics or "null"),
    ]


async def _signal(call: Invocation) -> int:
    words = call.given.values["signal"]
    command = words[1] if len(words) > 1 else SignalContainerCommand.OUTPUT_THREAD_DUMP.name
    container_id = ContainerId.parse(words[0])
    if command not in SignalContainerCommand.__members__ or len(words) > 2:
        known = ", ".join(SignalContainerCommand.__members__)
        raise InvalidArgumentException(f"-signal {' '.join(words)!r}: the commands are {known}, one at a time")
    call.say(f"Signalling container {words[0]}")
    await call.client.signal_container(container_id, SignalContainerCommand[command])
    return call.done(container_id=container_id, command=command)


CONTAINER = Verb(
    "container",
    (
        Option("list", "list the live containers of an attempt", "ATTEMPT_ID"),
        Option("status", "print the report of a live container", "CONTAINER_ID"),
        Option(
            "signal",
            "send a signal to a container: OUTPUT_THREAD_DUMP (QUIT, the default), GRACEFUL_SHUTDOWN (TERM) or "
            "FORCEFUL_SHUTDOWN (KILL)",
            "CONTAINER_ID [COMMAND]",
            many=True,
        ),
    ),
    _run,
    commands=("list", "status", "signal"),
)
