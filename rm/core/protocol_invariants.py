"""Invariants of the ResourceManager's replies and decisions, each checked at the step that could violate it.

I-25, I-26: a call that is sent again gets the same reply, and each reply has the id that follows its request's. I-30:
an end is reported once, and its node keeps it until the AM has acknowledged it. I-38: an application fails only after
as many failures of its own as it may have. I-39: an attempt learns nothing of containers of other ones, unless they are
kept. I-45: a container that a node reports after a restart is not ignored. I-48: what is reported is stored before.
I-67: an AM gets an NM token with the first container on a node, and again after the node has registered again. The
others are in rm.core.timing_invariants and rm.core.booking_invariants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rm.core.applications import RMApp
from rm.core.booking_invariants import BookingAudit, SizeAudit
from rm.core.context import RMContext
from rm.core.effects import Effect, LaunchAM
from rm.core.events import (
    Allocate,
    ApplicationSaved,
    AttemptSaved,
    Event,
    NodeHeartbeat,
    RegisterApplicationMaster,
    RegisterNode,
)
from rm.core.rm_node import RMNode
from rm.core.service_context import next_response_id
from rm.core.states import FINAL_ATTEMPT_STATES, STORED_APP_STATES, RMAppAttemptState, RMAppState
from rm.core.timing_invariants import DecommissioningAudit, LivenessAudit
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.machine import Reply, StateChanged
from yarn.protocols.master import AllocateResponse, NMToken, RegisterApplicationMasterResponse
from yarn.protocols.tracker import NodeHeartbeatResponse, RegisterNodeManagerResponse
from yarn.states import ContainerExitStatus, ContainerState, NodeAction, NodeState

_NOT_ITS_FAULT = frozenset(
    {
        ContainerExitStatus.ABORTED,
        ContainerExitStatus.DISKS_FAILED,
        ContainerExitStatus.PREEMPTED,
        ContainerExitStatus.KILLED_BY_RESOURCEMANAGER,
    }
)

_SAVED = {
    (RMAppState.NEW_SAVING.name, RMAppState.SUBMITTED.name),
    *((RMAppState.FINAL_SAVING.name, state.name) for state in STORED_APP_STATES),
}
"""Changes of an application's state (from, to) that wait for the store."""

_TAKES_REPORTS = (NodeState.RUNNING, NodeState.UNHEALTHY)
"""The states of a node that has just registered and may stay."""

_HAS_AM = (RMAppAttemptState.LAUNCHED, RMAppAttemptState.RUNNING)

_DECIDED_BY_RM = frozenset({ContainerExitStatus.ABORTED, ContainerExitStatus.PREEMPTED})


class ProtocolAudit:
    """Checks each step against replies and state of earlier ones. The cost grows with the size of the state."""

    def __init__(self, context: RMContext) -> None:
        self._context = context
        self._audits = (
            HeartbeatAudit(context),
            AllocateAudit(context),
            LivenessAudit(context),
            DecommissioningAudit(context),
            BookingAudit(context),
            SizeAudit(context),
        )

    def violations(self, event: Event, effects: Iterable[Effect], booked_on: Iterable[NodeId]) -> Iterator[str]:
        """The violations that the step of `event` caused. `booked_on`: nodes on which the step booked something."""
        effects, booked_on = list(effects), list(booked_on)
        for audit in self._audits:
            yield from audit.violations(event, effects, booked_on)
        if self._context.settings.recovery_enabled:
            yield from _stored(event, effects)
        yield from self._failures(effects)

    def _failures(self, effects: Iterable[Effect]) -> Iterator[str]:
        """I-38: recount the failed attempts of an application that failed because of them."""
        for effect in effects:
            if isinstance(effect, StateChanged) and effect.kind == "RMApp" and effect.target == RMAppState.FAILED.name:
                app = self._context.apps.get(ApplicationId.parse(effect.subject))
                if app is not None and effect.source == RMAppState.FINAL_SAVING.name:
                    yield from _too_few_failures(app)


def _too_few_failures(app: RMApp) -> Iterator[str]:
    submission = app.submission
    if submission.unmanaged_am or submission.attempt_failures_validity_interval_ms > 0 or app.max_attempts <= 1:
        return
    failed = [attempt for attempt in app.attempts.values() if attempt.state is RMAppAttemptState.FAILED]
    own = sum(attempt.am_exit_status not in _NOT_ITS_FAULT for attempt in failed)
    if failed and own < app.max_attempts:
        yield f"I-38: {app} failed after {own} failures of its own, and may have {app.max_attempts}"


