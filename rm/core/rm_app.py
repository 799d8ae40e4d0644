"""RMApp: an application, from its submission to its end (Hadoop's RMAppImpl).

An application owns attempts and lives as long as one of them does or may be made. What ends it is written to the store
before anybody is told, so every way out goes through FINAL_SAVING, which remembers where it leads (`target`) and what
is still to be done there (`after_saving`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rm.core import rm_app_steps as steps
from rm.core.am_blacklist import MasterBlacklist
from rm.core.lifecycle_events import RMAppEventType
from rm.core.rm_app_attempt import RMAppAttempt
from rm.core.states import RMAppState
from rm.scheduler.model.access_control_list import AccessControlList
from rm.scheduler.model.usage import Losses
from yarn.applications import ApplicationSubmissionContext
from yarn.asks import ResourceRequest
from yarn.ids import ApplicationAttemptId, ApplicationId, NodeId
from yarn.lifecycle import Lifecycle, Machine, Row, ignored
from yarn.resource import Resource
from yarn.states import NodeUpdateType

if TYPE_CHECKING:
    from rm.core.context import RMContext
    from rm.core.rm_node import RMNode


class RMApp:
    """One application. Times are ms of the core's clock, 0 = not yet.

    `placed`: where placement rules put it, if any did.
    `ran_nodes`: nodes that must forget it in the end, in the order it came to them. `updated_nodes`: what the AM is
    told of nodes with its next allocate. `*_seconds`: what its ended containers have used. `lifetime_s`: what the queue
    makes of the wish; 0 = no end. `lifetime_ends_ms`: None = never; it stays when the application is over.
    `am_blacklist`: hosts that its masters failed on, None where nobody minds. `recovered_final_state`: how it had ended
    before this ResourceManager began.
    """

    def __init__(
        self,
        context: RMContext,
        submission: ApplicationSubmissionContext,
        *,
        user: str,
        queue: str,
        placed: str | None,
        am_requests: tuple[ResourceRequest, ...],
        priority: int,
    ) -> None:
        self.context = context
        self.submission = submission
        self.application_id: ApplicationId = submission.application_id
        self.user = user
        self.queue = queue
        self.placed = placed
        self.am_requests = am_requests
        self.priority = priority
        self.max_attempts = _max_attempts(context, submission)
        self.am_blacklist = _am_blacklist(context, submission)
        self.acls = {
            access: AccessControlList.parse(acl) for access, acl in submission.am_container.application_acls.items()
        }
        self.submit_ms = context.now_ms
        self.lifetime_s = 0
        self.lifetime_ends_ms: int | None = None
        self.launch_ms = 0
        self.finish_ms = 0
        self.attempts: dict[ApplicationAttemptId, RMAppAttempt] = {}
        self.current_attempt: RMAppAttempt | None = None
        self.ran_nodes: dict[NodeId, None] = {}
        self.updated_nodes: dict[NodeId, tuple[RMNode, NodeUpdateType]] = {}
        self.diagnostics = ""
        self.state_before_killing = RMAppState.NEW
        self.state_before_final_saving = RMAppState.NEW
        self.target = RMAppState.NEW
        self.after_saving: Callable[[], None] | None = None
        self.stored_finish_ms = 0
        self.recovered_final_state: RMAppState | None = None
        self.memory_mb_seconds = 0
        self.vcore_seconds = 0
        self.losses = Losses()
        self.preempted_containers = 0
        self.machine: Machine[RMAppState, RMAppEventType] = Machine(LIFECYCLE)

    @property
    def state(self) -> RMAppState:
        return self.machine.state

    def __str__(self) -> str:
        return str(self.application_id)

    def story(self) -> str:
        """What a change of state says besides itself: where it runs, or why it ended."""
        return self.diagnostics or f"queue={self.queue} user={self.user}"

    def end_lifetime_at(self, moment_ms: int) -> None:
        """Have it killed then, if it still lives."""
        self.lifetime_ends_ms = moment_ms
        self.context.lifetimes.register(self.application_id, moment_ms)

    def failed_attempts(self) -> int:
        """Attempts whose failure counts against the maximum."""
        return sum(attempt.counts_as_failure() for attempt in self.attempts.values())

    def account(self, resource: Resource, lifetime_ms: int) -> None:
        """A container of this size ended: whole seconds of it, each container cut by itself (RMContainerImpl)."""
        self.memory_mb_seconds += resource.memory_mb * lifetime_ms // 1000
        self.vcore_seconds += resource.vcores * lifetime_ms // 1000

    def account_loss(self, resource: Resource, lifetime_ms: int, *, is_master: bool) -> None:
        """A container of this size was preempted; a master counts for the current attempt, once."""
        self.losses.add(resource, lifetime_ms)
        if not is_master:
            self.preempted_containers += 1
        elif self.current_attempt is not None:
            self.current_attempt.is_preempted = True

    @property
    def preempted_masters(self) -> int:
        """Attempts that lost their master so (numAMContainerPreempted)."""
        return sum(attempt.is_preempted for attempt in self.attempts.values())

    def pull_node_updates(self) -> list[tuple[RMNode, NodeUpdateType]]:
        """Changes of nodes since the last pull; they are told once."""
        updates = list(self.updated_nodes.values())
        self.updated_nodes.clear()
        return updates


def _max_attempts(context: RMContext, submission: ApplicationSubmissionContext) -> int:
    """The RM's number unless the client names one; never more than the global limit (RMAppImpl)."""
    if submission.max_app_attempts <= 0:
        return context.settings.max_attempts
    return min(submission.max_app_attempts, context.settings.global_max_attempts)


