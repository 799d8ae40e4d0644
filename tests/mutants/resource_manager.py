"""Planted bugs of the ResourceManager's core and shell: protocols, liveness, attempts, recovery, storage, tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rm.core import durability, rm_app_attempt_ends, rm_app_attempt_lifecycle, rm_app_lifecycle, rm_node_lifecycle
from rm.core.application_masters import ApplicationMasterService
from rm.core.applications import FinishedContainers, RMApp, RMAppAttempt
from rm.core.decommissioning import DecommissioningNodesWatcher
from rm.core.durability import DividedStep
from rm.core.effects import Effect, LaunchAM, StoreEffect
from rm.core.lifecycle_events import AttemptFailed
from rm.core.resource_manager import ResourceManagerCore
from rm.core.resource_tracker import ResourceTrackerService
from rm.core.scheduler_bridge import SchedulerBridge
from rm.core.state_store import PersistentStateStore
from rm.core.states import RMAppAttemptState, RMAppState
from rm.core.stored_state import Saving
from tests.mutants.bug import always, bug, drop, instead, never, skip_all
from tests.mutants.tokens import TOKENS
from yarn.ids import ApplicationAttemptId
from yarnling.simulation.state_store import SimulatedStoreWriter

AFTER_RESTARTS = ("kill-rm", "random")

Original = Callable[..., Any]


def _forgetting_at_once(
    original: Original, service: ApplicationMasterService, attempt_id: ApplicationAttemptId, *rest: Any
) -> Any:
    _, attempt = service._known(attempt_id)
    ended = attempt.finished_containers._just_finished
    attempt.let_nodes_forget([(node_id, tuple(one.container_id for one in some)) for node_id, some in ended.items()])
    return original(service, attempt_id, *rest)


PROTOCOL = (
    bug(
        "heartbeat-handled-twice",
        "A heartbeat that is sent again after a lost reply is handled again.",
        never(ResourceTrackerService.heartbeat, "next_response_id"),
        never(
            ResourceTrackerService.heartbeat,
            "response_id",
            "!=",
            when="next_response_id(request.response_id) == last.response_id",
        ),
        plans=("lost-replies", "partition-replies"),
    ),
    bug(
        "allocate-handled-twice",
        "An allocate that is sent again after a lost reply is handled again.",
        never(ApplicationMasterService.allocate, "next_response_id"),
        never(
            ApplicationMasterService.allocate,
            "response_id",
            "!=",
            when="next_response_id(request.response_id) == session.response_id",
        ),
        plans=("lost-replies", "random"),
    ),
    bug(
        "first-heartbeat-handled-twice",
        "The first heartbeat after a registration is handled again if it is sent again after a lost reply.",
        never(ResourceTrackerService.heartbeat, "next_response_id", when="last.response_id == 1"),
        never(ResourceTrackerService.heartbeat, "response_id", "!=", when="last.response_id <= 1"),
        plans=("lost-first-replies", "random"),
    ),
    bug(
        "any-heartbeat-accepted",
        "A heartbeat is handled whatever response id it has, such as one of the node's earlier NodeManager.",
        never(ResourceTrackerService.heartbeat, "response_id", "!="),
    ),
    bug(
        "any-allocate-accepted",
        "An allocate is handled whatever response id it has.",
        never(ApplicationMasterService.allocate, "response_id", "!="),
    ),
    bug(
        "am-of-an-ended-attempt-accepted",
        "An attempt that has ended may go on to call allocate.",
        drop(rm_app_attempt_ends.end, "sessions"),
        plans=("pause-master", "random"),
    ),
    bug(
        "release-of-others-containers",
        "An AM may release containers of another attempt or application.",
        never(ApplicationMasterService._checked, "keep_containers_across_attempts"),
    ),
    bug(
        "end-delivered-twice",
        "The end of a container is reported to its AM in every reply.",
        drop(FinishedContainers.pull, "clear"),
    ),
    bug(
        "end-forgotten-before-the-am-has-it",
        "A node forgets an ended container before its AM has acknowledged the end.",
        instead(ApplicationMasterService._exchange, _forgetting_at_once),
        plans=AFTER_RESTARTS,
    ),
)

LIVENESS = (
    bug(
        "node-never-expires",
        "A node that sends no heartbeats is never LOST.",
        skip_all(ResourceManagerCore._expire, "node_liveness"),
        plans=("kill-node", "random"),
    ),
    bug(
        "am-never-expires",
        "An attempt whose AM is silent never ends.",
        skip_all(ResourceManagerCore._expire, "am_liveness"),
        plans=("pause-master", "random"),
    ),
    bug(
        "expiry-counts-a-stall",
        "The time during which the ResourceManager itself was stalled counts as silence of the nodes.",
        drop(ResourceManagerCore._extend_deadlines, "node_liveness"),
        plans=("pause-rm-with-partition", "pause-rm", "random"),
    ),
    bug(
        "heartbeat-does-not-count",
        "A heartbeat does not extend the time after which a node is LOST.",
        drop(ResourceTrackerService.heartbeat, "ping"),
        plans=("kill-rm",),
    ),
    bug(
        "allocation-never-expires",
        "A container that its AM acquired and never starts is kept for ever.",
        skip_all(ResourceManagerCore._expire, "allocation_expiry"),
        plans=("cut-off-starts",),
    ),
    bug(
        "decommissioned-node-never-leaves",
        "A node that is empty and being decommissioned never leaves.",
        never(DecommissioningNodesWatcher.may_go, "running_apps"),
        never(rm_node_lifecycle._update_decommissioning, "running_apps"),
        plans=("decommission", "random"),
    ),
    bug(
        "decommissioned-while-in-use",
        "A node that is being decommissioned leaves at once, with its containers.",
        instead(
            DecommissioningNodesWatcher.may_go, lambda original, watcher, node, now_ms: node.node_id in watcher._watched
        ),
        plans=("decommission", "random"),
    ),
    bug(
        "node-leaves-with-a-new-am",
        "A node that is being decommissioned leaves when it reports its first container, an AM.",
        always(rm_node_lifecycle._update_decommissioning, "has_master_on"),
        plans=("decommission-at-the-start-of-masters",),
    ),
    bug(
        "repeated-unregistration-does-not-count",
        "An AM expires although it unregisters again, while its outcome is being stored.",
        drop(
            ApplicationMasterService.finish,
            "ping",
            when="app.attempts[attempt_id].state.name == 'FINAL_SAVING'",
        ),
        plans=("lost-last-replies", "random"),
    ),
    bug(
        "decrease-not-sent-to-the-node",
        "A node does not learn that a container is to have less.",
        drop(rm_node_lifecycle._update_container, "to_update"),
        plans=("unusual-requests", "random"),
    ),
    bug(
        "unregistration-does-not-count",
        "An AM that unregisters again and again, until that is stored, expires.",
        drop(ApplicationMasterService.finish, "ping"),
        plans=("slow-store", "random"),
    ),
)


def _two(original: Original, app: RMApp, failure: AttemptFailed) -> RMAppState:
    state: RMAppState = original(app, failure)
    if state is RMAppState.ACCEPTED:
        rm_app_lifecycle._start_attempt(app, transfers_containers=False)
    return state


def _reported_before_saving(
    original: Original, attempt: RMAppAttempt, target: RMAppAttemptState, *rest: Any, **named: Any
) -> RMAppAttemptState:
    state: RMAppAttemptState = original(attempt, target, *rest, **named)
    if target is RMAppAttemptState.FAILED:
        attempt.context.send(AttemptFailed(attempt.app.application_id, "", False))
    return state


def _with_a_higher_priority(original: Original, attempt: RMAppAttempt, event: Any) -> None:
    original(attempt, event)
    attempt.app.priority += 1


ATTEMPTS = (
    bug(
        "two-attempts-at-once",
        "After a failure two attempts start.",
        instead(rm_app_lifecycle.attempt_failed, _two),
    ),
    bug(
        "next-attempt-before-the-last-ends",
        "The next attempt starts while the end of the last one is being stored.",
        instead(rm_app_attempt_ends._save, _reported_before_saving),
    ),
    bug(
        "lost-node-counts-as-failure",
        "An attempt whose AM was lost with its node counts as a failure of the application.",
        instead(RMAppAttempt.counts_as_failure, lambda *_: True),
        plans=("few-attempts",),
    ),
    bug(
        "maximum-of-attempts-ignored",
        "An application gets another attempt after its last one.",
        never(rm_app_lifecycle.attempt_failed, "max_attempts", ">="),
        plans=("few-attempts",),
    ),
    bug(
        "kill-forgotten",
        "A client's kill of a running application has no effect.",
        drop(rm_app_lifecycle.kill, "RMAppAttemptKill"),
    ),
    bug(
        "nodes-not-told-of-the-end",
        "Nodes are not told that an application has ended.",
        drop(rm_app_lifecycle._end, "RMNodeCleanupApp"),
    ),
    bug(
        "unregistered-before-it-is-stored",
        "An AM learns that it is unregistered before anything was done about it.",
        always(ApplicationMasterService.finish, "STORED_APP_STATES"),
    ),
    bug(
        "queue-changes-by-itself",
        "An application's priority changes when its AM registers.",
        instead(rm_app_attempt_lifecycle.registered, _with_a_higher_priority),
    ),
)


def _answered_at_once(original: Original, event: Any, effects: list[Effect], *, store_is_busy: bool) -> DividedStep:
    to_store = [effect for effect in effects if isinstance(effect, StoreEffect)]
    return DividedStep([effect for effect in effects if not isinstance(effect, StoreEffect)], to_store, [])


def _later(original: Original, writer: SimulatedStoreWriter) -> None:
    writer._store.delay_ms += 300
    original(writer)
    writer._store.delay_ms -= 300


def _launched_before_saving(original: Original, attempt: RMAppAttempt, event: Any) -> RMAppAttemptState:
    state: RMAppAttemptState = original(attempt, event)
    if state is RMAppAttemptState.ALLOCATED_SAVING:
        app, container = attempt.app, attempt.am_container
        assert container is not None
        attempt.context.emit(LaunchAM(attempt.attempt_id, container, app.submission, app.user, app.submit_ms))
    return state


STORE = (
    bug(
        "answer-before-it-is-durable",
        "A client's submission is acknowledged before it is stored, on a slow disk.",
        instead(durability.divided, _answered_at_once),
        instead(SimulatedStoreWriter._write, _later),
        plans=AFTER_RESTARTS,
    ),
    bug(
        "new-application-not-stored",
        "An application is acknowledged and never stored.",
        instead(
            PersistentStateStore.store_application,
            lambda original, store, data: store.application_saved(data.application_id, Saving.NEW),
        ),
        plans=("kill-rm-early",),
    ),
    bug(
        "am-started-before-its-attempt-is-stored",
        "An AM's container is started before the attempt is stored.",
        instead(rm_app_attempt_lifecycle.fetch_am_container, _launched_before_saving),
        drop(rm_app_attempt_lifecycle.launch, "LaunchAM"),
        plans=AFTER_RESTARTS,
    ),
    bug(
        "final-state-not-recovered",
        "A restarted ResourceManager starts an ended application again.",
        never(rm_app_lifecycle.recover, "state"),
        plans=AFTER_RESTARTS,
    ),
    bug(
        "final-state-not-stored",
        "The final state of an application is reported and not stored.",
        instead(
            PersistentStateStore.end_application,
            lambda original, store, data, *_: store.application_saved(data.application_id, Saving.FINAL),
        ),
        plans=AFTER_RESTARTS,
    ),
    bug(
        "attempts-not-recovered",
        "A restarted ResourceManager forgets the attempts of running applications, and starts the first one again.",
        skip_all(rm_app_lifecycle.recover, "attempts"),
        plans=AFTER_RESTARTS,
    ),
    bug(
        "containers-of-a-lost-node-recovered",
        "A node that was LOST and registers again brings its containers back, whose ends were reported.",
        always(ResourceTrackerService._add, "known"),
        plans=("partition-node", "random"),
    ),
    bug(
        "resync-of-a-node-forgets-its-containers",
        "The containers that a node reports when it registers again are ignored.",
        drop(SchedulerBridge._add_node, "_recover_container"),
        plans=AFTER_RESTARTS,
    ),
    bug(
        "end-of-an-am-at-registration-ignored",
        "Without work-preserving recovery the end of an AM does not count if its node reports it when it registers.",
        drop(ResourceTrackerService._report_am_end, "RMAppAttemptContainerFinished"),
        plans=("kill-rm-without-work-preserving-recovery", "random"),
    ),
    bug(
        "missing-container-not-noticed",
        "A container that a node no longer reports still counts as running.",
        drop(rm_node_lifecycle._take_statuses, "_find_lost"),
        plans=("full-disk-while-leaving",),
    ),
)

RESOURCE_MANAGER_BUGS = (*PROTOCOL, *LIVENESS, *ATTEMPTS, *STORE, *TOKENS)
