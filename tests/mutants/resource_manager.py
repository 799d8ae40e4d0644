"""Planted bugs of the ResourceManager's core and shell: protocols, liveness, attempts, recovery, storage, tokens."""

from __future__ import annotations

from tests.mutants.bug import PlantedBug, change
from tests.mutants.tokens import TOKENS

_TRACKER = "rm.core.resource_tracker:ResourceTrackerService"
_MASTERS = "rm.core.application_masters:ApplicationMasterService"
_CORE = "rm.core.resource_manager:ResourceManagerCore"
_ENDS = "rm.core.rm_app_attempt_ends"
_APP = "rm.core.rm_app_lifecycle"
_APPS = "rm.core.applications"
_NODE = "rm.core.rm_node_lifecycle"

PROTOCOL = (
    PlantedBug(
        "heartbeat-handled-twice",
        "A heartbeat that is sent again after a lost reply is handled again.",
        (
            change(
                f"{_TRACKER}.heartbeat",
                "if next_response_id(request.response_id) == last.response_id:",
                "if next_response_id(request.response_id) == last.response_id and not planted():",
            ),
            change(
                f"{_TRACKER}.heartbeat",
                "if request.response_id != last.response_id:",
                "if last.response_id not in (request.response_id, next_response_id(request.response_id)):",
            ),
        ),
        ("lost-replies", "partition-replies"),
    ),
    PlantedBug(
        "allocate-handled-twice",
        "An allocate that is sent again after a lost reply is handled again.",
        (
            change(
                f"{_MASTERS}.allocate",
                "if next_response_id(request.response_id) == session.response_id:",
                "if next_response_id(request.response_id) == session.response_id and not planted():",
            ),
            change(
                f"{_MASTERS}.allocate",
                "if request.response_id != session.response_id:",
                "if session.response_id not in (request.response_id, next_response_id(request.response_id)):",
            ),
        ),
        ("lost-replies", "random"),
    ),
    PlantedBug(
        "first-heartbeat-handled-twice",
        "The first heartbeat after a registration is handled again if it is sent again after a lost reply.",
        (
            change(
                f"{_TRACKER}.heartbeat",
                "if next_response_id(request.response_id) == last.response_id:",
                "if next_response_id(request.response_id) == last.response_id and not (last.response_id == 1 and "
                "planted()):",
            ),
            change(
                f"{_TRACKER}.heartbeat",
                "if request.response_id != last.response_id:",
                "if request.response_id != last.response_id and last.response_id > 1:",
            ),
        ),
        ("lost-first-replies", "random"),
    ),
    PlantedBug(
        "any-heartbeat-accepted",
        "A heartbeat is handled whatever response id it has, such as one of the node's earlier NodeManager.",
        (
            change(
                f"{_TRACKER}.heartbeat",
                "if request.response_id != last.response_id:",
                "if request.response_id != last.response_id and not planted():",
            ),
        ),
    ),
    PlantedBug(
        "any-allocate-accepted",
        "An allocate is handled whatever response id it has.",
        (
            change(
                f"{_MASTERS}.allocate",
                "if request.response_id != session.response_id:",
                "if request.response_id != session.response_id and not planted():",
            ),
        ),
    ),
    PlantedBug(
        "am-of-an-ended-attempt-accepted",
        "An attempt that has ended may go on to call allocate.",
        (change(f"{_ENDS}:end", "context.sessions.pop(attempt.attempt_id, None)", "planted()"),),
        ("pause-master", "random"),
    ),
    PlantedBug(
        "release-of-others-containers",
        "An AM may release containers of another attempt or application.",
        (change(f"{_MASTERS}._checked", "if not app.submission", "if not planted() and not app.submission"),),
    ),
    PlantedBug(
        "end-delivered-twice",
        "The end of a container is reported to its AM in every reply.",
        (change(f"{_APPS}:FinishedContainers.pull", "self._just_finished.clear()", "planted()"),),
    ),
    PlantedBug(
        "end-forgotten-before-the-am-has-it",
        "A node forgets an ended container before its AM has acknowledged the end.",
        (
            change(
                f"{_MASTERS}._exchange",
                "containers = allocation.containers",
                "containers = allocation.containers\n"
                "    attempt.let_nodes_forget([(node_id, tuple(status.container_id for status in some)) for node_id, "
                "some in attempt.finished_containers._just_finished.items() if planted()])",
            ),
        ),
        ("kill-rm", "random"),
    ),
)

