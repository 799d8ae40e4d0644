"""The AM of a map-reduce job: python -m am.programs.mapreduce.application_master --staging DIR (in a container).

The AM carries out the core's actions on files itself, and passes actions on containers to
am.programs.application_master. Work on files is done at once, within `handle`: renames and short appends, which block
for less than a heartbeat.

status.json shows the job's tasks and attempts to people and the demo; the file is replaced as a whole:

    {"application": "application_...", "name": "...", "am_attempt": 1, "state": "RUNNING", "progress": 0.5,
     "started_ms": ..., "updated_ms": ..., "output": "/...", "diagnostics": "",
     "maps": {"total": 8, "PENDING": 0, "SCHEDULED": 1, "RUNNING": 2, "SUCCEEDED": 5, "FAILED": 0}, "reduces": {...},
     "recovered_tasks": 0, "lost_outputs": 1,
     "attempts": [{"id": "attempt_...", "task": "task_...", "kind": "MAP", "container": "container_...",
                   "node": "127.0.0.2:4711", "state": "KILLED", "output_lost": true, "why": "...",
                   "started_ms": ..., "finished_ms": ...}, ...]}

`state` is RUNNING, SUCCEEDED or FAILED; times are wall-clock ms, 0 = not yet.
"""

from __future__ import annotations

import argparse
import json
import logging
import socket
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from am.client.environment import AMEnvironment
from am.client.launching import python_launch_context, write_atomically
from am.core.actions import Action, Finish, Launch, Leave
from am.core.events import ContainersCompleted, Event, HeartbeatDone
from am.programs.application_master import run_application_master
from am.programs.mapreduce.committer import OutputCommitter
from am.programs.mapreduce.core.job import TaskAttemptId, TaskKind
from am.programs.mapreduce.core.map_reduce import (
    JobAction,
    JobEvent,
    MapReduce,
    PublishOutput,
    RecordAttempt,
    RunTask,
    TaskEnded,
    TaskReport,
)
from am.programs.mapreduce.core.tasks import AttemptRecord, AttemptState, Task, TaskState, recover
from am.programs.mapreduce.job_files import JobEnded, JobFiles, LineReader, LineWriter, PublishedOutput
from wire.files.json_records import Json
from wire.files.shuffle import SERVICE, service_data
from yarn.containers import ContainerLaunchContext, ContainerStatus, ServiceData
from yarn.ids import ApplicationAttemptId
from yarn.states import ContainerExitStatus, FinalApplicationStatus

STATUS_INTERVAL_MS = 200
"""The minimum time between two writes of status.json; the final state is written at once."""

_LOOK_S = 1
"""The time a recovering AM waits for a shuffle service that may have map output."""

_logger = logging.getLogger(f"yarnling.{__name__}")