def _stored(event: Event, effects: Iterable[Effect]) -> Iterator[str]:
    """I-48: an AM starts, and an application is accepted or ends, only in a step that reports it as stored."""
    for effect in effects:
        if isinstance(effect, LaunchAM) and not isinstance(event, AttemptSaved):
            yield f"I-48: the AM of {effect.attempt_id} starts in a step of {type(event).__name__}"
        if not isinstance(effect, StateChanged) or effect.kind != "RMApp":
            continue
        if (effect.source, effect.target) in _SAVED and not isinstance(event, ApplicationSaved):
            yield f"I-48: {effect.subject} is {effect.target} in a step of {type(event).__name__}"


class HeartbeatAudit:
    """Checks replies to nodes: I-25 and I-45, and of I-30 that nodes keep ends until they are acknowledged."""

    def __init__(self, context: RMContext) -> None:
        self._context = context
        self._last: dict[NodeId, tuple[int, NodeHeartbeatResponse]] = {}
        self._registered: dict[NodeId, RMNode | None] = {}
        self._of_former_nm: dict[NodeId, set[ContainerId]] = {}

    def violations(self, event: Event, effects: list[Effect], booked_on: list[NodeId]) -> Iterator[str]:
        if isinstance(event, RegisterNode):
            self._last.pop(event.request.node_id, None)
            if event.request.node_id not in self._registered:
                yield from self._ignored(event)
            yield from self._ignored_masters(event)
            self._note_former_nm(event)
        if not isinstance(event, NodeHeartbeat):
            return
        node_id, request_id = event.request.node_id, event.request.response_id
        for effect in effects:
            if isinstance(effect, Reply) and isinstance(effect.value, NodeHeartbeatResponse):
                reply = effect.value
                if reply.action is not NodeAction.NORMAL:
                    self._last.pop(node_id, None)
                    continue
                if reply.response_id != next_response_id(request_id):
                    yield f"I-25: {node_id}: heartbeat {request_id} got reply {reply.response_id}"
                last = self._last.get(node_id)
                if last is not None and last[0] == request_id and last[1] is not reply:
                    yield f"I-25: {node_id}: heartbeat {request_id} was sent again, and handled again"
                self._last[node_id] = request_id, reply
                yield from self._forgotten(node_id, reply)

    def _ignored(self, event: RegisterNode) -> Iterator[str]:
        """I-45: a container that was running before a restart of the ResourceManager is recovered, or ended."""
        node = self._context.nodes.get(event.request.node_id)
        if node is None or not self._context.settings.work_preserving or node.state not in _TAKES_REPORTS:
            return
        for report in event.request.containers:
            if report.state is ContainerState.RUNNING and self._is_ignored(report.container_id, node):
                yield f"I-45: {report.container_id} runs on {node} and was neither taken up nor ended"

    def _ignored_masters(self, event: RegisterNode) -> Iterator[str]:
        """I-45: without work-preserving recovery a node has ended its containers, and reports it for AMs."""
        if self._context.settings.work_preserving or event.request.node_id not in self._context.nodes:
            return
        for report in event.request.containers:
            attempt = self._context.attempt(report.container_id.attempt_id)
            am = attempt.am_container if attempt is not None else None
            if attempt is None or am is None or (am.id, am.node_id) != (report.container_id, event.request.node_id):
                continue
            if report.state is ContainerState.COMPLETE and attempt.state in _HAS_AM:
                yield f"I-45: {am.id}, an AM, has ended on {am.node_id}, and its attempt is {attempt.state.name}"

    def _is_ignored(self, container_id: ContainerId, node: RMNode) -> bool:
        app = self._context.apps.get(container_id.application_id)
        attempt = app.current_attempt if app is not None else None
        if attempt is None or attempt.state in FINAL_ATTEMPT_STATES:
            return False
        is_taken_up = self._context.scheduler.container(container_id) is not None
        is_ended = attempt.finished_containers.unacknowledged(container_id) is not None
        return not (is_taken_up or is_ended or container_id in node.to_clean_up)

    def _note_former_nm(self, event: RegisterNode) -> None:
        """Note the ended containers that a node does not have, because it is new to the RM or has no applications."""
        node_id = event.request.node_id
        node, before = self._context.nodes.get(node_id), self._registered.get(node_id)
        self._registered[node_id] = node
        if node is not before or not event.request.running_applications:
            attempts = (app.current_attempt for app in self._context.apps.values())
            self._of_former_nm[node_id] = {
                container_id
                for attempt in attempts
                if attempt is not None
                for container_id in attempt.finished_containers.unacknowledged_on(node_id)
            }

    def _forgotten(self, node_id: NodeId, reply: NodeHeartbeatResponse) -> Iterator[str]:
        """I-30: a node keeps the end of a container until its AM has acknowledged it.

        Not checked: ends that the ResourceManager decided, other nodes, and another NM at the same port.
        """
        former = self._of_former_nm.get(node_id, ())
        for container_id in reply.containers_to_forget:
            if container_id in former:
                continue
            app = self._context.apps.get(container_id.application_id)
            attempt = app.current_attempt if app is not None else None
            if attempt is None or attempt.state in FINAL_ATTEMPT_STATES:
                continue
            ended_on, status = attempt.finished_containers.unacknowledged(container_id) or (None, None)
            if ended_on == node_id and status is not None and status.exit_status not in _DECIDED_BY_RM:
                yield f"I-30: the node forgets {container_id}, whose end {attempt} has not acknowledged"


