"""Rules that hold after a soak. Each check returns the problems as lines; an empty list means that it holds."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tests.cluster.rm_soak.load import Submitted
from yarn.applications import ApplicationAttemptReport, ApplicationReport
from yarn.errors import YarnException
from yarn.ids import ApplicationId, ContainerId
from yarn.states import FINAL_APPLICATION_STATES, FinalApplicationStatus, YarnApplicationAttemptState
from yarnling.cluster.local_cluster import LocalCluster

RECOVERED = re.compile(r"^(\S+ \S+) INFO yarnling\.rm\.daemon recovered epoch=(\d+) ")
BAD_LINE = re.compile(r"^(\S+ \S+ (ERROR|CRITICAL|WARNING) |Traceback)")
"""Lines that must not be in a ResourceManager's log."""
AS_IN_HADOOP = (
    # A user's entry in a queue goes with the last application, which may be moved or over before its containers are.
    "invariant broken, as Hadoop breaks it",
    # An AM that registers while the end of its attempt is being stored (RMAppAttemptImpl has no row for it).
    "REGISTERED is illegal in FINAL_SAVING",
)
"""Warnings that Hadoop would log too; a ResourceManager that breaks another invariant exits."""
EXPIRED = re.compile(r"timed out|ApplicationMaster for attempt .* (timed out|expired)", re.IGNORECASE)
CRASHED = 137
STORED_FINAL = ("FINISHED", "FAILED", "KILLED")
CLOCK_SLACK_S = 0.002
"""The times of log lines have millisecond resolution."""


@dataclass(frozen=True, slots=True)
class Note:
    """A container started or ended its work: the `number`-th of its attempt."""

    container_id: ContainerId
    number: int
    time_s: float


@dataclass
class Tally:
    """Counts for the report."""

    containers: int = 0
    twice: int = 0
    refused: int = 0
    attempts: int = 0
    expired: int = 0
    killed: int = 0
    epochs: int = 0


def notes(path: Path) -> list[Note]:
    if not path.exists():
        return []
    lines = [line.split() for line in path.read_text().splitlines()]
    return [Note(ContainerId.parse(name), int(number), float(time_s)) for name, number, time_s in lines]


async def check_application(cluster: LocalCluster, one: Submitted, tally: Tally) -> list[str]:
    """The application exists as last acknowledged to its user, and its containers did their work once."""
    app = one.application_id
    try:
        report = await cluster.client.report(app)
        attempts = await cluster.client.attempts(app)
    except YarnException as error:
        return [f"{app}: lost: {error}"]
    tally.attempts += len(attempts)
    refused = refusals(cluster, app)
    tally.refused += sum(refused.values())
    wrong = [*_as_acknowledged(one, report), *_ran_once(one, tally), *_attempts(one, attempts, tally)]
    if report.state in FINAL_APPLICATION_STATES and not one.killed:
        wrong += _result(one, report, refused[report.current_attempt_id.attempt])
    return [f"{app} ({one.change}): {text}" for text in wrong]


def refusals(cluster: LocalCluster, app: ApplicationId) -> Counter[int]:
    """{attempt: containers that were allocated, and not started before their ResourceManager was killed}.

    Their NodeManagers refuse them, and the distributed shell counts them as failed, as Hadoop's does.
    """
    counts: Counter[int] = Counter()
    for log in cluster.client.logs(app):
        counts[log.container_id.attempt_id.attempt] += log.path.read_text().count("start failed container=")
    return counts


def _as_acknowledged(one: Submitted, report: ApplicationReport) -> Iterator[str]:
    """The user, the final report, the queue, the priority and the kill equal those that were acknowledged."""
    if report.user != one.user:
        yield f"belongs to {report.user}, was submitted by {one.user}"
    if one.final is None:
        yield f"is {report.state.name}, and was never final"
    elif _final(report) != _final(one.final):
        yield f"ended as {_final(one.final)}, is {_final(report)} now"
    if report.queue != one.queue and "queue" not in one.unsure:
        yield f"is in queue {report.queue}, should be in {one.queue}"
    if report.priority != one.priority and "priority" not in one.unsure:
        yield f"has priority {report.priority}, should have {one.priority}"


def _final(report: ApplicationReport) -> tuple[object, ...]:
    return report.state.name, report.final_status.name, report.finish_time_ms, report.diagnostics