def _am_blacklist(context: RMContext, submission: ApplicationSubmissionContext) -> MasterBlacklist | None:
    threshold = context.settings.am_blacklist_threshold
    return None if threshold is None or submission.unmanaged_am else MasterBlacklist(threshold)


_S = RMAppState
_E = RMAppEventType

_ROWS: list[Row[RMAppState, RMAppEventType]] = [
    Row(_S.NEW, _E.NODE_UPDATE, _S.NEW, steps.note_node_update, "the AM will hear of it"),
    Row(_S.NEW, _E.START, _S.NEW_SAVING, steps.store, "submitted: stored before the scheduler knows it"),
    Row(
        _S.NEW,
        _E.RECOVER,
        (_S.SUBMITTED, _S.ACCEPTED, _S.FINISHED, _S.FAILED, _S.KILLED),
        steps.recover,
        "an earlier ResourceManager stored it",
    ),
    Row(_S.NEW, _E.KILL, _S.KILLED, steps.killed_at_once, "nothing of it is stored yet"),
    Row(_S.NEW, _E.APP_REJECTED, _S.FINAL_SAVING, steps.save_rejected, "refused before it was stored"),
    Row(_S.NEW_SAVING, _E.NODE_UPDATE, _S.NEW_SAVING, steps.note_node_update, "the AM will hear of it"),
    Row(_S.NEW_SAVING, _E.APP_NEW_SAVED, _S.SUBMITTED, steps.add_to_scheduler, "stored"),
    Row(_S.NEW_SAVING, _E.APP_SAVE_FAILED, _S.FAILED, steps.save_failed, "the store cannot take it"),
    Row(_S.NEW_SAVING, _E.KILL, _S.FINAL_SAVING, steps.save_killed, "killed before the scheduler knew it"),
    Row(_S.NEW_SAVING, _E.APP_REJECTED, _S.FINAL_SAVING, steps.save_rejected, "refused before the scheduler knew it"),
    Row(_S.SUBMITTED, _E.NODE_UPDATE, _S.SUBMITTED, steps.note_node_update, "the AM will hear of it"),
    Row(_S.SUBMITTED, _E.APP_REJECTED, _S.FINAL_SAVING, steps.save_rejected, "no queue takes it"),
    Row(_S.SUBMITTED, _E.APP_ACCEPTED, _S.ACCEPTED, steps.start_first_attempt, "its queue took it"),
    Row(_S.SUBMITTED, _E.KILL, _S.FINAL_SAVING, steps.save_killed, "killed before a queue took it"),
    Row(_S.ACCEPTED, _E.NODE_UPDATE, _S.ACCEPTED, steps.note_node_update, "the AM will hear of it"),
    Row(_S.ACCEPTED, _E.ATTEMPT_LAUNCHED, _S.ACCEPTED, steps.note_launch, "the first launch is the application's"),
    Row(_S.ACCEPTED, _E.ATTEMPT_REGISTERED, _S.RUNNING, None, "its master is at work"),
    Row(_S.ACCEPTED, _E.ATTEMPT_FAILED, (_S.ACCEPTED, _S.FINAL_SAVING), steps.attempt_failed, "try again, or give up"),
    Row(_S.ACCEPTED, _E.ATTEMPT_FINISHED, _S.FINAL_SAVING, steps.save_finished, "its end overtook its registering"),
    Row(_S.ACCEPTED, _E.ATTEMPT_KILLED, _S.FINAL_SAVING, steps.save_killed, "its attempt was killed"),
    Row(_S.ACCEPTED, _E.KILL, _S.KILLING, steps.kill, "the attempt ends first"),
    Row(
        _S.ACCEPTED,
        _E.APP_RUNNING_ON_NODE,
        _S.ACCEPTED,
        steps.note_running_on_node,
        "that node must forget it in the end",
    ),
    Row(_S.RUNNING, _E.NODE_UPDATE, _S.RUNNING, steps.note_node_update, "the AM will hear of it"),
    Row(_S.RUNNING, _E.ATTEMPT_UNREGISTERED, _S.FINAL_SAVING, steps.save_finishing, "the master said its last word"),
    Row(_S.RUNNING, _E.ATTEMPT_FINISHED, _S.FINISHED, steps.finished, "an unmanaged master needs no container to end"),
    Row(_S.RUNNING, _E.ATTEMPT_FAILED, (_S.ACCEPTED, _S.FINAL_SAVING), steps.attempt_failed, "try again, or give up"),
    Row(_S.RUNNING, _E.KILL, _S.KILLING, steps.kill, "the attempt ends first"),
    Row(
        _S.RUNNING,
        _E.APP_RUNNING_ON_NODE,
        _S.RUNNING,
        steps.note_running_on_node,
        "that node must forget it in the end",
    ),
    Row(
        _S.FINAL_SAVING,
        _E.APP_UPDATE_SAVED,
        (_S.FINISHING, _S.FAILED, _S.KILLED, _S.FINISHED),
        steps.final_saved,
        "stored: now everybody is told",
    ),
    Row(
        _S.FINAL_SAVING,
        _E.ATTEMPT_FINISHED,
        _S.FINAL_SAVING,
        steps.attempt_finished_while_saving,
        "the master's container was quick",
    ),
    Row(_S.FINAL_SAVING, _E.APP_RUNNING_ON_NODE, _S.FINAL_SAVING, steps.note_running_on_node, "to be forgotten there"),
    *ignored(_S.FINAL_SAVING, (_E.NODE_UPDATE, _E.KILL, _E.APP_NEW_SAVED), "its outcome is being stored"),
    Row(_S.FINISHING, _E.ATTEMPT_FINISHED, _S.FINISHED, steps.finished, "the master's container ended"),
    Row(_S.FINISHING, _E.APP_RUNNING_ON_NODE, _S.FINISHING, steps.note_running_on_node, "to be forgotten there"),
    *ignored(_S.FINISHING, (_E.NODE_UPDATE, _E.KILL), "its outcome is stored"),
    Row(_S.KILLING, _E.APP_RUNNING_ON_NODE, _S.KILLING, steps.note_running_on_node, "to be forgotten there"),
    Row(_S.KILLING, _E.ATTEMPT_KILLED, _S.FINAL_SAVING, steps.save_killed, "the attempt is gone"),
    Row(_S.KILLING, _E.ATTEMPT_UNREGISTERED, _S.FINAL_SAVING, steps.save_finishing, "the master won the race"),
    Row(_S.KILLING, _E.ATTEMPT_FINISHED, _S.FINISHED, steps.finished, "an unmanaged master won the race"),
    Row(
        _S.KILLING, _E.ATTEMPT_FAILED, _S.FINAL_SAVING, steps.attempt_failed, "no new attempt for what is being killed"
    ),
    *ignored(
        _S.KILLING,
        (_E.NODE_UPDATE, _E.ATTEMPT_REGISTERED, _E.APP_UPDATE_SAVED, _E.KILL),
        "the attempt is already on its way out",
    ),
    Row(_S.FINISHED, _E.APP_RUNNING_ON_NODE, _S.FINISHED, steps.note_running_on_node, "that node is told at once"),
    *ignored(_S.FINISHED, (_E.NODE_UPDATE, _E.ATTEMPT_UNREGISTERED, _E.ATTEMPT_FINISHED, _E.KILL), "it is over"),
    Row(_S.FAILED, _E.APP_RUNNING_ON_NODE, _S.FAILED, steps.note_running_on_node, "that node is told at once"),
    *ignored(_S.FAILED, (_E.KILL, _E.NODE_UPDATE), "it is over"),
    Row(_S.KILLED, _E.APP_RUNNING_ON_NODE, _S.KILLED, steps.note_running_on_node, "that node is told at once"),
    *ignored(
        _S.KILLED,
        (
            _E.APP_ACCEPTED,
            _E.APP_REJECTED,
            _E.KILL,
            _E.ATTEMPT_FINISHED,
            _E.ATTEMPT_FAILED,
            _E.NODE_UPDATE,
            _E.START,
        ),
        "it is over",
    ),
]

LIFECYCLE: Lifecycle[RMAppState, RMAppEventType] = Lifecycle("RMApp", initial=RMAppState.NEW, rows=_ROWS)