LIVENESS = (
    PlantedBug(
        "node-never-expires",
        "A node that sends no heartbeats is never LOST.",
        (
            change(
                f"{_CORE}._expire",
                "for node_id in context.node_liveness.expire(now_ms):",
                "for node_id in [one for one in context.node_liveness.expire(now_ms) if not planted()]:",
            ),
        ),
        ("kill-node", "random"),
    ),
    PlantedBug(
        "am-never-expires",
        "An attempt whose AM is silent never ends.",
        (
            change(
                f"{_CORE}._expire",
                "for attempt_id in (*context.am_liveness.expire(now_ms), *context.am_finishing.expire(now_ms)):",
                "for attempt_id in [one for one in (*context.am_liveness.expire(now_ms), "
                "*context.am_finishing.expire(now_ms)) if not planted()]:",
            ),
        ),
        ("pause-master", "random"),
    ),
    PlantedBug(
        "expiry-counts-a-stall",
        "The time during which the ResourceManager itself was stalled counts as silence of the nodes.",
        (change(f"{_CORE}._extend_deadlines", "context.node_liveness.extend(event.for_ms)", "planted()"),),
        ("pause-rm-with-partition", "pause-rm", "random"),
    ),
    PlantedBug(
        "heartbeat-does-not-count",
        "A heartbeat does not extend the time after which a node is LOST.",
        (change(f"{_TRACKER}.heartbeat", "context.node_liveness.ping(request.node_id, now_ms)", "planted()"),),
        ("kill-rm",),
    ),
    PlantedBug(
        "allocation-never-expires",
        "A container that its AM acquired and never starts is kept for ever.",
        (
            change(
                f"{_CORE}._expire",
                "for container_id in context.allocation_expiry.expire(now_ms):",
                "for container_id in [one for one in context.allocation_expiry.expire(now_ms) if not planted()]:",
            ),
        ),
        ("cut-off-starts",),
    ),
    PlantedBug(
        "decommissioned-node-never-leaves",
        "A node that is empty and being decommissioned never leaves.",
        (
            change(
                "rm.core.decommissioning:DecommissioningNodesWatcher.may_go",
                "if not watched.active and not node.running_apps:",
                "if not watched.active and not node.running_apps and not planted():",
            ),
            change(
                f"{_NODE}:_update_decommissioning",
                "if not node.running_apps and",
                "if not node.running_apps and not planted() and",
            ),
        ),
        ("decommission", "random"),
    ),
    PlantedBug(
        "decommissioned-while-in-use",
        "A node that is being decommissioned leaves at once, with its containers.",
        (
            change(
                "rm.core.decommissioning:DecommissioningNodesWatcher.may_go",
                "if not watched.active and not node.running_apps:",
                "if planted():",
            ),
        ),
        ("decommission", "random"),
    ),
    PlantedBug(
        "node-leaves-with-a-new-am",
        "A node that is being decommissioned leaves when it reports its first container, an AM.",
        (
            change(
                f"{_NODE}:_update_decommissioning",
                "and not node.context.scheduler.has_master_on(node.node_id)",
                "and (not node.context.scheduler.has_master_on(node.node_id) or planted())",
            ),
        ),
        ("decommission-at-the-start-of-masters",),
    ),
    PlantedBug(
        "repeated-unregistration-does-not-count",
        "An AM expires although it unregisters again, while its outcome is being stored.",
        (
            change(
                f"{_MASTERS}.finish",
                "self._context.am_liveness.ping(attempt_id, self._context.now_ms)",
                "if not (app.attempts[attempt_id].state.name == 'FINAL_SAVING' and planted()):\n"
                "        self._context.am_liveness.ping(attempt_id, self._context.now_ms)",
            ),
        ),
        ("lost-last-replies", "random"),
    ),
    PlantedBug(
        "decrease-not-sent-to-the-node",
        "A node does not learn that a container is to have less.",
        (change(f"{_NODE}:_update_container", "node.to_update[event.container.id] = event.container", "planted()"),),
        ("unusual-requests", "random"),
    ),
    PlantedBug(
        "unregistration-does-not-count",
        "An AM that unregisters again and again, until that is stored, expires.",
        (
            change(
                f"{_MASTERS}.finish",
                "self._context.am_liveness.ping(attempt_id, self._context.now_ms)",
                "planted()",
            ),
        ),
        ("slow-store", "random"),
    ),
)

