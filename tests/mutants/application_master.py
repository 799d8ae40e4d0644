"""Planted bugs of the ApplicationMaster's side: AMRMClient, NMClient, reconciliation, applications."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from am.core.am_rm_client_core import AMRMClientCore, CallFailed
from am.core.am_rm_client_state import AMRMClientState
from am.core.container_starts import ContainerStarts
from am.core.reconciliation import Reconciliation
from am.programs.gang.core import Gang
from tests.mutants.bug import always, bug, drop, instead, never, skip_all
from yarn.errors import ApplicationAttemptNotFoundException, CallOutcomeUnknown, InvalidToken, YarnException
from yarn.protocols.master import AllocateRequest

AFTER_RESTARTS = ("kill-rm", "random")

Original = Callable[..., Any]


def _settled_if_unknown(original: Original, starts: ContainerStarts, start: Any, error: YarnException) -> None:
    if isinstance(error, CallOutcomeUnknown):
        start.error = error
        starts._settle(start, error)
    else:
        original(starts, start, error)


def _without_releases(original: Original, state: AMRMClientState) -> None:
    original(state)
    state._releases = {}


def _next_one_instead_of_again(original: Original, client: AMRMClientCore, event: CallFailed) -> None:
    request = client._request
    original(client, event)
    if isinstance(request, AllocateRequest) and client._request is None and client._may_repeat(event.error):
        client._state._in_flight = None
        client._pause(client._interval_ms, client._send_heartbeat)


def _going_on(original: Original, client: AMRMClientCore, error: YarnException) -> None:
    if isinstance(error, ApplicationAttemptNotFoundException | InvalidToken):
        client._pause(client._interval_ms, lambda: client._send(client._address))
    else:
        original(client, error)


APPLICATION_MASTER_BUGS = (
    bug(
        "start-repeated-without-a-query",
        "A start whose outcome is unknown is sent again without asking the NodeManager about it.",
        never(ContainerStarts._failed, "CallOutcomeUnknown", "may_have_started"),
        plans=("lost-replies", "random"),
    ),
    bug(
        "unknown-start-counts-as-failed",
        "A start whose outcome is unknown counts as failed.",
        instead(ContainerStarts._failed, _settled_if_unknown),
        plans=("lost-replies", "random"),
    ),
    bug(
        "resync-loses-requests",
        "After a restart of the ResourceManager the outstanding requests are not sent again.",
        drop(AMRMClientState.handle_not_registered, "resend_all"),
        plans=AFTER_RESTARTS,
    ),
    bug(
        "resync-loses-releases",
        "After a restart of the ResourceManager the unconfirmed releases are not sent again.",
        instead(AMRMClientState.handle_not_registered, _without_releases),
        plans=("lost-releases", "kill-rm", "random"),
    ),
    bug(
        "resync-keeps-the-response-id",
        "After a restart of the ResourceManager the old response id is used.",
        drop(AMRMClientState.handle_not_registered, "_response_id"),
        plans=AFTER_RESTARTS,
    ),
    bug(
        "lost-allocate-not-repeated",
        "An allocate whose outcome is unknown is not repeated; the next one continues after it.",
        instead(AMRMClientCore._failed, _next_one_instead_of_again),
        plans=("lost-replies", "random"),
    ),
    bug(
        "end-delivered-twice-to-the-application",
        "An application gets the end of a container again if the ResourceManager reports it again.",
        always(AMRMClientState._newly_completed, "_completed"),
        plans=AFTER_RESTARTS,
    ),
    bug(
        "lost-container-not-noticed",
        "A container that its NodeManager no longer has counts as running after a restart of the ResourceManager.",
        drop(Reconciliation._answered, "_lost"),
        plans=("kill-node-with-rm", "kill-rm", "random"),
    ),
    bug(
        "lost-node-not-noticed",
        "A node that no longer answers after a restart of the ResourceManager keeps its containers.",
        never(Reconciliation._give_up, "lost"),
        plans=("kill-node-with-rm", "kill-rm-nm-from-masters", "random"),
    ),
    bug(
        "orphan-not-stopped",
        "A container that was given up and runs after all is not stopped.",
        drop(Reconciliation._answered, "StopOrphan"),
        plans=("kill-rm-nm-from-masters", "random"),
    ),
    bug(
        "am-ignores-its-end",
        "An AM whose attempt is over goes on with its work.",
        instead(AMRMClientCore._allocate_failed, _going_on),
        plans=("pause-node-past-expiry", "pause-master", "partition-masters-from-rm", "random"),
    ),
    bug(
        "unregistration-not-repeated",
        "An AM exits although the ResourceManager has not stored its outcome.",
        always(AMRMClientCore._answered, "is_unregistered"),
        plans=AFTER_RESTARTS,
    ),
    bug(
        "released-container-requested-again",
        "A request stays outstanding after its container was allocated.",
        drop(AMRMClientState._satisfy, "satisfy"),
    ),
    bug(
        "gang-starts-before-it-is-complete",
        "The members of a gang start although one of them has no container.",
        always(Gang._hold, "held", when="self.held + 1 >= self.plan.members"),
        plans=("gang-under-kills",),
    ),
    bug(
        "gang-goes-on-without-a-member",
        "When a member of a gang is lost, the others run on, and the next try starts beside them.",
        skip_all(Gang._release_all, "_held", when="self.phase is GangPhase.RUNNING"),
        plans=("gang-under-kills",),
    ),
)
