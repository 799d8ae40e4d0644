"""Records the applications and containers of a simulated workload, while it runs.

It becomes the immutable outcomes of yarnling.whatif.result at the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from am.core.actions import Application
from am.core.requests import RequestKey
from rm.core.effects import Preempted
from rm.core.states import FINAL_ATTEMPT_STATES, RMAppAttemptState
from rm.view import RMView
from yarn.containers import Container
from yarn.errors import YarnException
from yarn.ids import ApplicationId, ContainerId
from yarn.machine import StateChanged
from yarn.nodes import DEFAULT_RACK
from yarn.resource import Resource
from yarn.states import FINAL_APPLICATION_STATES, ContainerExitStatus
from yarnling.simulation.application_master import AMConduct
from yarnling.simulation.engine import Engine
from yarnling.simulation.task_groups import TaskGroupsCore, TaskProgress
from yarnling.whatif.result import NOT_SUBMITTED, REFUSED, ApplicationOutcome, ContainerOutcome, End
from yarnling.workload.model import RequestStyle, WorkloadApplication, WorkloadNode

AM_KEY = RequestKey(-1, -1)
"""The AM among the requests of an application."""
SHARE_TOLD = 0.1
"""The explanation of a wait names an earlier cause if that held for at least this share of the wait."""
_KILLED_STEP = "killed"
_ENDED_ATTEMPT = frozenset(state.name for state in FINAL_ATTEMPT_STATES)


@dataclass(slots=True, eq=False)
class ContainerRecord:
    """A request for one container. `position`: among all records of the run."""

    position: int
    application: int
    key: RequestKey
    requested_ms: int
    resource: Resource
    allocated_ms: int | None = None
    withdrawn_ms: int | None = None
    ended_ms: int | None = None
    end: End | None = None
    locality: str = ""
    host: str = ""
    is_preempted: bool = False

    @property
    def is_waiting(self) -> bool:
        return self.allocated_ms is None and self.withdrawn_ms is None

    def wait_ms(self, now_ms: int) -> int:
        """The time that it has waited, or had waited when it was allocated or withdrawn."""
        over_ms = self.withdrawn_ms if self.allocated_ms is None else self.allocated_ms
        return (now_ms if over_ms is None else over_ms) - self.requested_ms

    def outcome(self) -> ContainerOutcome:
        end = self.end
        if end is None and self.allocated_ms is not None:
            lost = End.PREEMPTED if self.is_preempted else End.FAILED
            end = End.RUNNING if self.ended_ms is None else lost
        return ContainerOutcome(
            self.application,
            self.requested_ms,
            self.allocated_ms,
            self.withdrawn_ms,
            self.ended_ms,
            end,
            self.resource,
            self.key == AM_KEY,
            self.locality,
            self.host,
        )


class Explained(NamedTuple):
    """The reason of a wait at a time: a cause and a sentence, as in VerdictReport."""

    at_ms: int
    cause: str
    sentence: str


@dataclass(slots=True, eq=False)
class KeyWaits:
    """The requests of one key: those that wait, oldest first; the longest wait that is over; and why it waited.

    `explained`, by time: each from while the oldest request waited.
    """

    waiting: deque[ContainerRecord] = field(default_factory=deque)
    longest: ContainerRecord | None = None
    explained: list[Explained] = field(default_factory=list)

    def over(self, record: ContainerRecord, now_ms: int) -> None:
        """End the wait of this request."""
        if self.longest is None or record.wait_ms(now_ms) > self.longest.wait_ms(now_ms):
            self.longest = record

    def explanation(self, record: ContainerRecord, now_ms: int) -> str:
        """The last reason of the wait, preceded by another one that held for long, if any; "" if unknown."""
        wait_ms = record.wait_ms(now_ms)
        until_ms = record.requested_ms + wait_ms
        held_ms, sentences = dict[str, int](), dict[str, str]()
        for one in reversed(self.explained):
            if record.requested_ms <= one.at_ms <= until_ms:
                sentences.setdefault(one.cause, one.sentence)
                held_ms[one.cause] = held_ms.get(one.cause, 0) + until_ms - one.at_ms
                until_ms = one.at_ms
        lasting = [
            sentence.removeprefix("waits ") if number else sentence
            for number, (cause, sentence) in enumerate(sentences.items())
            if number == 0 or held_ms[cause] >= SHARE_TOLD * wait_ms
        ]
        return "; before that, ".join(lasting)


class Recording:
    """Everything of one run. `began_ms`: the engine's time at the start of the workload.

    `unended`: the applications that have been accepted and have not ended, in the order of their submission.
    """

    def __init__(self, engine: Engine, nodes: Sequence[WorkloadNode]) -> None:
        self.began_ms = engine.now_ms
        self.applications: list[RecordedApplication] = []
        self.unended: dict[int, RecordedApplication] = {}
        self.containers: list[ContainerRecord] = []
        self.racks = {node.host: node.rack for node in nodes}
        self.scheduled: Callable[[ContainerId], int | None] = lambda _: None
        self._engine = engine

    @property
    def now_ms(self) -> int:
        """The time since the start of the workload."""
        return self._engine.now_ms - self.began_ms

    def requested(self, application: int, key: RequestKey, resource: Resource) -> ContainerRecord:
        record = ContainerRecord(len(self.containers), application, key, self.now_ms, resource)
        self.containers.append(record)
        return record


class RecordedApplication:
    """An application of the workload, and its records (RunningApplication, TaskWatch).

    `queue`: the path of its queue, which the configuration may have chosen. `waits` {key: its requests}; the AM's are
    those of AM_KEY.
    """

    def __init__(self, recording: Recording, work: WorkloadApplication, view_of: Callable[[], RMView]) -> None:
        self.work = work
        self.position = len(recording.applications)
        self.application_id: ApplicationId | None = None
        self.state = NOT_SUBMITTED
        self.queue = view_of().queue_path(work.queue)
        self.submitted_ms = work.submit_ms
        self.am_started_ms: int | None = None
        self.ended_ms: int | None = None
        self.diagnostics = ""
        self.am_limit_wait_ms = 0
        self.user_limit_wait_ms = 0
        self.waits: dict[RequestKey, KeyWaits] = {AM_KEY: KeyWaits()}
        self._recording = recording
        self._view_of = view_of
        self.surplus_containers = 0
        self._progress = TaskProgress(work.groups, work.task_start_ms)
        self._live: dict[ContainerId, ContainerRecord] = {}
        self._racks = [frozenset(map(self._rack_of, group.hosts)) for group in work.groups]
        recording.applications.append(self)

    def _rack_of(self, host: str) -> str:
        return self._recording.racks.get(host, DEFAULT_RACK)

    def submitted(self, application_id: ApplicationId) -> None:
        self.application_id = application_id
        self.state = "NEW"
        self.submitted_ms = self._recording.now_ms
        self._recording.unended[self.position] = self

    def answered(self, refusal: YarnException | None) -> None:
        """Note whether the submission was accepted or refused."""
        if refusal is not None:
            self._over(REFUSED, refusal.message)

    def changed(self, change: StateChanged) -> None:
        assert self.application_id is not None
        app = self._view_of().application(self.application_id)
        if app is None:
            # It is not among the completed applications that the ResourceManager keeps.
            if change.kind == "RMApp":
                self._over(change.target, "")
            return
        self.queue = app.queue
        if change.kind == "RMApp":
            self.state = app.state.name
            if app.state in FINAL_APPLICATION_STATES:
                self._over(app.state.name, app.diagnostics)
            return
        if change.target == RMAppAttemptState.SCHEDULED.name and not self.waits[AM_KEY].waiting:
            self._requested_am(self.work.am_resource)
        elif change.target == RMAppAttemptState.ALLOCATED_SAVING.name:
            assert app.am_container is not None, "the AM's container was allocated"
            self._allocated(AM_KEY, app.am_container)
        elif change.target in _ENDED_ATTEMPT:
            self._withdraw(key for key in self.waits if key != AM_KEY)

    def _over(self, state: str, diagnostics: str) -> None:
        if self.ended_ms is None:
            self.state, self.diagnostics = state, diagnostics
            self.ended_ms = self._recording.now_ms
            self._withdraw(self.waits)
            self._recording.unended.pop(self.position, None)

    def _withdraw(self, keys: Iterable[RequestKey]) -> None:
        """Withdraw the waiting requests of these keys."""
        now_ms = self._recording.now_ms
        for waits in map(self.waits.__getitem__, keys):
            for record in waits.waiting:
                record.withdrawn_ms = now_ms
            if waits.waiting:
                waits.over(waits.waiting[0], now_ms)
                waits.waiting.clear()

    # Methods of RunningApplication, called by the simulated AM.

    @property
    def conduct(self) -> AMConduct:
        return AMConduct(self.work.am_start_ms, self.work.client is RequestStyle.HADOOP)

    def core(self, wake_at: Callable[[int], None], *, check_invariants: bool) -> Application:
        now_ms = self._recording.now_ms
        self._progress.lose_all()
        if self.am_started_ms is None:
            self.am_started_ms = now_ms
        ends_ms = self._recording.began_ms + self.am_started_ms + self.work.am_lasts_ms
        return TaskGroupsCore(self._progress, self, wake_at, ends_ms=ends_ms, check_invariants=check_invariants)

    def duration_ms(self, container_id: ContainerId) -> int | None:
        return self._progress.duration_ms(container_id)

    def container_ended(self, container_id: ContainerId, exit_code: int | None) -> None:
        record = self._live.get(container_id)
        if record is not None:
            record.ended_ms = self._recording.now_ms
            if exit_code == 0:
                record.end = End.COMPLETED
                del self._live[container_id]

    def preempted(self, preemption: Preempted) -> None:
        record = self._live.get(preemption.container_id)
        if record is not None and preemption.step == _KILLED_STEP:
            record.is_preempted = True

    # What the AM requests and gets (TaskWatch)

    def requested(self, group: int, count: int) -> None:
        key, resource = self._progress.keys[group], self.work.groups[group].resource
        waits = self.waits.setdefault(key, KeyWaits())
        for _ in range(count):
            waits.waiting.append(self._recording.requested(self.position, key, resource))

    def allocated(self, group: int, container: Container) -> None:
        record = self._allocated(self._progress.keys[group], container)
        if record is not None:
            record.locality = self._locality(group, record.host)

    def surplus(self) -> None:
        self.surplus_containers += 1

    def ended(self, container_id: ContainerId, exit_status: int) -> None:
        record = self._live.pop(container_id, None)
        if record is None:
            return
        if record.ended_ms is None:
            record.ended_ms = self._recording.now_ms
        is_preempted = record.is_preempted or exit_status == ContainerExitStatus.PREEMPTED
        record.end = End.PREEMPTED if is_preempted else End.FAILED

    def _requested_am(self, resource: Resource) -> None:
        self.waits[AM_KEY].waiting.append(self._recording.requested(self.position, AM_KEY, resource))

    def _allocated(self, key: RequestKey, container: Container) -> ContainerRecord | None:
        """Note that the oldest request of the key was satisfied."""
        waits, now_ms = self.waits[key], self._recording.now_ms
        if not waits.waiting:
            return None
        record = waits.waiting.popleft()
        scheduled_ms = self._recording.scheduled(container.id)
        record.allocated_ms = now_ms if scheduled_ms is None else max(record.requested_ms, scheduled_ms)
        record.resource = container.resource
        record.host = container.node_id.host
        waits.over(record, now_ms)
        self._live[container.id] = record
        return record

    def _locality(self, group: int, host: str) -> str:
        wanted = self.work.groups[group]
        if not wanted.hosts or wanted.label:
            return ""
        if host in wanted.hosts:
            return "NODE_LOCAL"
        return "RACK_LOCAL" if self._rack_of(host) in self._racks[group] else "OFF_SWITCH"

    def outcome(self) -> ApplicationOutcome:
        work = self.work
        return ApplicationOutcome(
            work.name,
            work.user,
            self.queue,
            self.submitted_ms,
            self.am_started_ms,
            self.ended_ms,
            self.state,
            work.deadline_ms,
            self.am_limit_wait_ms,
            self.user_limit_wait_ms,
            self.diagnostics,
            self.surplus_containers,
        )
