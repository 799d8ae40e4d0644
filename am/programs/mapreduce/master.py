"""The AM of a map-reduce: the core's orders carried out on files, its containers and asks left to am.programs.master.

Work on files is done at once, within `handle`: renames and short appends, which block for less than a heartbeat.
"""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path

from am.client.launching import python_launch_context
from am.client.staging import write_atomically
from am.core.events import ContainersCompleted, Event, HeartbeatDone
from am.programs.core.actions import Action, AskFor, ChangeBlacklist, Finish, GiveBack, Launch, Leave, Stop, Withdraw
from am.programs.mapreduce.committer import OutputCommitter
from am.programs.mapreduce.core.job import TaskAttemptId
from am.programs.mapreduce.core.job_master import MapReduce
from am.programs.mapreduce.core.orders import (
    AbortJob,
    CommitJob,
    CommitTask,
    JobCommitFailed,
    JobCommitted,
    JobEvent,
    Order,
    PublishOutput,
    Record,
    RunTask,
    TaskCommitFailed,
    TaskCommitted,
    TaskEnded,
    TaskReport,
    WithdrawOutput,
)
from am.programs.mapreduce.core.recovery import recover
from am.programs.mapreduce.core.tasks import Attempt, AttemptState
from am.programs.mapreduce.job_files import JobEnded, JobFiles, LineReader, LineWriter, MapOutput
from am.programs.mapreduce.shuffle import INDEX
from am.programs.mapreduce.status import tasks_status
from wire.json_records import Json
from yarn.containers import ContainerLaunchContext, ContainerStatus
from yarn.ids import ApplicationAttemptId
from yarn.states import FinalApplicationStatus

STATUS_INTERVAL_MS = 200
"""The least time between two writings of status.json, but for the last one."""

_logger = logging.getLogger(__name__)