class AllocateAudit:
    """Checks replies to AMs: I-26, I-30, I-39 and I-67."""

    def __init__(self, context: RMContext) -> None:
        self._context = context
        self._last: dict[ApplicationAttemptId, tuple[int, AllocateResponse]] = {}
        self._reported: dict[ApplicationAttemptId, set[ContainerId]] = {}
        self._tokens: dict[ApplicationAttemptId, set[NodeId]] = {}
        """The nodes for which an AM has an NM token that is not older than the node's registration."""

    def violations(self, event: Event, effects: list[Effect], booked_on: list[NodeId]) -> Iterator[str]:
        if isinstance(event, RegisterNode):
            self._note_registration(event, effects)
            # AbstractYarnScheduler.recoverContainersOnNode recovers all containers a new node reports, even ended ones.
            for reported in self._reported.values():
                reported.difference_update(container.container_id for container in event.request.containers)
        for effect in effects:
            if not isinstance(effect, Reply):
                continue
            if isinstance(event, RegisterApplicationMaster):
                self._last.pop(event.attempt_id, None)
                if isinstance(effect.value, RegisterApplicationMasterResponse):
                    self._note_tokens(event.attempt_id, effect.value.nm_tokens)
            elif isinstance(event, Allocate) and isinstance(effect.value, AllocateResponse):
                yield from self._of_reply(event.attempt_id, event.request.response_id, effect.value)

    def _of_reply(self, attempt_id: ApplicationAttemptId, request_id: int, reply: AllocateResponse) -> Iterator[str]:
        attempt = self._context.attempt(attempt_id)
        if attempt is None or attempt.state in FINAL_ATTEMPT_STATES:
            yield f"I-26: {attempt_id} has ended, and its AM got a reply"
        if reply.response_id != next_response_id(request_id):
            yield f"I-26: {attempt_id}: allocate {request_id} got reply {reply.response_id}"
        last = self._last.get(attempt_id)
        if last is not None and last[0] == request_id:
            if last[1] is not reply:
                yield f"I-26: {attempt_id}: allocate {request_id} was sent again, and handled again"
            return
        self._last[attempt_id] = request_id, reply
        keeps = attempt is not None and attempt.app.submission.keep_containers_across_attempts
        yield from self._of_containers(attempt_id, reply, keeps=keeps)
        self._drop_ended()

    def _of_containers(
        self, attempt_id: ApplicationAttemptId, reply: AllocateResponse, *, keeps: bool
    ) -> Iterator[str]:
        reported = self._reported.setdefault(attempt_id, set())
        for status in reply.completed:
            container_id = status.container_id
            if container_id in reported:
                yield f"I-30: the end of {container_id} is reported to {attempt_id} again"
            reported.add(container_id)
            if not keeps and container_id.attempt_id != attempt_id:
                yield f"I-39: {attempt_id} learns of the end of {container_id}"
        for container in reply.allocated:
            if container.id.attempt_id != attempt_id:
                yield f"I-39: {attempt_id} gets {container.id}"
        known = self._note_tokens(attempt_id, reply.nm_tokens)
        for container in reply.allocated:
            if container.node_id not in known:
                yield f"I-67: {attempt_id} gets {container.id} without a new NM token for {container.node_id}"

    def _note_registration(self, event: RegisterNode, effects: list[Effect]) -> None:
        """Note that an accepted node needs new NM tokens; a refused registration changes nothing."""
        replies = (effect.value for effect in effects if isinstance(effect, Reply))
        if any(
            isinstance(reply, RegisterNodeManagerResponse) and reply.action is NodeAction.NORMAL for reply in replies
        ):
            for nodes in self._tokens.values():
                nodes.discard(event.request.node_id)

    def _note_tokens(self, attempt_id: ApplicationAttemptId, tokens: tuple[NMToken, ...]) -> set[NodeId]:
        known = self._tokens.setdefault(attempt_id, set())
        known.update(token.node_id for token in tokens)
        return known

    def _drop_ended(self) -> None:
        for attempt_id in [known for known in self._last if known not in self._context.sessions]:
            del self._last[attempt_id]
            self._reported.pop(attempt_id, None)
            self._tokens.pop(attempt_id, None)