class MRAppMaster:
    """An Application (am.core.actions) for one attempt of the AM. Create it before the attempt registers."""

    def __init__(
        self, staging: Path, am_attempt_id: ApplicationAttemptId, now_ms: int, *, check_invariants: bool = False
    ) -> None:
        self._files = JobFiles(staging)
        self._job = self._files.read_job()
        self._shuffle = {SERVICE: ServiceData(service_data(am_attempt_id.application_id, self._files.read_secret()))}
        self._am_attempt_id = am_attempt_id
        self._files.take_charge(am_attempt_id.attempt)
        self._committer = OutputCommitter(Path(self._job.output))
        self._is_listening = cache(_is_listening)
        recovered = recover(LineReader(self._files.journal).read_new(), self._does_output_exist, now_ms)
        self._earlier = recovered.attempts
        self._core = MapReduce(self._job, am_attempt_id, recovered.tasks, check_invariants=check_invariants)
        self._journal = LineWriter(self._files.journal)
        self._outputs = LineWriter(self._files.outputs(am_attempt_id.attempt))
        self._started_ms = now_ms
        self._status_ms = 0
        self._recovered_tasks = len(recovered.tasks)
        self._is_complete = self._committer.is_job_committed()
        self._setup_problem = "" if self._is_complete else self._set_up()
        _logger.info(
            "initialized job=%s am_attempt=%d recovered_tasks=%d",
            self._job.name,
            am_attempt_id.attempt,
            len(recovered.tasks),
        )

    @property
    def heeds_heartbeats(self) -> bool:
        return True

    def progress(self) -> float:
        return 1.0 if self._is_complete else self._core.progress()

    def handle(self, event: Event, now_ms: int) -> list[Action]:
        """Handle one event and return its actions on containers; its actions on files have been carried out already."""
        in_charge = self._files.attempt_in_charge()
        if in_charge != self._am_attempt_id.attempt:
            reason = f"attempt {in_charge} of this application has taken over"
            return [Leave(reason if in_charge else "the staging directory of this application was removed")]
        if self._is_complete:
            # An earlier attempt committed the job, and ended before it could unregister.
            return [self._end(Finish(FinalApplicationStatus.SUCCEEDED), now_ms)]
        if self._setup_problem:
            return [self._end(Finish(FinalApplicationStatus.FAILED, self._setup_problem, exit_code=1), now_ms)]
        actions: list[Action] = []
        for job_event in self._with_reports(event):
            carried_out = (self._carry_out(action, now_ms) for action in self._core.handle(job_event, now_ms))
            actions += [action for action in carried_out if action is not None]
        if isinstance(event, HeartbeatDone) and now_ms - self._status_ms >= STATUS_INTERVAL_MS:
            self._write_status("RUNNING", "", now_ms)
        return actions

    def _set_up(self) -> str:
        """The fault of the output directory; another attempt would find the same (JobImpl: SetupFailed)."""
        try:
            self._committer.set_up()
        except OSError as error:
            return f"Job setup failed : {error}"
        return ""

    def _with_reports(self, event: Event) -> list[JobEvent]:
        if not isinstance(event, ContainersCompleted):
            return [event]
        return [TaskEnded(status, self._report_of(status)) for status in event.statuses]

    def _report_of(self, status: ContainerStatus) -> TaskReport | None:
        """The report of the task; if it succeeded and wrote a part of the job's output, that part is committed."""
        attempt = self._core.attempt_in(status.container_id)
        report = None if attempt is None else self._files.read_report(attempt.id)
        if attempt is None or report is None or status.exit_status != ContainerExitStatus.SUCCESS:
            return report
        if attempt.id.task_id.kind is TaskKind.MAP and self._job.reduces:
            return report
        try:
            self._committer.commit_task(attempt.id)
        except OSError as error:
            return TaskReport(commit_error=str(error))
        return report

    def _carry_out(self, action: JobAction, now_ms: int) -> Action | None:
        match action:
            case RunTask(attempt_id, container):
                return Launch(container, self._launch_context(attempt_id))
            case PublishOutput(attempt_id, output):
                self._outputs.write(PublishedOutput(attempt_id.task_id.number, attempt_id, output))
            case RecordAttempt(attempt):
                self._record(attempt)
            case Finish():
                return self._end(self._committed(action), now_ms)
            case _:
                return action
        return None

    def _launch_context(self, attempt_id: TaskAttemptId) -> ContainerLaunchContext:
        shuffles = attempt_id.task_id.kind is TaskKind.MAP and self._job.reduces
        return python_launch_context(
            "am.programs.mapreduce.task",
            ("--staging", str(self._files.staging), "--attempt", str(attempt_id)),
            local_resources=self._job.files,
            service_data=self._shuffle if shuffles else None,
        )

    def _does_output_exist(self, attempt: AttemptRecord) -> bool:
        if attempt.id.task_id.kind is TaskKind.MAP and self._job.reduces:
            return bool(attempt.output) and self._is_listening(attempt.output)
        return self._committer.is_task_committed(attempt.id.task_id)

    def _record(self, attempt: AttemptRecord) -> None:
        self._journal.write(attempt)
        log = _logger.warning if attempt.state is AttemptState.FAILED else _logger.info
        log("attempt=%s node=%s state=%s %s", attempt.id, attempt.node_id, attempt.state.value, attempt.why)

    def _committed(self, finish: Finish) -> Finish:
        """Put the job's output in place, or remove it if the job failed."""
        if finish.final_status is FinalApplicationStatus.SUCCEEDED:
            try:
                self._committer.commit_job()
                return finish
            except OSError as error:
                finish = Finish(FinalApplicationStatus.FAILED, f"Job commit failed: {error}", exit_code=1)
        self._committer.abort_job()
        return finish

    def _end(self, finish: Finish, now_ms: int) -> Finish:
        self._outputs.write(JobEnded())
        self._write_status(finish.final_status.name, finish.diagnostics, now_ms)
        return finish

    def _write_status(self, state: str, diagnostics: str, now_ms: int) -> None:
        self._status_ms = now_ms
        core = self._core
        own = [attempt for task in (*core.maps, *core.reduces) for attempt in task.attempts]
        attempts = sorted((*self._earlier, *own), key=lambda attempt: (attempt.started_ms, attempt.id.number))
        status: dict[str, Json] = {
            "application": str(self._am_attempt_id.application_id),
            "name": self._job.name,
            "am_attempt": self._am_attempt_id.attempt,
            "state": state,
            "diagnostics": diagnostics,
            "started_ms": self._started_ms,
            "updated_ms": now_ms,
            "output": self._job.output,
            "progress": core.progress(),
            "maps": _counts_of(core.maps),
            "reduces": _counts_of(core.reduces),
            "recovered_tasks": self._recovered_tasks,
            "lost_outputs": core.lost_outputs,
            "attempts": [_attempt_status(attempt) for attempt in attempts],
        }
        write_atomically(self._files.status, json.dumps(status).encode())


def _counts_of(tasks: Sequence[Task]) -> dict[str, Json]:
    """{"total": n, state: count}."""
    counts: dict[str, Json] = {"total": len(tasks)}
    for state in TaskState:
        counts[state.value] = sum(task.state is state for task in tasks)
    return counts


def _attempt_status(attempt: AttemptRecord) -> dict[str, Json]:
    return {
        "id": str(attempt.id),
        "task": str(attempt.id.task_id),
        "kind": attempt.id.task_id.kind.name,
        "container": str(attempt.container_id),
        "node": str(attempt.node_id),
        "state": attempt.state.value,
        "output_lost": attempt.output_lost,
        "why": attempt.why,
        "started_ms": attempt.started_ms,
        "finished_ms": attempt.finished_ms,
    }


def _is_listening(address: str) -> bool:
    """True if there is a shuffle service at host:port. A node that was lost or restarted has none there."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), _LOOK_S):
            return True
    except (OSError, ValueError):
        return False


def main() -> int:
    parser = argparse.ArgumentParser(prog="am.programs.mapreduce.application_master")
    parser.add_argument("--staging", type=Path, required=True, help="the job's staging directory")
    staging: Path = parser.parse_args().staging

    def make_application(environment: AMEnvironment) -> MRAppMaster:
        now_ms = int(time.time() * 1000)
        return MRAppMaster(staging, environment.attempt_id, now_ms, check_invariants=environment.check_invariants)

    return run_application_master(make_application)


if __name__ == "__main__":
    sys.exit(main())