class MapReduceMaster:
    """A Program (am.programs.core.actions) for one attempt of the AM. Made before it registers."""

    def __init__(self, staging: Path, am_attempt_id: ApplicationAttemptId, now_ms: int) -> None:
        self._files = JobFiles(staging)
        self._job = self._files.read_job()
        self._am_attempt_id = am_attempt_id
        self._files.take_charge(am_attempt_id.attempt)
        self._committer = OutputCommitter(Path(self._job.output))
        recovery = recover(LineReader(self._files.journal).read_new(), self._is_output_there, now_ms)
        self._earlier = recovery.attempts
        self._core = MapReduce(self._job, am_attempt_id, recovery.tasks)
        self._journal = LineWriter(self._files.journal)
        self._outputs = LineWriter(self._files.outputs(am_attempt_id.attempt))
        self._started_ms = now_ms
        self._status_ms = 0
        self._is_complete = self._committer.is_job_committed()
        self._set_up_problem = "" if self._is_complete else self._set_up()
        _logger.info("job=%s recovered=%d attempt=%d", self._job.name, len(recovery.tasks), am_attempt_id.attempt)

    def progress(self) -> float:
        return 1.0 if self._is_complete else self._core.progress()

    def handle(self, event: Event, now_ms: int) -> list[Action]:
        """The actions for one event, with all that concerns files done already."""
        in_charge = self._files.attempt_in_charge()
        if in_charge != self._am_attempt_id.attempt:
            found = f"attempt {in_charge} of this application has taken over" if in_charge else "its staging is gone"
            return [Leave(found)]
        if self._is_complete:
            # The attempt before this one committed the job, but did not get to tell the RM.
            return [self._finish(Finish(FinalApplicationStatus.SUCCEEDED), now_ms)]
        if self._set_up_problem:
            return [self._finish(Finish(FinalApplicationStatus.FAILED, self._set_up_problem, exit_code=1), now_ms)]
        actions: list[Action] = []
        for job_event in self._with_reports(event):
            actions += self._handle(job_event, now_ms)
        if isinstance(event, HeartbeatDone) and now_ms - self._status_ms >= STATUS_INTERVAL_MS:
            self._write_status("RUNNING", "", now_ms)
        return actions

    def _set_up(self) -> str:
        """What is wrong with the output directory; another attempt would find the same (JobImpl: SetupFailed)."""
        try:
            self._committer.set_up()
        except OSError as error:
            return f"Job setup failed : {error}"
        return ""

    def _handle(self, event: JobEvent, now_ms: int) -> list[Action]:
        """Orders may lead to events at once (a commit is done): they are handled before anything else."""
        actions: list[Action] = []
        for order in self._core.handle(event, now_ms):
            outcome = self._carry_out(order, now_ms)
            if isinstance(outcome, TaskCommitted | TaskCommitFailed | JobCommitted | JobCommitFailed):
                actions += self._handle(outcome, now_ms)
            elif outcome is not None:
                actions.append(outcome)
        return actions

    def _with_reports(self, event: Event) -> list[JobEvent]:
        if not isinstance(event, ContainersCompleted):
            return [event]
        return [TaskEnded(status, self._report_of(status)) for status in event.statuses]

    def _report_of(self, status: ContainerStatus) -> TaskReport | None:
        attempt = self._core.attempt_in(status.container_id)
        return None if attempt is None else self._files.read_report(attempt.id)

    def _carry_out(
        self, order: Order, now_ms: int
    ) -> Action | TaskCommitted | TaskCommitFailed | JobCommitted | JobCommitFailed | None:
        match order:
            case RunTask(attempt_id, container):
                return Launch(container, self._launch_context(attempt_id))
            case CommitTask(attempt_id):
                return self._commit_task(attempt_id)
            case PublishOutput(attempt_id, output):
                self._outputs.write(MapOutput(attempt_id.task_id.number, attempt_id, output))
            case WithdrawOutput(attempt_id):
                self._outputs.write(MapOutput(attempt_id.task_id.number, attempt_id, ""))
            case Record(attempt):
                self._record(attempt)
            case CommitJob():
                return self._commit_job()
            case AbortJob():
                self._committer.abort_job()
            case Finish():
                return self._finish(order, now_ms)
            case AskFor() | Withdraw() | GiveBack() | ChangeBlacklist() | Stop() | Launch() | Leave():
                return order
        return None

    def _launch_context(self, attempt_id: TaskAttemptId) -> ContainerLaunchContext:
        return python_launch_context(
            "am.programs.mapreduce.task",
            ("--staging", str(self._files.staging), "--attempt", str(attempt_id)),
            environment=self._job.environment,
            local_resources=self._job.files,
        )

    # Files

    def _is_output_there(self, attempt: Attempt) -> bool:
        if attempt.is_map and self._job.reduces:
            return bool(attempt.output) and (Path(attempt.output) / INDEX).is_file()
        return self._committer.is_task_committed(attempt.id.task_id)

    def _record(self, attempt: Attempt) -> None:
        self._journal.write(attempt)
        log = _logger.warning if attempt.state is AttemptState.FAILED else _logger.info
        log("attempt=%s node=%s state=%s %s", attempt.id, attempt.node_id, attempt.state.value, attempt.why)

    def _commit_task(self, attempt_id: TaskAttemptId) -> TaskCommitted | TaskCommitFailed:
        try:
            self._committer.commit_task(attempt_id)
        except OSError as error:
            return TaskCommitFailed(attempt_id, str(error))
        return TaskCommitted(attempt_id)

    def _commit_job(self) -> JobCommitted | JobCommitFailed:
        try:
            self._committer.commit_job()
        except OSError as error:
            return JobCommitFailed(str(error))
        return JobCommitted()

    def _finish(self, finish: Finish, now_ms: int) -> Finish:
        self._outputs.write(JobEnded())
        self._write_status(finish.final_status.name, finish.diagnostics, now_ms)
        return finish

    def _write_status(self, state: str, diagnostics: str, now_ms: int) -> None:
        self._status_ms = now_ms
        status: dict[str, Json] = {
            "application": str(self._am_attempt_id.application_id),
            "name": self._job.name,
            "am_attempt": self._am_attempt_id.attempt,
            "state": state,
            "diagnostics": diagnostics,
            "started_ms": self._started_ms,
            "updated_ms": now_ms,
            "output": self._job.output,
            **tasks_status(self._core, self._earlier),
        }
        write_atomically(self._files.status, json.dumps(status).encode())


def make_master(staging: Path, am_attempt_id: ApplicationAttemptId) -> MapReduceMaster:
    return MapReduceMaster(staging, am_attempt_id, int(time.time() * 1000))
