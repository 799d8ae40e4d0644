"""The AM of a map-reduce with its files: journal, reports, commits and status; RM and NMs are played by the test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from am.core.events import Allocation, ContainersAllocated, ContainersCompleted, HeartbeatDone, NodesUpdated, Registered
from am.programs.core.actions import Action, AskFor, Finish, Launch, Leave
from am.programs.mapreduce.committer import OutputCommitter, part_name
from am.programs.mapreduce.core.job import Job, TaskAttemptId, TaskKind, parse_attempt_id, splits_of
from am.programs.mapreduce.core.orders import TaskReport
from am.programs.mapreduce.job_files import JobEnded, JobFiles, LineReader, MapOutput
from am.programs.mapreduce.master import MapReduceMaster
from tests.am.builders import APP, GB, container, ended, node_report
from yarn.ids import ApplicationAttemptId, ContainerId
from yarn.resource import Resource
from yarn.states import FinalApplicationStatus, NodeState


class Played:
    """One AM after another over one staging directory, with two maps and one reduce."""

    def __init__(self, tmp_path: Path) -> None:
        self.output = tmp_path / "out"
        staging = tmp_path / "staging"
        staging.mkdir()
        self.local = tmp_path / "local"
        self.files = JobFiles(staging)
        self.files.write_job(
            Job(
                "j", splits_of([("/text", 20)], 10), str(self.output), "cat", "cat", map_resource=GB, reduce_resource=GB
            )
        )
        self.containers = 1
        self.now_ms = 1_000_000
        self.begin(1)

    def begin(self, attempt: int) -> None:
        self.attempt = attempt
        self.master = MapReduceMaster(self.files.staging, ApplicationAttemptId(APP, attempt), self.now_ms)
        self.wanted: list[AskFor] = []
        self.running: dict[ContainerId, TaskAttemptId] = {}
        self.last: list[Action] = []

    def tell(self, *events: Any) -> list[Action]:
        self.last = [action for event in events for action in self.master.handle(event, self.now_ms)]
        for action in self.last:
            match action:
                case AskFor():
                    self.wanted.append(action)
                case Launch(given, context):
                    words = context.commands[0].split()
                    self.running[given.id] = parse_attempt_id(words[words.index("--attempt") + 1])
        return self.last

    def register(self) -> None:
        self.tell(Registered(GB, "root.default"))

    def beat(self) -> list[Action]:
        self.now_ms += 1000
        return self.tell(HeartbeatDone(Resource(4096, 4), 2))

    def place(self, host: str = "n1") -> None:
        while self.wanted:
            ask = self.wanted.pop(0)
            self.containers += 1
            given = container(self.containers, host, priority=ask.request.priority)
            self.tell(ContainersAllocated((Allocation(given, ask.request),)))

    def succeed(self, kind: TaskKind) -> list[Action]:
        """Every running task of that kind does its work: files, report, exit code 0."""
        actions: list[Action] = []
        for container_id, attempt_id in list(self.running.items()):
            if attempt_id.task_id.kind is kind:
                del self.running[container_id]
                self.files.write_report(attempt_id, TaskReport(output=str(self.write(attempt_id))))
                actions += self.tell(ContainersCompleted((ended(container_id.number),)))
        return actions

    def write(self, attempt_id: TaskAttemptId) -> Path:
        if attempt_id.task_id.kind is TaskKind.MAP:
            directory = self.local / str(attempt_id)
            directory.mkdir(parents=True)
            (directory / "file.out.index").touch()
            return directory
        directory = OutputCommitter(self.output).make_attempt_directory(attempt_id)
        (directory / part_name(attempt_id.task_id)).write_text(str(attempt_id))
        return directory

    def outputs(self) -> list[object]:
        return list(LineReader(self.files.outputs(self.attempt)).read_new())

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(self.files.status.read_text())
        return status

    def run(self) -> list[Action]:
        """To the end, from wherever it stands."""
        for _ in range(5):
            if self.last and isinstance(self.last[-1], Finish | Leave):
                return self.last
            self.beat()
            self.place()
            self.succeed(TaskKind.MAP)
            self.succeed(TaskKind.REDUCE)
        raise AssertionError("not over")


@pytest.fixture
def played(tmp_path: Path) -> Played:
    played = Played(tmp_path)
    played.register()
    return played


SUCCEEDED = Finish(FinalApplicationStatus.SUCCEEDED)


def test_a_job_ends_with_its_output_in_place(played: Played) -> None:
    assert played.run()[-1] == SUCCEEDED
    assert sorted(path.name for path in played.output.iterdir()) == ["_SUCCESS", "part-r-00000"]
    assert played.status()["state"] == "SUCCEEDED"
    assert [type(record) for record in played.outputs()] == [MapOutput, MapOutput, JobEnded]


def test_a_task_is_launched_as_its_own_attempt_in_this_staging_directory(played: Played) -> None:
    played.place()
    (launch,) = [action for action in played.last if isinstance(action, Launch)]
    command = launch.launch_context.commands[0]
    assert f"-P -m am.programs.mapreduce.task --staging {played.files.staging} --attempt attempt_" in command
    assert command.endswith("1><LOG_DIR>/stdout 2><LOG_DIR>/stderr")
    assert "PYTHONPATH" in launch.launch_context.environment


def test_the_status_tells_who_ran_where(played: Played) -> None:
    played.place("n7")
    played.beat()
    status = played.status()
    assert (status["state"], status["maps"]["RUNNING"], status["reduces"]["PENDING"]) == ("RUNNING", 2, 1)
    assert {attempt["node"] for attempt in status["attempts"]} == {"n7:45454"}
    assert status["application"] == str(APP)


def test_a_lost_nodes_output_is_withdrawn_from_the_reduces(played: Played) -> None:
    played.place()
    played.succeed(TaskKind.MAP)
    played.tell(NodesUpdated((node_report("n1", NodeState.LOST),)))
    withdrawn = [record for record in played.outputs() if isinstance(record, MapOutput) and not record.directory]
    assert len(withdrawn) == 2
    played.beat()
    assert played.status()["lost_outputs"] == 2
    assert played.run()[-1] == SUCCEEDED


def test_a_second_attempt_repeats_only_what_is_missing(played: Played) -> None:
    played.place()
    container_id = next(iter(played.running))
    attempt_id = played.running.pop(container_id)
    played.files.write_report(attempt_id, TaskReport(output=str(played.write(attempt_id))))
    played.tell(ContainersCompleted((ended(container_id.number),)))
    played.begin(2)
    played.register()
    assert len(played.wanted) == 1
    assert next(record for record in played.outputs() if isinstance(record, MapOutput)).attempt_id == attempt_id
    assert played.run()[-1] == SUCCEEDED
    status = played.status()
    assert status["recovered_tasks"] == 1
    assert [a["why"] for a in status["attempts"]].count("its master ended") == 1


def test_a_second_attempt_makes_output_again_that_is_gone(played: Played) -> None:
    played.place()
    played.succeed(TaskKind.MAP)
    for index in played.local.glob("*/file.out.index"):
        index.unlink()
    played.begin(2)
    played.register()
    assert len(played.wanted) == 2


def test_a_second_attempt_after_the_commit_only_says_so(played: Played) -> None:
    played.run()
    played.begin(2)
    assert played.tell(Registered(GB, "root.default")) == [SUCCEEDED]
    assert played.master.progress() == 1.0


def test_an_attempt_that_was_replaced_does_nothing_more(played: Played) -> None:
    played.place()
    played.files.take_charge(2)
    (leave,) = played.succeed(TaskKind.MAP)[:1]
    assert isinstance(leave, Leave)
    assert "attempt 2" in leave.reason


def test_output_that_cannot_be_committed_is_a_failure_of_the_attempt(played: Played) -> None:
    played.place()
    played.succeed(TaskKind.MAP)
    played.beat()
    played.place()
    ((container_id, attempt_id),) = played.running.items()
    played.files.write_report(attempt_id, TaskReport(output="/nowhere"))
    played.tell(ContainersCompleted((ended(container_id.number),)))
    played.beat()
    (failed,) = [attempt for attempt in played.status()["attempts"] if attempt["state"] == "FAILED"]
    assert "Task commit failed" in failed["why"]
    played.running.clear()
    assert played.run()[-1] == SUCCEEDED


def test_an_output_directory_that_cannot_be_made_fails_the_job(tmp_path: Path) -> None:
    """JobImpl: a job whose set-up fails has failed; its master is not tried again."""
    (tmp_path / "out").write_text("a file")
    played = Played(tmp_path)
    (finish,) = played.tell(Registered(GB, "root.default"))
    assert isinstance(finish, Finish)
    assert finish.final_status is FinalApplicationStatus.FAILED
    assert finish.diagnostics.startswith("Job setup failed : ")