def _ran_once(one: Submitted, tally: Tally) -> Iterator[str]:
    """No container ran twice, and no part of the work twice in one attempt."""
    started = notes(one.noted)
    tally.containers += len(started)
    for container_id, times in Counter(note.container_id for note in started).items():
        if times > 1:
            tally.twice += 1
            yield f"{container_id} ran {times} times"
    parts = Counter((note.container_id.attempt_id.attempt, note.number) for note in started)
    for (attempt, number), times in parts.items():
        if times > 1:
            tally.twice += 1
            yield f"part {number} of attempt {attempt} ran {times} times"


def _attempts(one: Submitted, attempts: tuple[ApplicationAttemptReport, ...], tally: Tally) -> Iterator[str]:
    """An attempt before the last failed because its AM was killed or never registered."""
    crashes = 0
    began = {note.container_id.attempt_id.attempt for note in notes(one.noted)}
    for attempt in attempts:
        if attempt.state is not YarnApplicationAttemptState.FAILED:
            continue
        number = attempt.attempt_id.attempt
        if f"exitCode: {CRASHED}" in attempt.diagnostics or f"exit code {CRASHED}" in attempt.diagnostics:
            crashes += 1
        elif EXPIRED.search(attempt.diagnostics):
            tally.expired += 1
            if number in began and not one.crashes:
                yield f"attempt {number} expired although its AM ran: {attempt.diagnostics}"
        else:
            yield f"attempt {number} failed: {attempt.diagnostics}"
    if crashes > one.crashes:
        yield f"{crashes} AMs were killed, {one.crashes} of them by this test"


def _result(one: Submitted, report: ApplicationReport, refused: int) -> Iterator[str]:
    last = report.current_attempt_id.attempt
    started, ended = (
        [note for note in notes(path) if note.container_id.attempt_id.attempt == last]
        for path in (one.noted, Path(f"{one.noted}.over"))
    )
    wanted = FinalApplicationStatus.FAILED if refused else FinalApplicationStatus.SUCCEEDED
    if report.final_status is not wanted:
        yield f"{report.final_status.name} with {refused} refused containers: {report.diagnostics}"
    elif not len(started) == len(ended) == one.containers - refused:
        yield f"{len(started)} started, {len(ended)} ended, {refused} refused of {one.containers}"


async def check_cluster(cluster: LocalCluster) -> list[str]:
    """When all applications are over no resources are in use."""
    metrics = await cluster.client.metrics()
    nodes = await cluster.client.nodes()
    wrong = [f"{node.node_id} is {node.state.name}" for node in nodes if node.state.name != "RUNNING"]
    wrong += [
        f"{node.node_id} still holds {node.used} in {node.containers} containers"
        for node in nodes
        if node.containers or (node.used is not None and node.used.memory_mb)
    ]
    if metrics.active != len(cluster.nodes):
        wrong.append(f"{metrics.active} of {len(cluster.nodes)} nodes are active")
    return wrong


def check_log(log: Path, submitted: list[Submitted], tally: Tally) -> list[str]:
    """The log has no errors, and no container ran before its epoch started."""
    wrong, begins_s = [], {0: 0.0}
    for line in log.read_text().splitlines():
        if BAD_LINE.search(line) and not any(known in line for known in AS_IN_HADOOP):
            wrong.append(f"log: {line}")
        if found := RECOVERED.match(line):
            begins_s[int(found[2])] = datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S,%f").astimezone().timestamp()
    tally.epochs = max(begins_s) + 1
    for one in submitted:
        for note in notes(one.noted):
            epoch = note.container_id.epoch
            if epoch not in begins_s or note.time_s < begins_s[epoch] - CLOCK_SLACK_S:
                wrong.append(
                    f"{note.container_id} ran at {note.time_s}, its epoch {epoch} started at {begins_s.get(epoch)}"
                )
    return wrong


def check_store(file: Path, submitted: list[Submitted]) -> list[str]:
    """The database is intact, and has each application with its final state."""
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as database:
        wrong = [text for (text,) in database.execute("PRAGMA integrity_check") if text != "ok"]
        rows = {
            ApplicationId(timestamp, number): state
            for timestamp, number, state in database.execute("SELECT cluster_timestamp, number, state FROM application")
        }
        orphans = database.execute(
            "SELECT count(*) FROM attempt LEFT JOIN application ON attempt.application = application.number AND"
            " attempt.cluster_timestamp = application.cluster_timestamp WHERE application.number IS NULL"
        ).fetchone()[0]
    database.close()
    if orphans:
        wrong.append(f"{orphans} attempts belong to no application")
    for one in submitted:
        state = rows.get(one.application_id)
        if state is None:
            wrong.append(f"{one.application_id} is not in the store")
        elif not any(final in state for final in STORED_FINAL):
            wrong.append(f"{one.application_id} is stored without a final state: {state}")
    return wrong
