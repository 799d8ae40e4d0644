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
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.machine import StateChanged
from yarn.nodes import DEFAULT_RACK
from yarn.resource import Resource
from yarn.states import FINAL_APPLICATION_STATES, ContainerExitStatus
from yarnling.simulation.application_master import AMConduct
from yarnling.simulation.engine import Engine
from yarnling.simulation.node_events import NodeChanges
from yarnling.simulation.task_groups import PlannedTask, TaskGroupsCore, TaskProgress
from yarnling.whatif.containers import ContainerOutcomes, End
from yarnling.whatif.result import NOT_SUBMITTED, REFUSED, ApplicationOutcome, NodeCount
from yarnling.workload.model import RequestStyle, WorkloadApplication, WorkloadNode
from yarnling.workload.start_times import drawn_ms

AM_KEY = RequestKey(-1, -1)
"""The AM among the requests of an application."""
SHARE_TOLD = 0.1
"""The explanation of a wait names an earlier cause if that held for at least this share of the wait."""
_KILLED_STEP = "killed"
_ENDED_ATTEMPT = frozenset(state.name for state in FINAL_ATTEMPT_STATES)


class Explained(NamedTuple):
    """The reason of a wait at a time: a cause and a sentence, as in VerdictReport."""

    at_ms: int
    cause: str
    sentence: str


class FinishedWait(NamedTuple):
    """A wait that is over, of the container at this position."""

    wait_ms: int
    position: int


