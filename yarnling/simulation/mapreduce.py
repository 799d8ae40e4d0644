"""Map-reduce jobs in a simulation: the real AM over real files in a staging directory, with simulated tasks.

A map leaves its output on its machine; it is lost when a NodeManager starts there again. A reduce fetches the output of
all maps as they finish, and reports those that are gone. Both leave the reports and files that am.programs.mapreduce
expects. No path enters a message, so the trace does not depend on where the files are.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from am.programs.mapreduce.application_master import MRAppMaster
from am.programs.mapreduce.committer import OutputCommitter, part_name
from am.programs.mapreduce.core.job import (
    MapReduceJob,
    SplitPart,
    TaskAttemptId,
    TaskId,
    TaskKind,
    parse_attempt_id,
)
from am.programs.mapreduce.core.map_reduce import EXIT_FETCH_FAILED, TaskReport
from am.programs.mapreduce.core.tasks import ATTEMPTS_PER_AM, AttemptRecord
from am.programs.mapreduce.job_files import JobEnded, JobFiles, LineReader, PublishedOutput
from am.programs.mapreduce.task import EXIT_FAILED, EXIT_ORPHANED, FETCH_POLL_S
from nm.core.effects import LaunchContainer
from yarn.containers import ContainerLaunchContext
from yarn.ids import ApplicationAttemptId, ApplicationId
from yarnling.faults.workload import SIZE
from yarnling.simulation.engine import Engine, Rank
from yarnling.simulation.machine import SimulatedMachine

TASK_RULE = "mapreduce-task"
MAPS = 4
TASK_START_MS = 200
"""From the start of a task's process to its first look at its files."""
MAP_MS = 400
REDUCE_MS = 200
"""The time a map, and the work of a reduce after its last fetch, take."""
FETCH_TRIES_MAX = 5
FETCH_POLL_MS = round(FETCH_POLL_S * 1000)


class SimulatedJob:
    """A job. `outputs` {attempt of a map: (machine, which start of its NodeManager)}: where its output is."""

    def __init__(self, directory: Path, application_id: ApplicationId) -> None:
        self.staging = directory / str(application_id)
        self.output = directory / f"output-{application_id}"
        self.outputs: dict[TaskAttemptId, tuple[SimulatedMachine, int]] = {}
        self.maps_in_part: dict[int, int] = {}
        self.staging.mkdir(parents=True)
        splits = tuple((SplitPart(f"part-{number}", 0, 1),) for number in range(MAPS))
        job = MapReduceJob(
            "word count", splits, str(self.output), "map", "reduce", map_resource=SIZE, reduce_resource=SIZE
        )
        self.files = JobFiles(self.staging)
        self.files.write_job(job)

    def is_right(self) -> bool:
        """True if the committed output was made from the output of every map."""
        committer = OutputCommitter(self.output)
        part = self.output / part_name(TaskId(ApplicationId(0, 0), TaskKind.REDUCE, 0))
        return committer.is_job_committed() and part.is_file() and self.maps_in_part.get(0) == MAPS

    def is_there(self, attempt_id: TaskAttemptId) -> bool:
        """True if the output of a map can be fetched."""
        where = self.outputs.get(attempt_id)
        return where is not None and where[0].nm.starts == where[1]


class SimulatedMRAppMaster(MRAppMaster):
    """The AM of a job, whose tasks are simulated."""

    def __init__(
        self, job: SimulatedJob, attempt_id: ApplicationAttemptId, now_ms: int, *, check_invariants: bool
    ) -> None:
        self._simulated = job
        super().__init__(job.staging, attempt_id, now_ms, check_invariants=check_invariants)

    def _launch_context(self, attempt_id: TaskAttemptId) -> ContainerLaunchContext:
        return ContainerLaunchContext((TASK_RULE,), {"TASK": str(attempt_id)})

    def _does_output_exist(self, attempt: AttemptRecord) -> bool:
        if attempt.id.task_id.kind is TaskKind.MAP:
            return self._simulated.is_there(attempt.id)
        return super()._does_output_exist(attempt)


class SimulatedTask:
    """A map or a reduce in its container."""

    def __init__(self, engine: Engine, job: SimulatedJob, machine: SimulatedMachine, launch: LaunchContainer) -> None:
        self._engine = engine
        self._job = job
        self._machine = machine
        self._launch = launch
        self._attempt_id = parse_attempt_id(launch.environment["TASK"])
        self._am_attempt = self._attempt_id.number // ATTEMPTS_PER_AM + 1
        self._nm_starts = machine.nm.starts
        self._reader = LineReader(job.files.outputs(self._am_attempt))
        self._offered: dict[int, PublishedOutput] = {}
        self._fetched: dict[int, None] = {}
        self._tries: dict[TaskAttemptId, int] = {}
        self._is_alive = True
        is_map = self._attempt_id.task_id.kind is TaskKind.MAP
        self._after(TASK_START_MS + (MAP_MS if is_map else 0), self._finish_map if is_map else self._fetch)

    def kill(self) -> None:
        """End the task: its container has ended."""
        self._is_alive = False

    def _finish_map(self) -> None:
        self._job.outputs[self._attempt_id] = (self._machine, self._nm_starts)
        self._job.files.write_report(self._attempt_id, TaskReport(output=f"{self._machine.host}/{self._attempt_id}"))
        self._end(0)

    def _fetch(self) -> None:
        """Look for new output of maps, as TaskRun does."""
        for record in self._reader.read_new():
            if isinstance(record, JobEnded):
                self._end(EXIT_ORPHANED)
                return
            if isinstance(record, PublishedOutput):
                self._offered[record.map_number] = record
        for number, output in self._offered.items():
            if number not in self._fetched and output.address:
                self._fetch_one(number, output.attempt_id)
        gone = tuple(attempt_id for attempt_id, count in self._tries.items() if count >= FETCH_TRIES_MAX)
        if len(self._fetched) == MAPS:
            self._after(REDUCE_MS, self._finish_reduce)
        elif gone:
            self._job.files.write_report(self._attempt_id, TaskReport(fetch_failures=gone))
            self._end(EXIT_FETCH_FAILED)
        elif self._job.files.attempt_in_charge() != self._am_attempt:
            self._end(EXIT_ORPHANED)
        else:
            self._after(FETCH_POLL_MS, self._fetch)

    def _fetch_one(self, number: int, attempt_id: TaskAttemptId) -> None:
        if self._job.is_there(attempt_id):
            self._fetched[number] = None
            self._tries.pop(attempt_id, None)
        else:
            self._tries[attempt_id] = self._tries.get(attempt_id, 0) + 1

    def _finish_reduce(self) -> None:
        number = self._attempt_id.task_id.number
        try:
            directory = OutputCommitter(self._job.output).make_attempt_directory(self._attempt_id)
            (directory / part_name(self._attempt_id.task_id)).touch()
        except OSError:
            self._end(EXIT_FAILED)
            return
        self._job.maps_in_part[number] = len(self._fetched)
        self._job.files.write_report(self._attempt_id, TaskReport(output=part_name(self._attempt_id.task_id)))
        self._end(0)

    def _end(self, exit_code: int) -> None:
        self._machine.program_ended(self._launch.container_id, self._launch.launch, exit_code)

    def _after(self, delay_ms: int, action: Callable[[], None]) -> None:
        def unless_killed() -> None:
            if self._is_alive:
                action()

        self._engine.at(self._engine.now_ms + delay_ms, Rank.CONTAINER, self._machine.number, unless_killed)
