"""Invariants of a ResourceManager, checked after each step if yarn.yarnling.check-invariants is set.

A violation ends the process, so that an event log ends with the step that caused it. Violations that Hadoop's own
decisions cause are logged as warnings, once for as long as they last.

I-12: a headroom is neither negative nor larger than the cluster. I-17: containers are placed on a node only in a step
that processes a heartbeat of that node, with asynchronous scheduling only in a walk. I-21: a reservation that fits is
filled when its node is visited; with asynchronous scheduling a walk is due as long as one fits. I-36: an application
has at most one attempt that is not over. I-38: an application gets no further attempt once its failures
have reached the maximum. I-42: an application's queue and priority change only when a client requests it. The other
numbers are in rm.core.protocol_invariants, and in rm.scheduler.invariants.state and event_invariants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rm.core.applications import RMApp
from rm.core.context import RMContext
from rm.core.effects import Effect
from rm.core.events import Event, MoveApplication, NodeHeartbeat, StateLoaded, UpdateApplicationPriority
from rm.core.protocol_invariants import ProtocolAudit
from rm.core.states import FINAL_APP_STATES, FINAL_ATTEMPT_STATES
from rm.scheduler.invariants.decisions import CommitWatch
from rm.scheduler.invariants.state import BROKEN_BY_HADOOP, violations
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.notices import Notice
from rm.scheduler.placement.walk import NodeWalks
from yarn.containers import ANY
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.machine import InvariantsBroken, Reply, Tick, Warn
from yarn.protocols.master import AllocateResponse

VISITS_IN_VAIN_MAX = 1
"""Visits of a node that may leave a reservation unfilled although it fits. One more visit violates I-21."""

UNCHANGED_HEARTBEATS_MAX = 20
"""Heartbeats of nodes in a row after which the scheduler's state is checked although it has counted no change."""

REMEMBERED_MAX = 1000
"""The number of remembered responses: the last one of each AM may be sent again. With more AMs than this, a response
that is sent again is checked a second time."""


AS_HADOOP_BREAKS_IT = "invariant broken, as Hadoop breaks it where"
"""The beginning of the warning of a violation that Hadoop's own decisions may cause."""


class RMAudit:
    """The checks of one ResourceManager after each step. Their cost grows with all that the core holds.

    The state of the scheduler is not checked after heartbeats of nodes in which it has counted no change.
    """

    def __init__(self, context: RMContext) -> None:
        self._scheduler = context.scheduler
        self._watch = CommitWatch(context.scheduler.context, context.scheduler.placement)
        self._steps = _StepAudit(context)
        self._protocol = ProtocolAudit(context)
        self._warned: frozenset[str] = frozenset()
        self._sent: dict[int, AllocateResponse] = {}
        self._change_count: int = -1
        self._unchanged = 0
        self._found: list[str] = []

    def look_at_notice(self, notice: Notice) -> None:
        """Check a notice of the scheduler. Called for every notice."""
        self._watch.look_at_notice(notice)

    def look_at_step(self, event: Event, effects: list[Effect]) -> list[Effect]:
        """Check the state after the step of `event`; returns the effects to add to those of the step."""
        booked_on = self._watch.take_booked_nodes()
        found = [
            *self._watch.take(),
            *self._faults_of_replies(effects),
            *self._steps.violations(event, effects, booked_on),
            *self._protocol.violations(event, effects, booked_on),
            *self._faults_of_scheduler(event),
        ]
        known = frozenset(_number(text) for text in found) & BROKEN_BY_HADOOP.keys()
        warnings: list[Effect] = [
            Warn(f"{AS_HADOOP_BREAKS_IT} {BROKEN_BY_HADOOP[_number(text)]}: {text}")
            for text in found
            if _number(text) in known - self._warned
        ]
        self._warned = known
        broken = tuple(text for text in found if _number(text) not in known)
        return [*warnings, InvariantsBroken(broken)] if broken else warnings

    def _faults_of_scheduler(self, event: Event) -> list[str]:
        """The violations in the scheduler's state; those found before if the step was a heartbeat without a change."""
        count = self._scheduler.context.change_count
        self._unchanged = self._unchanged + 1 if isinstance(event, NodeHeartbeat) else UNCHANGED_HEARTBEATS_MAX
        if count != self._change_count or self._unchanged >= UNCHANGED_HEARTBEATS_MAX:
            self._change_count, self._unchanged = count, 0
            self._found = violations(self._scheduler)
        return self._found

    def _faults_of_replies(self, effects: Iterable[Effect]) -> Iterator[str]:
        """I-12: a headroom is neither negative nor larger than the cluster.

        Responses that are sent again are not checked.
        """
        cluster = self._scheduler.cluster_resource.memory_mb
        for effect in effects:
            if isinstance(effect, Reply) and isinstance(effect.value, AllocateResponse) and self._is_new(effect.value):
                headroom = effect.value.headroom.memory_mb
                if not 0 <= headroom <= max(cluster, 0):
                    yield f"I-12: call {effect.call}: reported a headroom of {headroom} MB in a cluster of {cluster} MB"

    def _is_new(self, response: AllocateResponse) -> bool:
        """False if the same response object was sent before."""
        key = id(response)
        if self._sent.pop(key, None) is response:
            self._sent[key] = response
            return False
        self._sent[key] = response
        if len(self._sent) > REMEMBERED_MAX:
            del self._sent[next(iter(self._sent))]
        return True


def _number(violation: str) -> str:
    return violation.split(":")[0]