@dataclass(slots=True, eq=False)
class KeyWaits:
    """The requests of one key: those that wait, oldest first; the longest wait that is over; and why it waited.

    `waiting`: positions of containers; None if none waits, because an empty deque takes 0.7 kB. `explained`, by time:
    each from while the oldest request waited.
    """

    waiting: deque[int] | None = None
    longest: FinishedWait | None = None
    explained: list[Explained] = field(default_factory=list)

    def add(self, positions: Iterable[int]) -> None:
        """Add requests, which wait from now on."""
        if self.waiting is None:
            self.waiting = deque()
        self.waiting.extend(positions)

    def take_oldest(self) -> int | None:
        """Remove the oldest request that waits; returns its position."""
        if self.waiting is None:
            return None
        position = self.waiting.popleft()
        if not self.waiting:
            self.waiting = None
        return position

    def take_all(self) -> Iterable[int]:
        """Remove all requests that wait; returns their positions."""
        positions, self.waiting = self.waiting or (), None
        return positions

    def over(self, position: int, wait_ms: int) -> None:
        """Note that the request has waited so long, and waits no more."""
        if self.longest is None or wait_ms > self.longest.wait_ms:
            self.longest = FinishedWait(wait_ms, position)

    def explanation(self, requested_ms: int, wait_ms: int) -> str:
        """The last reason of a wait, preceded by another one that held for long, if any; "" if unknown."""
        until_ms = requested_ms + wait_ms
        held_ms, sentences = dict[str, int](), dict[str, str]()
        for one in reversed(self.explained):
            if requested_ms <= one.at_ms <= until_ms:
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
    `completed`: the number of containers that have. `number_for`: as in Engine.
    """

    def __init__(self, engine: Engine, nodes: Sequence[WorkloadNode], node_changes: NodeChanges) -> None:
        self.began_ms = engine.now_ms
        self._node_changes = node_changes
        self.applications: list[RecordedApplication] = []
        self.unended: dict[int, RecordedApplication] = {}
        self.containers = ContainerOutcomes()
        self.completed = 0
        self.racks = {node.host: node.rack for node in nodes}
        self.scheduled: Callable[[ContainerId], int | None] = lambda _: None
        self.number_for = engine.number_for
        self._engine = engine

    @property
    def now_ms(self) -> int:
        """The time since the start of the workload."""
        return self._engine.now_ms - self.began_ms

    def is_lost(self, position: int) -> bool:
        """True if a container ended with its machine, or its machine is not there any more."""
        has_lost = self.containers.has_ended(position) and self.containers.ended_as(position) is End.LOST
        return has_lost or not self._node_changes.is_there(self.containers.host(position))

    def node_counts(self) -> tuple[NodeCount, ...]:
        """The numbers of machines over time; of several changes in one millisecond the last one counts."""
        counts = dict(self._node_changes.counts)
        return tuple(NodeCount(at_ms - self.began_ms, count) for at_ms, count in counts.items())


class RecordedApplication:
    """An application of the workload, and its records (RunningApplication, TaskWatch).

    `queue`: the path of its queue, which the configuration may have chosen. `waits` {key: its requests}; the AM's are
    those of AM_KEY. `_live` {container: its position}: its end has not been reported, or the AM has not heard of it.
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
        self.memory_mb_s = 0
        self.waits: dict[RequestKey, KeyWaits] = {AM_KEY: KeyWaits()}
        self._recording = recording
        self._view_of = view_of
        self.surplus_containers = 0
        self._progress = TaskProgress(work.groups, self._task_start_ms)
        self._live: dict[ContainerId, int] = {}
        self._preempted: set[int] = set()
        self._am_positions: dict[ApplicationAttemptId, int] = {}
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
        self.queue, self.memory_mb_s = app.queue, app.memory_mb_s
        if change.kind == "RMApp":
            self.state = app.state.name
            if app.state in FINAL_APPLICATION_STATES:
                self._over(app.state.name, app.diagnostics)
            return
        if change.target == RMAppAttemptState.SCHEDULED.name and self.waits[AM_KEY].waiting is None:
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
        now_ms, containers = self._recording.now_ms, self._recording.containers
        for waits in map(self.waits.__getitem__, keys):
            for position in waits.take_all():
                containers.withdraw(position, now_ms)
                waits.over(position, now_ms - containers.requested_ms(position))

    # Methods of RunningApplication, called by the simulated AM.

    @property
    def conduct(self) -> AMConduct:
        start_ms = drawn_ms(self.work.am_start_ms, self._recording.number_for, f"start of AM {self.position}")
        return AMConduct(start_ms, self.work.client is RequestStyle.HADOOP)

    def _task_start_ms(self, task: PlannedTask) -> int:
        name = f"start of task {self.position}/{task.group}/{task.number}"
        return drawn_ms(self.work.task_start_ms, self._recording.number_for, name)

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
        position = self._live.get(container_id)
        if position is None:
            return
        self._recording.containers.end(
            position, End.COMPLETED if exit_code == 0 else self._loss(container_id, position), self._recording.now_ms
        )
        if exit_code == 0:
            self._recording.completed += 1
            self._forget(container_id)

    def preempted(self, preemption: Preempted) -> None:
        position = self._live.get(preemption.container_id)
        if position is not None and preemption.step == _KILLED_STEP:
            self._preempted.add(position)
            if self._recording.containers.has_ended(position):
                self._recording.containers.end(position, End.PREEMPTED)

    # What the AM requests and gets (TaskWatch)

    def requested(self, group: int, count: int) -> None:
        resource, recording = self.work.groups[group].resource, self._recording
        positions = recording.containers.request(self.position, recording.now_ms, resource, count=count)
        self.waits.setdefault(self._progress.keys[group], KeyWaits()).add(positions)

    def allocated(self, group: int, container: Container) -> None:
        position = self._allocated(self._progress.keys[group], container)
        if position is not None:
            self._recording.containers.locate(position, self._locality(group, container.node_id.host))

    def surplus(self) -> None:
        self.surplus_containers += 1

    def ended(self, container_id: ContainerId, exit_status: int) -> None:
        position = self._live.get(container_id)
        if position is None:
            return
        containers = self._recording.containers
        end = End.PREEMPTED if exit_status == ContainerExitStatus.PREEMPTED else self._loss(container_id, position)
        containers.end(position, end, None if containers.has_ended(position) else self._recording.now_ms)
        self._forget(container_id)

    def _loss(self, container_id: ContainerId, position: int) -> End:
        """The end of a container that has not completed."""
        if position in self._preempted:
            return End.PREEMPTED
        am_position = self._am_positions.get(container_id.attempt_id)
        is_lost = self._recording.is_lost(position) or (
            am_position is not None and self._recording.is_lost(am_position)
        )
        return End.LOST if is_lost else End.FAILED

    def _forget(self, container_id: ContainerId) -> None:
        self._preempted.discard(self._live.pop(container_id))
        if not self._live:
            # An empty dict keeps the room of its former entries; this releases it.
            self._live.clear()

    def _requested_am(self, resource: Resource) -> None:
        recording = self._recording
        self.waits[AM_KEY].add(recording.containers.request(self.position, recording.now_ms, resource, is_am=True))

    def _allocated(self, key: RequestKey, container: Container) -> int | None:
        """Note that the oldest request of the key was satisfied; returns its position."""
        waits, recording = self.waits[key], self._recording
        position = waits.take_oldest()
        if position is None:
            return None
        requested_ms, scheduled_ms = recording.containers.requested_ms(position), recording.scheduled(container.id)
        allocated_ms = recording.now_ms if scheduled_ms is None else max(requested_ms, scheduled_ms)
        recording.containers.allocate(position, allocated_ms, container.resource, container.node_id.host)
        waits.over(position, allocated_ms - requested_ms)
        self._live[container.id] = position
        if key == AM_KEY:
            self._am_positions[container.id.attempt_id] = position
        return position

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
            self.memory_mb_s,
        )
