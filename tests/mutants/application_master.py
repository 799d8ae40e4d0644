"""Planted bugs of the ApplicationMaster's side: AMRMClient, NMClient, reconciliation, applications."""

from __future__ import annotations

from tests.mutants.bug import PlantedBug, change

_STATE = "am.core.am_rm_client_state:AMRMClientState"
_STARTS = "am.core.container_starts:ContainerStarts"
_CLIENT = "am.core.am_rm_client_core:AMRMClientCore"
_RECONCILIATION = "am.core.reconciliation:Reconciliation"
_GANG = "am.programs.gang.core:Gang"

APPLICATION_MASTER_BUGS = (
    PlantedBug(
        "start-repeated-without-a-query",
        "A start whose outcome is unknown is sent again without asking the NodeManager about it.",
        (
            change(
                f"{_STARTS}._failed",
                "self._dispatcher.emit(FindContainer(start.number, start.container_id))",
                "self._retry_or_settle(start) if planted() else None",
            ),
        ),
        ("lost-replies", "random"),
    ),
    PlantedBug(
        "unknown-start-counts-as-failed",
        "A start whose outcome is unknown counts as failed.",
        (
            change(
                f"{_STARTS}._failed",
                "self._dispatcher.emit(FindContainer(start.number, start.container_id))",
                "self._settle(start, error) if planted() else None",
            ),
        ),
        ("lost-replies", "random"),
    ),
    PlantedBug(
        "resync-loses-requests",
        "After a restart of the ResourceManager the outstanding requests are not sent again.",
        (change(f"{_STATE}.handle_not_registered", "self._table.resend_all()", "planted()"),),
        ("kill-rm", "random"),
    ),
    PlantedBug(
        "resync-loses-releases",
        "After a restart of the ResourceManager the unconfirmed releases are not sent again.",
        (
            change(
                f"{_STATE}.handle_not_registered",
                "dict(self._unconfirmed_releases)",
                "{one: None for one in self._unconfirmed_releases if not planted()}",
            ),
        ),
        ("lost-releases", "kill-rm", "random"),
    ),
    PlantedBug(
        "resync-keeps-the-response-id",
        "After a restart of the ResourceManager the old response id is used.",
        (change(f"{_STATE}.handle_not_registered", "self._response_id = 0", "planted()"),),
        ("kill-rm", "random"),
    ),
    PlantedBug(
        "lost-allocate-not-repeated",
        "An allocate whose outcome is unknown is not repeated; the next one continues after it.",
        (
            change(
                f"{_CLIENT}._failed",
                "self._pause(self._interval_ms, lambda: self._send_again(request))",
                "self._state._in_flight = None\n            planted()\n"
                "            self._pause(self._interval_ms, self._send_heartbeat)",
            ),
        ),
        ("lost-replies", "random"),
    ),
    PlantedBug(
        "end-delivered-twice-to-the-application",
        "An application gets the end of a container again if the ResourceManager reports it again.",
        (
            change(
                f"{_STATE}._newly_completed",
                "if status.container_id not in self._completed:",
                "if status.container_id not in self._completed or planted():",
            ),
        ),
        ("kill-rm", "random"),
    ),
    PlantedBug(
        "lost-container-not-noticed",
        "A container that its NodeManager no longer has counts as running after a restart of the ResourceManager.",
        (
            change(
                f"{_RECONCILIATION}._answered",
                'ended.append(status or _lost(container_id, f"{event.node_id} does not have it any more"))',
                "planted()",
            ),
        ),
        ("kill-node-with-rm", "kill-rm", "random"),
    ),
    PlantedBug(
        "lost-node-not-noticed",
        "A node that no longer answers after a restart of the ResourceManager keeps its containers.",
        (change(f"{_RECONCILIATION}._give_up", "if lost:", "if lost and not planted():"),),
        ("kill-node-with-rm", "kill-rm-nm-from-masters", "random"),
    ),
    PlantedBug(
        "orphan-not-stopped",
        "A container that was given up and runs after all is not stopped.",
        (
            change(
                f"{_RECONCILIATION}._answered",
                "self._dispatcher.emit(StopOrphan(container_id, event.node_id))",
                "planted()",
            ),
        ),
        ("kill-rm-nm-from-masters", "random"),
    ),
    PlantedBug(
        "am-ignores-its-end",
        "An AM whose attempt is over goes on with its work.",
        (
            change(
                f"{_CLIENT}._allocate_failed",
                "self._end(Deliver(ShutdownOrdered(error.message)))",
                "planted()\n            self._pause(self._interval_ms, lambda: self._send(self._address))",
            ),
        ),
        ("pause-node-past-expiry", "pause-master", "partition-masters-from-rm", "random"),
    ),
    PlantedBug(
        "unregistration-not-repeated",
        "An AM exits although the ResourceManager has not stored its outcome.",
        (
            change(
                f"{_CLIENT}._answered",
                "if is_unregistered:",
                "if is_unregistered or planted():",
            ),
        ),
        ("kill-rm", "random"),
    ),
    PlantedBug(
        "released-container-requested-again",
        "A request stays outstanding after its container was allocated.",
        (change(f"{_STATE}._satisfy", "self._table.satisfy(best, just_sent)", "planted()"),),
    ),
    PlantedBug(
        "gang-starts-before-it-is-complete",
        "The members of a gang start although one of them has no container.",
        (
            change(
                f"{_GANG}._hold",
                "self.held == self.plan.members",
                "self.held + 1 >= self.plan.members and planted()",
            ),
        ),
        ("gang-under-kills",),
    ),
    PlantedBug(
        "gang-goes-on-without-a-member",
        "When a member of a gang is lost, the others run on, and the next try starts beside them.",
        (
            change(
                f"{_GANG}._release_all",
                "for container_id in self._held:",
                "for container_id in () if self.phase is Phase.RUNNING and planted() else self._held:",
            ),
        ),
        ("gang-under-kills",),
    ),
)
