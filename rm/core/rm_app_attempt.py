"""RMAppAttempt: one try of an application, with its master's container (Hadoop's RMAppAttemptImpl).

The scheduler learns of it, allocates the master's container, the launcher starts it, the master registers, works and
unregisters; then its container ends. As with applications, every way out goes through FINAL_SAVING.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rm.core import rm_app_attempt_ends as ends
from rm.core import rm_app_attempt_steps as steps
from rm.core.diagnostics import BoundedText
from rm.core.finished_containers import FinishedContainers, Heard
from rm.core.lifecycle_events import FinishedContainer, RMAppAttemptEventType, RMNodeEventType
from rm.core.states import RMAppAttemptState
from rm.core.stored_state import ApplicationAttemptStateData
from yarn.containers import Container
from yarn.ids import ApplicationAttemptId, ContainerId
from yarn.lifecycle import Lifecycle, Machine, Row, ignored
from yarn.protocols.master import FinishApplicationMasterRequest
from yarn.states import ContainerExitStatus, FinalApplicationStatus

if TYPE_CHECKING:
    from rm.core.context import RMContext
    from rm.core.rm_app import RMApp

RECOVERED = "Attempt recovered after RM restart"

NOT_COUNTED = frozenset(
    {
        ContainerExitStatus.PREEMPTED,
        ContainerExitStatus.ABORTED,
        ContainerExitStatus.DISKS_FAILED,
        ContainerExitStatus.KILLED_BY_RESOURCEMANAGER,
    }
)
"""Ends of a master that are not its fault: they do not count against the maximum of attempts."""


class RMAppAttempt:
    """One attempt. `master` is its container once the scheduler has allocated it. Times are ms, 0 = not yet.

    `launch_diagnostics` is shown while there is nothing else to say; None once the master has registered.
    `recovered_final_state`: how it had ended before this ResourceManager began. `master_end`: that of its container.
    """

    def __init__(self, context: RMContext, app: RMApp, attempt_id: ApplicationAttemptId) -> None:
        self.context = context
        self.app = app
        self.attempt_id = attempt_id
        self.master: Container | None = None
        self.host = ends.UNAVAILABLE
        self.rpc_port = -1
        self.original_tracking_url = ends.UNAVAILABLE
        self.proxied_tracking_url = f"http://{context.settings.web_address}/proxy/{app}/"
        self.progress = 0.0
        self.is_preempted = False
        self.start_ms = 0
        self.finish_ms = 0
        self.final_status: FinalApplicationStatus | None = None
        self.master_exit_status: int = ContainerExitStatus.INVALID
        self.launch_diagnostics: str | None = None
        self.final_diagnostics = BoundedText(context.settings.attempt_diagnostics_chars_max)
        self.finished_containers = FinishedContainers()
        self.master_end: FinishedContainer | None = None
        self.no_master_will_ask = False
        self.last_word: FinishApplicationMasterRequest | None = None
        self.state_before_final_saving = RMAppAttemptState.NEW
        self.target = RMAppAttemptState.NEW
        self.after_saving: Callable[[], None] | None = None
        self.recovered_final_state: RMAppAttemptState | None = None
        self.machine: Machine[RMAppAttemptState, RMAppAttemptEventType] = Machine(LIFECYCLE)

    @property
    def state(self) -> RMAppAttemptState:
        return self.machine.state

    @property
    def tracking_url(self) -> str:
        """Where a person looks: an unmanaged master's own page, else the RM's way to it."""
        return self.original_tracking_url if self.app.submission.unmanaged_am else self.proxied_tracking_url

    @property
    def page(self) -> str:
        """The RM's page about its application, which is left when its master's is gone."""
        return f"http://{self.context.settings.web_address}/cluster/app/{self.app}"

    @property
    def diagnostics(self) -> str:
        """Why it ended; before that, what it waits for."""
        if not self.final_diagnostics and self.launch_diagnostics is not None:
            return self.launch_diagnostics
        return str(self.final_diagnostics)

    def __str__(self) -> str:
        return str(self.attempt_id)

    def story(self) -> str:
        """What a change of state says besides itself."""
        return str(self.final_diagnostics) or (f"master={self.master.id}" if self.master is not None else "")

    def is_master(self, container_id: ContainerId) -> bool:
        """True if the container is that of this attempt's master."""
        return self.master is not None and self.master.id == container_id

    def counts_as_failure(self) -> bool:
        """True unless the end was nobody's fault or is too long ago (shouldCountTowardsMaxAttemptRetry)."""
        interval_ms = self.app.submission.attempt_failures_validity_interval_ms
        if interval_ms > 0 and 0 < self.finish_ms < self.context.now_ms - interval_ms:
            return False
        return self.master_exit_status not in NOT_COUNTED

    def recover(self, data: ApplicationAttemptStateData) -> None:
        """Take what an earlier ResourceManager stored; RECOVER follows."""
        self.recovered_final_state = data.state
        self.master = data.master
        self.start_ms = data.start_ms
        self.finish_ms = data.finish_ms
        self.original_tracking_url = data.tracking_url or ends.UNAVAILABLE
        self.final_status = data.final_status
        self.master_exit_status = data.exit_status
        self.is_preempted = data.exit_status == ContainerExitStatus.PREEMPTED
        self.final_diagnostics.append(RECOVERED)
        self.final_diagnostics.append(data.diagnostics)
        app = self.app
        app.memory_mb_seconds = max(app.memory_mb_seconds, data.memory_mb_seconds)
        app.vcore_seconds = max(app.vcore_seconds, data.vcore_seconds)
        app.losses.memory_mb_seconds = max(app.losses.memory_mb_seconds, data.preempted_memory_mb_seconds)
        app.losses.vcore_seconds = max(app.losses.vcore_seconds, data.preempted_vcore_seconds)

    def let_nodes_forget(self, heard: Heard) -> None:
        """Have nodes drop containers whose end has been told, or that nobody will ask for."""
        for node_id, container_ids in heard:
            self.context.send_node(node_id, RMNodeEventType.FINISHED_CONTAINERS_PULLED_BY_AM, container_ids)


