"""The work of a simulated run: applications as chaos plans describe them, their AMs, their containers and tasks.

The AMs are the real cores of am.programs; what their containers do is a rule of the emulation table for each entry of
the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from am.core.actions import Application
from am.programs.custom.core import TASK_NUMBER, TaskMasterApplication
from am.programs.custom.journal import JournalEntry, confirmed_in
from am.programs.custom.source import load_master
from am.programs.distributed_shell.core import DistributedShellCore, Width
from am.programs.elastic.application_master import ElasticApplicationMaster
from am.programs.elastic.core import SpoolScanned
from am.programs.gang.application_master import member_variables
from am.programs.gang.core import Gang
from nm.core.emulation import EmulationStage, EmulationTable, Match, Rule
from yarn.containers import ContainerLaunchContext
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarnling.faults.history import ProcessRole
from yarnling.faults.plan import WorkPlan, WorkProgram
from yarnling.faults.workload import SIZE, elastic_plan, gang_plan
from yarnling.simulation.engine import Engine, Rank
from yarnling.simulation.mapreduce import TASK_RULE, SimulatedJob, SimulatedMRAppMaster
from yarnling.simulation.recorder import HistoryWriter

AM_RULE = "am"
AM_IGNORING_TERM_RULE = "am-ignoring-term"
AM_RULES = (AM_RULE, AM_IGNORING_TERM_RULE)
"""The rules, and the commands, of AMs."""
WORKER_RULE = "worker"
JITTER_MS = 20
"""The factor by which a container may run shorter or longer than planned."""
WORKER_START_MS = 200
"""From the start of a worker's process to its first look at the spool."""
POLL_MS = 20
"""The time between two looks at the spool (am.programs.elastic.worker)."""


def emulation_table(works: Sequence[WorkPlan], seed: int) -> EmulationTable:
    """The work of the containers of each entry; AMs and workers run until they end themselves."""
    ignoring = Match(is_master=True, command=f"^{AM_IGNORING_TERM_RULE}$")
    rules = [
        Rule(AM_IGNORING_TERM_RULE, ignoring, (EmulationStage(None),), after_term_ms=None),
        Rule(AM_RULE, Match(is_master=True), (EmulationStage(None),)),
        Rule(WORKER_RULE, Match(command=f"^{WORKER_RULE}$"), (EmulationStage(None),)),
        Rule(TASK_RULE, Match(command=f"^{TASK_RULE}$"), (EmulationStage(None),)),
    ]
    for number, work in enumerate(works):
        name = rule_name(number)
        stage = EmulationStage(None) if work.program is WorkProgram.SERVICE else _stage(work.seconds)
        after_term_ms = None if work.ignores_term else 0
        rules.append(Rule(name, Match(command=f"^{name}$"), (stage,), after_term_ms=after_term_ms))
    return EmulationTable(tuple(rules), seed)


def rule_name(number: int) -> str:
    """The rule, and the command, of the containers of that entry of the plan."""
    return f"work-{number}"


def am_rule(work: WorkPlan) -> str:
    """The rule, and the command, of the AMs of that entry of the plan."""
    return AM_IGNORING_TERM_RULE if work.ignores_term else AM_RULE


def _stage(seconds: float) -> EmulationStage:
    lasts_ms = max(1, round(seconds * 1000))
    return EmulationStage(lasts_ms, min(JITTER_MS, lasts_ms - 1))


class SimulatedSpool:
    """The spool of one elastic application, on a file system that all machines share (am.programs.elastic.spool)."""

    def __init__(self) -> None:
        self._waiting: dict[int, None] = {}
        self._running: dict[int, ContainerId] = {}
        self._ended: dict[int, int] = {}
        self._idle: dict[Worker, None] = {}

    def enqueue(self, first: int, last: int) -> None:
        for task in range(first, last + 1):
            if task not in self._waiting and task not in self._running and task not in self._ended:
                self._waiting[task] = None
        self._wake()

    def requeue(self, worker: ContainerId) -> None:
        self._requeue([task for task, owner in self._running.items() if owner == worker])

    def requeue_all(self) -> None:
        self._requeue(list(self._running))

    def scan(self) -> SpoolScanned:
        busy: dict[ContainerId, int] = {}
        for task in sorted(self._running):
            worker = self._running[task]
            busy[worker] = busy.get(worker, 0) + 1
        return SpoolScanned(len(self._waiting), busy, len(self._ended))

    def count(self) -> int:
        return len(self._waiting) + len(self._running) + len(self._ended)

    def take(self, worker: ContainerId) -> int | None:
        """Give the first waiting task to this worker; None if no task waits."""
        if not self._waiting:
            return None
        task = min(self._waiting)
        del self._waiting[task]
        self._running[task] = worker
        return task

    def end(self, task: int, worker: ContainerId, exit_status: int) -> bool:
        """Record the end of a task; False if it does not belong to this worker any more."""
        if self._running.get(task) != worker:
            return False
        del self._running[task]
        self._ended[task] = exit_status
        return True

    def await_task(self, worker: Worker) -> None:
        """Wake this worker when tasks arrive."""
        self._idle[worker] = None

    def _requeue(self, tasks: Sequence[int]) -> None:
        for task in tasks:
            del self._running[task]
            self._waiting[task] = None
        self._wake()

    def _wake(self) -> None:
        idle, self._idle = self._idle, {}
        for worker in idle:
            worker.look_soon()


