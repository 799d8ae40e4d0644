"""The applications that run while faults are injected: several users submit them, and each one is recorded."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from am.client.submission import ApplicationOptions, Submission
from am.programs.custom.client import CustomPlan, CustomSubmission
from am.programs.custom.journal import JournalEntry, read_journal
from am.programs.distributed_shell.client import DistributedShell
from am.programs.distributed_shell.core import Width
from am.programs.elastic.client import ElasticSubmission
from am.programs.elastic.core import ElasticPlan
from am.programs.gang.client import GangSubmission
from am.programs.gang.core import GangPlan
from am.programs.mapreduce.client import word_count
from am.programs.mapreduce.wordcount import count_words, read_counts
from am.programs.shell_work import ShellWork
from yarn.configuration import Configuration
from yarn.errors import ServerUnavailable, YarnException
from yarn.ids import ApplicationId
from yarn.resource import Resource
from yarnling.cluster.client import Client
from yarnling.faults.history import History, ProcessRole, SubmittedApplication
from yarnling.faults.notes import ProcessNotes, now_s
from yarnling.faults.plan import WorkPlan, WorkProgram
from yarnling.faults.process_target import RETRY_S

SIZE = Resource(128, 1)
WORKERS_MAX = 6
"""The limit on the workers of an elastic application."""
GANG_WAIT_MS, GANG_PAUSE_MS, GANG_TRIES = 2000, 250, 6
"""A gang gives up within half a minute: 12 s of waiting, and 8 to 15 s of pauses."""
TEXT_FILES, TEXT_WORDS, TEXT_KINDS = 6, 3000, 200
KILLED_BY_USER = "Killed by its user during the chaos run."
KILLED_AT_THE_END = "Killed at the end of the chaos run."
"""Diagnostics of applications that a plan kills."""


class WorkSubmitter:
    """Submits the applications of one run. `addresses` are those of the ResourceManager, for its clients."""

    def __init__(
        self, addresses: Mapping[str, str], conf: Configuration, directory: Path, notes: ProcessNotes, history: History
    ) -> None:
        self._addresses = addresses
        self._conf = conf
        self._directory = directory
        self._notes = notes
        self._history = history
        self._clients: dict[str, Client] = {}
        self._text: dict[Path, int] = {}

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()

    async def run(self, work: WorkPlan) -> None:
        """Submit the applications of `work`, each at its time, and kill those that the plan kills.

        Does not wait for the others to end.
        """
        start_s = now_s()
        async with asyncio.TaskGroup() as tasks:
            for number in range(work.applications):
                await asyncio.sleep(max(0.0, start_s + work.at + number * work.every - now_s()))
                user = work.users[number % len(work.users)]
                submitted = await self._submit(work, user, f"{work.program.value}-{number + 1}")
                if work.killed_after is not None and submitted.acknowledged_s is not None:
                    at_s = submitted.acknowledged_s + work.killed_after
                    tasks.create_task(self._kill(submitted.application_id, user, at_s))

    async def _kill(self, application_id: ApplicationId, user: str, at_s: float) -> None:
        """Kill an application at its time, once the ResourceManager can be reached."""
        await asyncio.sleep(max(0.0, at_s - now_s()))
        while True:
            try:
                await self._client(user).kill(application_id, KILLED_BY_USER)
                return
            except ServerUnavailable:
                await asyncio.sleep(RETRY_S)

    def is_right(self, application_id: ApplicationId) -> bool:
        """True if the output of a word count that has ended is correct."""
        expected: Counter[bytes] = count_words(self._text)
        return read_counts(self._output(application_id)) == expected

    async def _submit(self, work: WorkPlan, user: str, name: str) -> SubmittedApplication:
        """Submit an application until it is acknowledged or refused.

        A submission without an answer is repeated with the same id.
        """
        client = self._client(user)
        start_s = now_s()
        while True:
            try:
                new = await client.new_application()
                break
            except ServerUnavailable:
                await asyncio.sleep(RETRY_S)
        options = ApplicationOptions(
            name, am_resource=SIZE, keep_containers=work.keep_containers, max_app_attempts=work.attempts
        )
        context = self._notes.with_master(
            self._submission(work, options, new.application_id).build(new.application_id, self._directory / "staging"),
            ignores_term=work.ignores_term,
        )
        submitted = SubmittedApplication(
            new.application_id,
            work.program,
            user or client.user,
            work.tasks,
            start_s,
            may_fail=work.may_fail,
            keep_containers=work.keep_containers,
        )
        self._history.submissions.append(submitted)
        index = len(self._history.submissions) - 1
        while True:
            try:
                await client.submit(context)
                answered = replace(submitted, acknowledged_s=now_s())
                break
            except ServerUnavailable:
                await asyncio.sleep(RETRY_S)
            except YarnException as error:
                answered = replace(submitted, refusal=error.message)
                break
        self._history.submissions[index] = answered
        return answered

    def _submission(self, work: WorkPlan, options: ApplicationOptions, application_id: ApplicationId) -> Submission:
        match work.program:
            case WorkProgram.BATCH:
                return self._shell(work, options, work.seconds)
            case WorkProgram.SERVICE:
                return self._shell(work, options, None)
            case WorkProgram.TASKS:
                command = self._notes.command(ProcessRole.TASK, work.seconds)
                return ElasticSubmission(ShellWork(command, SIZE), elastic_plan(work), options)
            case WorkProgram.GANG:
                command = self._notes.command(ProcessRole.CONTAINER, work.seconds, ignores_term=work.ignores_term)
                return GangSubmission(ShellWork(command, SIZE), gang_plan(work), options)
            case WorkProgram.CUSTOM:
                command = self._notes.command(ProcessRole.TASK, work.seconds)
                plan = CustomPlan(work.tasks, SIZE, str(self._journal(application_id)))
                return CustomSubmission(Path(work.file), command, plan, options)
            case WorkProgram.WORDCOUNT:
                self._text = self._text or _write_text(self._directory / "text")
                return word_count(self._text, self._output(application_id), options=options)

    def _shell(self, work: WorkPlan, options: ApplicationOptions, seconds: float | None) -> DistributedShell:
        command = self._notes.command(ProcessRole.CONTAINER, seconds, ignores_term=work.ignores_term)
        return DistributedShell(command, Width(work.tasks, SIZE), options)

    def _client(self, user: str) -> Client:
        if user not in self._clients:
            self._clients[user] = Client(self._addresses, user=user, conf=self._conf)
        return self._clients[user]

    def journal(self, application_id: ApplicationId) -> list[JournalEntry]:
        """The journal of a custom program; empty for others."""
        return list(read_journal(self._journal(application_id)))

    def _journal(self, application_id: ApplicationId) -> Path:
        return self._directory / f"journal-{application_id}"

    def _output(self, application_id: ApplicationId) -> Path:
        return self._directory / "counts" / str(application_id)


def elastic_plan(work: WorkPlan) -> ElasticPlan:
    """The plan of an elastic application, with timers for short tasks."""
    return ElasticPlan((work.tasks,), SIZE, workers_max=WORKERS_MAX, backlog_ms=100, sustained_ms=100, idle_ms=1000)


def gang_plan(work: WorkPlan) -> GangPlan:
    """The plan of a gang of `tasks` members."""
    return GangPlan(work.tasks, SIZE, wait_ms=GANG_WAIT_MS, pause_ms=GANG_PAUSE_MS, tries=GANG_TRIES)


def _write_text(directory: Path) -> dict[Path, int]:
    """Write the input of the word count, which is the same in every run. Returns {file: size in bytes}."""
    draw = random.Random(1)
    directory.mkdir(parents=True)
    files: dict[Path, int] = {}
    for number in range(TEXT_FILES):
        path = directory / f"part-{number}"
        words = (f"word{min(draw.randrange(TEXT_KINDS), draw.randrange(TEXT_KINDS))}" for _ in range(TEXT_WORDS))
        path.write_text("\n".join(words) + "\n")
        files[path] = path.stat().st_size
    return files
