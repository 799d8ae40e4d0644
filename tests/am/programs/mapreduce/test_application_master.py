"""The AM of a map-reduce job with its files: journal, reports, commits and status. The test acts as RM and NMs."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from am.core.actions import Action, Finish, Launch, Leave, RequestContainer
from am.core.events import (
    AllocatedContainer,
    ContainersAllocated,
    ContainersCompleted,
    HeartbeatDone,
    NodesUpdated,
    Registered,
)
from am.programs.mapreduce.application_master import MRAppMaster
from am.programs.mapreduce.committer import OutputCommitter, part_name
from am.programs.mapreduce.core.job import MapReduceJob, TaskAttemptId, TaskKind, parse_attempt_id, splits_of
from am.programs.mapreduce.core.map_reduce import TaskReport
from am.programs.mapreduce.job_files import JobEnded, JobFiles, LineReader, PublishedOutput
from tests.am.builders import APP, GB, container, ended, node_report
from yarn.ids import ApplicationAttemptId, ContainerId
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus, NodeState


class JobRun:
    """Runs one AM after another with the same staging directory. The job has two maps and one reduce."""

    def __init__(self, tmp_path: Path) -> None:
        self.output = tmp_path / "out"
        staging = tmp_path / "staging"
        staging.mkdir()
        self.shuffle = socket.create_server(("127.0.0.1", 0))
        self.files = JobFiles(staging)
        self.files.write_job(
            MapReduceJob(
                "j", splits_of([("/text", 20)], 10), str(self.output), "cat", "cat", map_resource=GB, reduce_resource=GB
            )
        )
        self.containers = 1
        self.now_ms = 1_000_000
        self.begin(1)

    def begin(self, attempt: int) -> None:
        self.attempt = attempt
        self.master = MRAppMaster(self.files.staging, ApplicationAttemptId(APP, attempt), self.now_ms)
        self.wanted: list[RequestContainer] = []
        self.running: dict[ContainerId, TaskAttemptId] = {}
        self.last: list[Action] = []

    def deliver(self, *events: Any) -> list[Action]:
        self.last = [action for event in events for action in self.master.handle(event, self.now_ms)]
        for action in self.last:
            match action:
                case RequestContainer():
                    self.wanted.append(action)
                case Launch(given, context):
                    words = context.commands[0].split()
                    self.running[given.id] = parse_attempt_id(words[words.index("--attempt") + 1])
        return self.last

    def register(self) -> None:
        self.deliver(Registered(GB, "root.default"))

    def beat(self) -> list[Action]:
        self.now_ms += 1000
        return self.deliver(HeartbeatDone(Resource(4096, 4), 2))

    def place(self, host: str = "n1") -> None:
        while self.wanted:
            ask = self.wanted.pop(0)
            self.containers += 1
            given = container(self.containers, host, priority=ask.request.priority)
            self.deliver(ContainersAllocated((AllocatedContainer(given, ask.request),)))

    def succeed(self, kind: TaskKind) -> list[Action]:
        """Let every running task of that kind write its files and its report, and end with 0."""
        actions: list[Action] = []
        for container_id, attempt_id in list(self.running.items()):
            if attempt_id.task_id.kind is kind:
                del self.running[container_id]
                self.files.write_report(attempt_id, TaskReport(output=self.write(attempt_id)))
                actions += self.deliver(ContainersCompleted((ended(container_id.number),)))
        return actions

    def write(self, attempt_id: TaskAttemptId) -> str:
        if attempt_id.task_id.kind is TaskKind.MAP:
            return f"127.0.0.1:{self.shuffle.getsockname()[1]}"
        directory = OutputCommitter(self.output).make_attempt_directory(attempt_id)
        (directory / part_name(attempt_id.task_id)).write_text(str(attempt_id))
        return str(directory)

    def outputs(self) -> list[object]:
        return list(LineReader(self.files.outputs(self.attempt)).read_new())

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(self.files.status.read_text())
        return status

    def run(self) -> list[Action]:
        """Run the job from its current state to its end."""
        for _ in range(5):
            if self.last and isinstance(self.last[-1], Finish | Leave):
                return self.last
            self.beat()
            self.place()
            self.succeed(TaskKind.MAP)
            self.succeed(TaskKind.REDUCE)
        raise AssertionError("not over")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[JobRun]:
    run = JobRun(tmp_path)
    run.register()
    yield run
    run.shuffle.close()


SUCCEEDED = Finish(FinalApplicationStatus.SUCCEEDED)


def test_a_job_ends_with_its_output_in_place(run: JobRun) -> None:
    assert run.run()[-1] == SUCCEEDED
    assert sorted(path.name for path in run.output.iterdir()) == ["_SUCCESS", "part-r-00000"]
    assert run.status()["state"] == "SUCCEEDED"
    assert [type(record) for record in run.outputs()] == [PublishedOutput, PublishedOutput, JobEnded]


def test_a_task_is_launched_as_its_own_attempt_in_this_staging_directory(run: JobRun) -> None:
    run.place()
    (launch,) = [action for action in run.last if isinstance(action, Launch)]
    command = launch.launch_context.commands[0]
    assert f"-P -m am.programs.mapreduce.task --staging {run.files.staging} --attempt attempt_" in command
    assert command.endswith("1><LOG_DIR>/stdout 2><LOG_DIR>/stderr")
    assert "PYTHONPATH" in launch.launch_context.environment


def test_the_status_shows_tasks_and_nodes(run: JobRun) -> None:
    run.place("n7")
    run.beat()
    status = run.status()
    assert (status["state"], status["maps"]["RUNNING"], status["reduces"]["PENDING"]) == ("RUNNING", 2, 1)
    assert {attempt["node"] for attempt in status["attempts"]} == {"n7:45454"}
    assert status["application"] == str(APP)


def test_a_lost_nodes_output_is_withdrawn_from_the_reduces(run: JobRun) -> None:
    run.place()
    run.succeed(TaskKind.MAP)
    run.deliver(NodesUpdated((node_report("n1", NodeState.LOST),)))
    withdrawn = [record for record in run.outputs() if isinstance(record, PublishedOutput) and not record.address]
    assert len(withdrawn) == 2
    run.beat()
    assert run.status()["lost_outputs"] == 2
    assert run.run()[-1] == SUCCEEDED


def test_a_second_attempt_repeats_only_what_is_missing(run: JobRun) -> None:
    run.place()
    container_id = next(iter(run.running))
    attempt_id = run.running.pop(container_id)
    run.files.write_report(attempt_id, TaskReport(output=run.write(attempt_id)))
    run.deliver(ContainersCompleted((ended(container_id.number),)))
    run.begin(2)
    run.register()
    assert len(run.wanted) == 1
    assert next(record for record in run.outputs() if isinstance(record, PublishedOutput)).attempt_id == attempt_id
    assert run.run()[-1] == SUCCEEDED
    status = run.status()
    assert status["recovered_tasks"] == 1
    assert [a["why"] for a in status["attempts"]].count("its ApplicationMaster ended") == 1


def test_a_second_attempt_remakes_output_that_is_gone(run: JobRun) -> None:
    run.place()
    run.succeed(TaskKind.MAP)
    run.shuffle.close()
    run.begin(2)
    run.register()
    assert len(run.wanted) == 2


def test_a_second_attempt_after_the_commit_only_unregisters(run: JobRun) -> None:
    run.run()
    run.begin(2)
    assert run.deliver(Registered(GB, "root.default")) == [SUCCEEDED]
    assert run.master.progress() == 1.0


def test_an_attempt_with_a_successor_exits(run: JobRun) -> None:
    run.place()
    run.files.take_charge(2)
    (leave,) = run.succeed(TaskKind.MAP)[:1]
    assert isinstance(leave, Leave)
    assert "attempt 2" in leave.reason


def test_output_that_cannot_be_committed_is_a_failure_of_the_attempt(run: JobRun) -> None:
    run.place()
    run.succeed(TaskKind.MAP)
    run.beat()
    run.place()
    ((container_id, attempt_id),) = run.running.items()
    run.files.write_report(attempt_id, TaskReport(output="/nowhere"))
    run.deliver(ContainersCompleted((ended(container_id.number),)))
    run.beat()
    (failed,) = [attempt for attempt in run.status()["attempts"] if attempt["state"] == "FAILED"]
    assert "Task commit failed" in failed["why"]
    run.running.clear()
    assert run.run()[-1] == SUCCEEDED


def test_an_output_directory_that_cannot_be_created_fails_the_job(tmp_path: Path) -> None:
    """A job whose set-up fails has failed, and there is no other attempt (JobImpl)."""
    (tmp_path / "out").write_text("a file")
    run = JobRun(tmp_path)
    run.shuffle.close()
    (finish,) = run.deliver(Registered(GB, "root.default"))
    assert isinstance(finish, Finish)
    assert finish.final_status is FinalApplicationStatus.FAILED
    assert finish.diagnostics.startswith("Job setup failed : ")