class Worker:
    """An elastic application's worker in its container: it runs one task after the other."""

    def __init__(
        self,
        engine: Engine,
        recorder: HistoryWriter,
        spool: SimulatedSpool,
        container_id: ContainerId,
        node: int,
        task_ms: int,
    ) -> None:
        self._engine = engine
        self._recorder = recorder
        self._spool = spool
        self._container_id = container_id
        self._node = node
        self._task_ms = task_ms
        self._task: int | None = None
        self._is_alive = True
        self._after(WORKER_START_MS, self._look)

    def kill(self) -> None:
        """End the worker with its task: its container has ended."""
        self._is_alive = False
        if self._task is not None:
            self._recorder.ended(self._container_id, None, self._task)

    def look_soon(self) -> None:
        self._after(POLL_MS, self._look)

    def _look(self) -> None:
        if not self._is_alive or self._task is not None:
            return
        self._task = self._spool.take(self._container_id)
        if self._task is None:
            self._spool.await_task(self)
        else:
            self._recorder.started(self._container_id, ProcessRole.TASK, self._node, self._task)
            self._after(self._task_ms, partial(self._task_over, self._task))

    def _task_over(self, task: int) -> None:
        if self._is_alive and self._task == task:
            self._task = None
            self._recorder.ended(self._container_id, 0, task)
            self._spool.end(task, self._container_id, 0)
            self._look()

    def _after(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._engine.at(self._engine.now_ms + delay_ms, Rank.CONTAINER, self._node, action)


class SimulatedJournal:
    """The journal of a custom program in the history, as one attempt uses it (am.programs.custom.core.Journal)."""

    def __init__(self, recorder: HistoryWriter, attempt_id: ApplicationAttemptId) -> None:
        self._entries = recorder.history.journals.setdefault(attempt_id.application_id, [])
        self._engine = recorder.engine
        self._attempt = attempt_id.attempt

    def confirmed(self) -> frozenset[int]:
        return confirmed_in(self._entries)

    def confirm(self, task: int, *, was_known: bool) -> None:
        self._entries.append(JournalEntry(self._attempt, self._engine.elapsed_s, task, was_known))

    def finish(self, held: Sequence[ContainerId]) -> None:
        self._entries.append(JournalEntry(self._attempt, self._engine.elapsed_s, held=tuple(map(str, held))))


class RunningWork(Struct, frozen=True):
    """A submitted application: its entry of the plan, with its number, and the files that its processes share."""

    number: int
    work: WorkPlan
    spool: SimulatedSpool
    job: SimulatedJob | None = None

    @staticmethod
    def make(number: int, work: WorkPlan, application_id: ApplicationId, directory: Path) -> RunningWork:
        """`directory`: for the files of a map-reduce job."""
        job = SimulatedJob(directory, application_id) if work.program is WorkProgram.WORDCOUNT else None
        return RunningWork(number, work, SimulatedSpool(), job)

    def application(
        self, attempt_id: ApplicationAttemptId, recorder: HistoryWriter, *, check_invariants: bool
    ) -> Application:
        """The program of one attempt's AM, which starts now."""
        work, command = self.work, rule_name(self.number)
        if self.job is not None:
            return SimulatedMRAppMaster(self.job, attempt_id, recorder.engine.now_ms, check_invariants=check_invariants)
        if work.program is WorkProgram.TASKS:
            worker = ContainerLaunchContext((WORKER_RULE,))
            plan = elastic_plan(work)
            return ElasticApplicationMaster(plan, lambda: worker, self.spool, check_invariants=check_invariants)
        if work.program is WorkProgram.GANG:
            return Gang(
                gang_plan(work),
                lambda member: ContainerLaunchContext((command,), member_variables(member)),
                attempt_id.application_id.id,
                check_invariants=check_invariants,
            )
        if work.program is WorkProgram.CUSTOM:
            return TaskMasterApplication(
                load_master(Path(work.file)),
                work.tasks,
                SIZE,
                lambda task: ContainerLaunchContext((command,), {TASK_NUMBER: str(task)}),
                SimulatedJournal(recorder, attempt_id),
                source=work.file,
            )
        container = ContainerLaunchContext((command,))
        return DistributedShellCore(Width(work.tasks, SIZE), lambda _: container, check_invariants=check_invariants)