class _StepAudit:
    """Compares the state after each step with the state before it. The cost grows with the number of applications."""

    def __init__(self, context: RMContext) -> None:
        self._context = context
        self._placed: dict[ApplicationId, tuple[str, int]] = {}
        self._in_vain: dict[NodeId, tuple[ContainerId, int]] = {}
        self._recovered: frozenset[ApplicationAttemptId] = frozenset()

    def violations(self, event: Event, effects: Iterable[Effect], booked_on: Iterable[NodeId]) -> Iterator[str]:
        """The violations that the step of `event` caused. `booked_on`: nodes on which the step booked something."""
        if isinstance(event, StateLoaded):
            apps = self._context.apps.values()
            self._recovered = frozenset(attempt_id for app in apps for attempt_id in app.attempts)
        served = event.request.node_id if isinstance(event, NodeHeartbeat) else None
        walks = self._context.scheduler.walks
        for node_id in booked_on:
            if not isinstance(event, Tick) if walks.is_on else node_id != served:
                yield f"I-17: a container was booked on {node_id} in a step of {type(event).__name__}"
        if walks.is_on:
            yield from self._reservations_without_a_walk(walks)
        elif served is not None:
            yield from self._reservation_in_vain(served, effects)
        yield from self._attempts()
        yield from self._moved(event)

    def _reservation_in_vain(self, node_id: NodeId, effects: Iterable[Effect]) -> Iterator[str]:
        """I-21: a reservation that fits is filled.

        A heartbeat whose reply is sent again places nothing and is not counted.
        """
        context = self._context
        replies = [effect.value for effect in effects if isinstance(effect, Reply)]
        node, scheduled = context.nodes.get(node_id), context.scheduler.nodes.get(node_id)
        if node is None or scheduled is None or replies != [node.last_response]:
            return
        reserved = scheduled.reserved_container
        if reserved is None or not self._could_be_filled(scheduled):
            self._in_vain.pop(node_id, None)
            return
        last, count = self._in_vain.get(node_id, (reserved.id, 0))
        count = count + 1 if last == reserved.id else 1
        self._in_vain[node_id] = (reserved.id, count)
        if count > VISITS_IN_VAIN_MAX:
            room = f"{reserved.resource} fits in {scheduled.unallocated}"
            yield f"I-21: {reserved.id} waits on {node_id} after {count} visits, although {room}"

    def _reservations_without_a_walk(self, walks: NodeWalks) -> Iterator[str]:
        """I-21 with asynchronous scheduling: while a reservation fits, a walk is due, unless its node is silent."""
        if walks.due_ms is not None:
            return
        for node in self._context.scheduler.nodes.values():
            if node.reserved_container is not None and walks.may_visit(node) and self._could_be_filled(node):
                yield f"I-21: {node.reserved_container.id} waits on {node.node_id} where it fits, and no walk is due"

    def _could_be_filled(self, node: SchedulerNode) -> bool:
        """True if the attempt still requests the container, accepts this node, and what it requests now fits.

        Requests for the host, the rack and any host may have different sizes. The nearest is tried first, so each of
        them has to fit.
        """
        reserved, scheduler = node.reserved_container, self._context.scheduler
        assert reserved is not None
        application = scheduler.applications.get(reserved.id.application_id)
        attempt = application.current_attempt if application is not None else None
        if attempt is None or attempt.is_stopped or attempt.attempt_id != reserved.id.attempt_id:
            return False
        keyed = attempt.requests.at(reserved.key)
        row = keyed.rows.get(ANY) if keyed is not None else None
        if row is None or row.count <= 0 or not row.terms.relax_locality:
            return False
        if not node.is_running or not scheduler.context.may_place() or attempt.is_blacklisted(node.name, node.rack):
            return False
        rows = [keyed.rows.get(name) for name in (node.name, node.rack, ANY)] if keyed is not None else []
        sizes = [
            reserved.resource,
            *(found.terms.capability for found in rows if found is not None and found.count > 0),
        ]
        return all(scheduler.context.calculator.fits_in(size, node.unallocated) for size in sizes)

    def _attempts(self) -> Iterator[str]:
        for app in self._context.apps.values():
            # The first attempt is alone, and has no failures before it.
            if len(app.attempts) < 2 or app.state in FINAL_APP_STATES or app.submission.unmanaged_am:
                continue
            living = [attempt for attempt in app.attempts.values() if attempt.state not in FINAL_ATTEMPT_STATES]
            if len(living) > 1:
                yield f"I-36: {app} has {len(living)} attempts that are not over"
            # The maximum may have been lowered before the restart that an attempt survived.
            if living and living[0].attempt_id not in self._recovered and _failures_before(app) >= app.max_attempts:
                yield f"I-38: {app} has another attempt after {_failures_before(app)} failures of {app.max_attempts}"

    def _moved(self, event: Event) -> Iterator[str]:
        """I-42: queue and priority are as after the last step, unless the event is a call that changes them."""
        changed = event.application_id if isinstance(event, MoveApplication | UpdateApplicationPriority) else None
        placed, last = {app_id: (app.queue, app.priority) for app_id, app in self._context.apps.items()}, self._placed
        if placed == last:
            return
        for app_id, now in placed.items():
            before = last.get(app_id, now)
            if now != before and app_id != changed:
                yield f"I-42: {app_id}: queue and priority were {before} and are {now} after {type(event).__name__}"
        self._placed = placed


def _failures_before(app: RMApp) -> int:
    """The failures that counted when the current attempt started.

    0 if there is a validity interval, which ignores older failures.
    """
    if app.submission.attempt_failures_validity_interval_ms > 0:
        return 0
    return sum(
        attempt.state in FINAL_ATTEMPT_STATES and attempt.counts_as_failure() for attempt in app.attempts.values()
    )