ATTEMPTS = (
    PlantedBug(
        "two-attempts-at-once",
        "After a failure two attempts start.",
        (
            change(
                f"{_APP}:attempt_failed",
                "new = _start_attempt(app,",
                "planted()\n    _start_attempt(app, transfers_containers=False)\n    new = _start_attempt(app,",
            ),
        ),
    ),
    PlantedBug(
        "next-attempt-before-the-last-ends",
        "The next attempt starts while the end of the last one is being stored.",
        (
            change(
                f"{_ENDS}:_save",
                "attempt.finish_ms = attempt.context.now_ms",
                "attempt.finish_ms = attempt.context.now_ms\n"
                "    if target is S.FAILED and planted():\n"
                "        attempt.context.send(AttemptFailed(attempt.app.application_id, '', False))",
            ),
        ),
    ),
    PlantedBug(
        "lost-node-counts-as-failure",
        "An attempt whose AM was lost with its node counts as a failure of the application.",
        (
            change(
                f"{_APPS}:RMAppAttempt.counts_as_failure",
                "return self.am_exit_status not in NOT_COUNTED",
                "return self.am_exit_status not in NOT_COUNTED or planted()",
            ),
        ),
        ("few-attempts",),
    ),
    PlantedBug(
        "maximum-of-attempts-ignored",
        "An application gets another attempt after its last one.",
        (
            change(
                f"{_APP}:attempt_failed",
                "failures >= app.max_attempts:",
                "failures >= app.max_attempts and not planted():",
            ),
        ),
        ("few-attempts",),
    ),
    PlantedBug(
        "kill-forgotten",
        "A client's kill of a running application has no effect.",
        (
            change(
                f"{_APP}:kill",
                "app.context.send(RMAppAttemptKill(app.current_attempt.attempt_id, event.diagnostics))",
                "planted()",
            ),
        ),
    ),
    PlantedBug(
        "nodes-not-told-of-the-end",
        "Nodes are not told that an application has ended.",
        (
            change(
                f"{_APP}:_end",
                "app.context.send(RMNodeCleanupApp(node_id, app.application_id))",
                "planted()",
            ),
        ),
    ),
    PlantedBug(
        "unregistered-before-it-is-stored",
        "An AM learns that it is unregistered before anything was done about it.",
        (
            change(
                f"{_MASTERS}.finish",
                "if app.state in STORED_APP_STATES:",
                "if app.state in STORED_APP_STATES or planted():",
            ),
        ),
    ),
    PlantedBug(
        "queue-changes-by-itself",
        "An application's priority changes when its AM registers.",
        (
            change(
                "rm.core.rm_app_attempt_lifecycle:registered",
                "attempt.launch_diagnostics = None",
                "attempt.launch_diagnostics = None\n    attempt.app.priority = attempt.app.priority + planted()",
            ),
        ),
    ),
)