_S = RMAppAttemptState
_E = RMAppAttemptEventType
_SAVED = (_S.FINISHING, _S.FAILED, _S.KILLED, _S.FINISHED)

_ROWS: list[Row[RMAppAttemptState, RMAppAttemptEventType]] = [
    Row(_S.NEW, _E.START, _S.SUBMITTED, steps.start, "the application wants it"),
    Row(
        _S.NEW,
        _E.RECOVER,
        (_S.LAUNCHED, _S.FINISHED, _S.FAILED, _S.KILLED),
        steps.recovered,
        "an earlier ResourceManager stored it: over, or perhaps at work",
    ),
    Row(_S.NEW, _E.KILL, _S.FINAL_SAVING, ends.save_killed, "killed before it began"),
    Row(_S.NEW, _E.FAIL, _S.FINAL_SAVING, ends.save_failed, "failed by its user"),
    Row(_S.NEW, _E.REGISTERED, _S.FINAL_SAVING, ends.save_registered_too_early, "an unmanaged master did not wait"),
    Row(
        _S.SUBMITTED,
        _E.ATTEMPT_ADDED,
        (_S.LAUNCHED_UNMANAGED_SAVING, _S.SCHEDULED),
        steps.schedule,
        "the scheduler knows it: ask for the master's container, or wait for an unmanaged master",
    ),
    Row(_S.SUBMITTED, _E.KILL, _S.FINAL_SAVING, ends.save_killed, "killed before the scheduler answered"),
    Row(_S.SUBMITTED, _E.FAIL, _S.FINAL_SAVING, ends.save_failed, "failed by its user"),
    Row(_S.SUBMITTED, _E.REGISTERED, _S.FINAL_SAVING, ends.save_registered_too_early, "did not wait"),
    Row(
        _S.SCHEDULED,
        _E.CONTAINER_ALLOCATED,
        (_S.ALLOCATED_SAVING, _S.SCHEDULED),
        steps.fetch_master_container,
        "fetch it; gone again with its node: wait for the next",
    ),
    Row(_S.SCHEDULED, _E.KILL, _S.FINAL_SAVING, ends.save_killed, "killed while it waited"),
    Row(_S.SCHEDULED, _E.FAIL, _S.FINAL_SAVING, ends.save_failed, "failed by its user"),
    Row(_S.SCHEDULED, _E.CONTAINER_FINISHED, _S.FINAL_SAVING, ends.save_crashed_early, "lost before it was fetched"),
    Row(_S.ALLOCATED_SAVING, _E.ATTEMPT_NEW_SAVED, _S.ALLOCATED, steps.launch, "stored: have it started"),
    Row(_S.ALLOCATED_SAVING, _E.KILL, _S.FINAL_SAVING, ends.save_killed, "killed before it was started"),
    Row(_S.ALLOCATED_SAVING, _E.FAIL, _S.FINAL_SAVING, ends.save_failed, "failed by its user"),
    Row(_S.ALLOCATED_SAVING, _E.CONTAINER_FINISHED, _S.FINAL_SAVING, ends.save_crashed_early, "lost before it ran"),
    Row(_S.LAUNCHED_UNMANAGED_SAVING, _E.ATTEMPT_NEW_SAVED, _S.LAUNCHED, steps.launched, "stored: it may register"),
    Row(_S.LAUNCHED_UNMANAGED_SAVING, _E.REGISTERED, _S.FINAL_SAVING, ends.save_registered_too_early, "did not wait"),
    Row(_S.LAUNCHED_UNMANAGED_SAVING, _E.KILL, _S.FINAL_SAVING, ends.save_killed, "killed before it registered"),
    Row(_S.LAUNCHED_UNMANAGED_SAVING, _E.FAIL, _S.FINAL_SAVING, ends.save_failed, "failed by its user"),
    Row(_S.ALLOCATED, _E.LAUNCHED, _S.LAUNCHED, steps.launched, "the NM accepted its start"),
    Row(_S.ALLOCATED, _E.LAUNCH_FAILED, _S.FINAL_SAVING, ends.save_failed, "the NM refused its start"),
    Row(_S.ALLOCATED, _E.KILL, _S.FINAL_SAVING, ends.save_killed_with_container, "killed while it was started"),
    Row(_S.ALLOCATED, _E.FAIL, _S.FINAL_SAVING, ends.save_failed, "failed by its user"),
    Row(_S.ALLOCATED, _E.REGISTERED, _S.RUNNING, steps.registered_before_launched, "quicker than the launcher's word"),
    Row(_S.ALLOCATED, _E.CONTAINER_FINISHED, _S.FINAL_SAVING, ends.save_crashed_early, "it ended before it registered"),
    Row(_S.LAUNCHED, _E.REGISTERED, _S.RUNNING, steps.registered, "its master is at work"),
    Row(
        _S.LAUNCHED,
        _E.CONTAINER_FINISHED,
        (_S.LAUNCHED, _S.FINAL_SAVING),
        steps.container_finished_before_registering,
        "the master's: it crashed; another (kept): for the master to hear",
    ),
    Row(_S.LAUNCHED, _E.EXPIRE, _S.FINAL_SAVING, ends.save_expired, "it never registered"),
    Row(_S.LAUNCHED, _E.KILL, _S.FINAL_SAVING, ends.save_killed_for_good, "killed before it registered"),
    Row(_S.LAUNCHED, _E.FAIL, _S.FINAL_SAVING, ends.save_failed, "failed by its user"),
    *ignored(_S.RUNNING, (_E.LAUNCHED, _E.REGISTERED, _E.CONTAINER_ALLOCATED), "nothing new: its master works"),
    Row(_S.RUNNING, _E.STATUS_UPDATE, _S.RUNNING, steps.status_update, "the master's heartbeat"),
    Row(_S.RUNNING, _E.UNREGISTERED, _S.FINAL_SAVING, ends.save_unregistered, "the master said its last word"),
    Row(
        _S.RUNNING,
        _E.CONTAINER_FINISHED,
        (_S.RUNNING, _S.FINAL_SAVING),
        steps.container_finished_while_running,
        "the master's: it crashed; another: for the master to hear",
    ),
    Row(_S.RUNNING, _E.EXPIRE, _S.FINAL_SAVING, ends.save_expired, "its master fell silent"),
    Row(_S.RUNNING, _E.KILL, _S.FINAL_SAVING, ends.save_killed_for_good, "killed by its user or the RM"),
    Row(_S.RUNNING, _E.FAIL, _S.FINAL_SAVING, ends.save_failed, "failed by its user"),
    Row(_S.FINAL_SAVING, _E.ATTEMPT_UPDATE_SAVED, _SAVED, ends.final_saved, "stored: now everybody is told"),
    Row(_S.FINAL_SAVING, _E.CONTAINER_FINISHED, _S.FINAL_SAVING, steps.container_finished_while_saving, "it was quick"),
    Row(_S.FINAL_SAVING, _E.EXPIRE, _S.FINAL_SAVING, ends.expired_while_saving, "no need to wait for its container"),
    *ignored(
        _S.FINAL_SAVING,
        (
            _E.UNREGISTERED,
            _E.STATUS_UPDATE,
            _E.LAUNCHED,
            _E.LAUNCH_FAILED,
            _E.CONTAINER_ALLOCATED,
            _E.ATTEMPT_NEW_SAVED,
            _E.KILL,
            _E.FAIL,
            _E.ATTEMPT_ADDED,
        ),
        "its outcome is being stored",
    ),
    Row(_S.FAILED, _E.CONTAINER_FINISHED, _S.FAILED, steps.collect, "for the next attempt to hear"),
    *ignored(
        _S.FAILED,
        (
            _E.LAUNCHED,
            _E.LAUNCH_FAILED,
            _E.EXPIRE,
            _E.KILL,
            _E.FAIL,
            _E.REGISTERED,
            _E.UNREGISTERED,
            _E.STATUS_UPDATE,
            _E.CONTAINER_ALLOCATED,
        ),
        "it is over",
    ),
    Row(
        _S.FINISHING,
        _E.CONTAINER_FINISHED,
        (_S.FINISHING, _S.FINISHED),
        steps.container_finished_while_finishing,
        "the master's: now it is over",
    ),
    Row(_S.FINISHING, _E.EXPIRE, _S.FINISHED, ends.finish_without_container, "its container does not end by itself"),
    *ignored(
        _S.FINISHING,
        (_E.LAUNCHED, _E.UNREGISTERED, _E.STATUS_UPDATE, _E.CONTAINER_ALLOCATED, _E.KILL, _E.FAIL),
        "its outcome is stored",
    ),
    Row(_S.FINISHED, _E.CONTAINER_FINISHED, _S.FINISHED, steps.collect, "so that its node forgets it"),
    *ignored(
        _S.FINISHED,
        (_E.LAUNCHED, _E.EXPIRE, _E.UNREGISTERED, _E.CONTAINER_ALLOCATED, _E.KILL, _E.FAIL),
        "it is over",
    ),
    Row(_S.KILLED, _E.CONTAINER_FINISHED, _S.KILLED, steps.collect, "so that its node forgets it"),
    *ignored(
        _S.KILLED,
        (
            _E.ATTEMPT_ADDED,
            _E.LAUNCHED,
            _E.LAUNCH_FAILED,
            _E.EXPIRE,
            _E.REGISTERED,
            _E.CONTAINER_ALLOCATED,
            _E.UNREGISTERED,
            _E.KILL,
            _E.FAIL,
            _E.STATUS_UPDATE,
        ),
        "it is over",
    ),
]

LIFECYCLE: Lifecycle[RMAppAttemptState, RMAppAttemptEventType] = Lifecycle("RMAppAttempt", initial=_S.NEW, rows=_ROWS)