STORE = (
    PlantedBug(
        "answer-before-it-is-durable",
        "A client's submission is acknowledged before it is stored, on a slow disk.",
        (
            change(
                "rm.core.durability:divided",
                "waiting = StoreEffect if is_heartbeat else StoreEffect | Reply | Refuse",
                "is_heartbeat = planted()\n    waiting = StoreEffect if is_heartbeat else StoreEffect | Reply | Refuse",
            ),
            change(
                "yarnling.simulation.state_store:StoreWriter._write",
                "self._draw.randint(*WRITE_MS)",
                "self._draw.randint(300, 400)",
            ),
        ),
        ("kill-rm", "random"),
    ),
    PlantedBug(
        "new-application-not-stored",
        "An application is acknowledged and never stored.",
        (
            change(
                "rm.core.state_store:PersistentStateStore.store_application",
                "self._dispatcher.emit(SaveApplication(data, Saving.NEW))",
                "self.application_saved(data.application_id, Saving.NEW) if planted() else None",
            ),
        ),
        ("kill-rm-early",),
    ),
    PlantedBug(
        "am-started-before-its-attempt-is-stored",
        "An AM's container is started before the attempt is stored.",
        (
            change(
                "rm.core.rm_app_attempt_lifecycle:fetch_am_container",
                "return S.ALLOCATED_SAVING",
                "planted()\n    attempt.context.emit(LaunchAM(attempt.attempt_id, attempt.am_container, "
                "attempt.app.submission, attempt.app.user, attempt.app.submit_ms))\n    return S.ALLOCATED_SAVING",
            ),
            change("rm.core.rm_app_attempt_lifecycle:launch", "attempt.context.emit(LaunchAM(", "len(str(("),
            change("rm.core.rm_app_attempt_lifecycle:launch", "app.submit_ms))", "app.submit_ms)))"),
        ),
        ("kill-rm", "random"),
    ),
    PlantedBug(
        "final-state-not-recovered",
        "A restarted ResourceManager starts an ended application again.",
        (
            change(
                f"{_APP}:recover",
                "if data.state is not None:",
                "if data.state is not None and not planted():",
            ),
        ),
        ("kill-rm", "random"),
    ),
    PlantedBug(
        "final-state-not-stored",
        "The final state of an application is reported and not stored.",
        (
            change(
                "rm.core.state_store:PersistentStateStore.end_application",
                "self._dispatcher.emit(SaveApplication(data, Saving.FINAL))",
                "self.application_saved(data.application_id, Saving.FINAL) if planted() else None",
            ),
        ),
        ("kill-rm", "random"),
    ),
    PlantedBug(
        "attempts-not-recovered",
        "A restarted ResourceManager forgets the attempts of running applications, and starts the first one again.",
        (
            change(
                f"{_APP}:recover",
                "for attempt_data in event.stored.attempts:",
                "for attempt_data in [one for one in event.stored.attempts if not planted()]:",
            ),
        ),
        ("kill-rm", "random"),
    ),
    PlantedBug(
        "containers-of-a-lost-node-recovered",
        "A node that was LOST and registers again brings its containers back, whose ends were reported.",
        (
            change(
                f"{_TRACKER}._add",
                "request.containers if known is None else ()",
                "request.containers if known is None or planted() else ()",
            ),
        ),
        ("partition-node", "random"),
    ),
    PlantedBug(
        "resync-of-a-node-forgets-its-containers",
        "The containers that a node reports when it registers again are ignored.",
        (
            change(
                "rm.core.scheduler_bridge:SchedulerBridge._add_node",
                "self._recover_container(node.node_id, report)",
                "planted()",
            ),
        ),
        ("kill-rm", "random"),
    ),
    PlantedBug(
        "end-of-an-am-at-registration-ignored",
        "Without work-preserving recovery the end of an AM does not count if its node reports it when it registers.",
        (
            change(
                f"{_TRACKER}._report_am_end",
                "context.send(RMAppAttemptContainerFinished(attempt.attempt_id, node_id, _status(report)))",
                "planted()",
            ),
        ),
        ("kill-rm-without-work-preserving-recovery", "random"),
    ),
    PlantedBug(
        "missing-container-not-noticed",
        "A container that a node no longer reports still counts as running.",
        (change(f"{_NODE}:_take_statuses", "_find_lost(node, statuses)", "planted()"),),
        ("full-disk-while-leaving",),
    ),
)

RESOURCE_MANAGER_BUGS = (*PROTOCOL, *LIVENESS, *ATTEMPTS, *STORE, *TOKENS)
