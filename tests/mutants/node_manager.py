"""Planted bugs of the NodeManager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nm.core import application, container_lifecycle, start_checks
from nm.core.application import NMApplication
from nm.core.container import InitContainer, NMContainer
from nm.core.node_manager import NodeManagerCore
from nm.core.start_checks import StartedContainers
from nm.core.status_updater import Conversation, NodeStatusUpdater
from tests.mutants.bug import always, bug, drop, instead, never
from wire.tokens import ContainerTokenSecretManager, NMTokenSecretManager
from yarn.states import ContainerExitStatus

UNUSUAL = ("unusual-requests", "random")

Original = Callable[..., Any]


def _started_all_the_same(original: Original, of: NMApplication, event: Any) -> None:
    of.add(event.container_id)
    of.send(InitContainer(event.container_id))


def _all_but_the_last(original: Original, of: NMApplication, reason: str) -> None:
    kept = [of.containers.popitem()] if len(of.containers) > 1 else []
    original(of, reason)
    of.containers.update(kept)


def _at_once(original: Original, updater: NodeStatusUpdater) -> None:
    if updater.state is Conversation.WAITING:
        updater._send(at_once=True)
    else:
        original(updater)


def _with_exit_status_0(original: Original, container: NMContainer, event: Any) -> None:
    container.exit_status = ContainerExitStatus.SUCCESS
    original(container, event)


def _twice(original: Original, container: NMContainer, event: Any) -> None:
    original(container, event)
    if container.launches == 1:
        container.launch()


def _without_increases(original: Original, updater: NodeStatusUpdater, *, at_once: bool = False) -> None:
    updater.increased.clear()
    original(updater, at_once=at_once)


NODE_MANAGER_BUGS = (
    bug(
        "container-token-used-twice",
        "A container is started again with a token that was used.",
        never(start_checks.check_start, "has"),
    ),
    bug(
        "start-before-a-restart-forgotten",
        "A NodeManager starts containers that an earlier one on the machine has started before.",
        instead(StartedContainers.note_started_before, lambda original, started, container_ids: original(started, ())),
        plans=("flap", "few-attempts"),
    ),
    bug(
        "expired-container-token-accepted",
        "A container is started with an expired token.",
        never(start_checks.check_start, "expiry_ms"),
        plans=("lost-replies", "random"),
    ),
    bug(
        "token-of-an-earlier-rm-accepted",
        "A container is started that an earlier ResourceManager allocated.",
        never(start_checks.check_start, "rm_identifier"),
        plans=("late-starts", "random"),
    ),
    bug(
        "container-of-another-application-started",
        "An AM may start a container of another application.",
        never(start_checks.check_start, "application_id"),
    ),
    bug(
        "others-containers-stopped",
        "An AM may stop a container of another application.",
        always(start_checks.check_owner, "application_id"),
    ),
    bug(
        "nm-token-of-another-node-accepted",
        "An NM token is accepted by every NodeManager.",
        never(NMTokenSecretManager.check_for, "node_id"),
    ),
    bug(
        "container-token-of-another-node-accepted",
        "A container is started on another node than the one it was allocated on.",
        never(ContainerTokenSecretManager.check_for, "node_id"),
    ),
    bug(
        "container-of-an-ended-application-runs",
        "A container that is started after the end of its application is not killed.",
        instead(application._refuse_container, _started_all_the_same),
        plans=("ignored-sigterm",),
    ),
    bug(
        "kill-lost",
        "A kill of a container sends no signal to its processes.",
        drop(container_lifecycle._kill, "end_processes"),
    ),
    bug(
        "kill-of-one-container-lost",
        "When an application ends, its last container on a node is not killed.",
        instead(NMApplication.kill_containers, _all_but_the_last),
    ),
    bug(
        "clean-up-order-ignored",
        "A NodeManager does not kill a container although the ResourceManager orders it.",
        never(NodeManagerCore._kill_by_resource_manager, "containers"),
    ),
    bug(
        "end-of-application-ignored",
        "A NodeManager does not end an application although the ResourceManager orders it.",
        never(NodeManagerCore._follow, "applications"),
    ),
    bug(
        "end-dropped-after-a-lost-reply",
        "The end of a container is reported once, even if the heartbeat with it was lost.",
        never(NodeStatusUpdater.answered, "_missed"),
        plans=("partition-replies", "lost-replies", "partition-requests", "random"),
    ),
    bug(
        "end-not-reported-at-registration",
        "A container that ended while the ResourceManager was down is not reported to the next one.",
        drop(NodeStatusUpdater._registration_statuses, "append", when="container.is_done"),
        plans=("kill-rm", "random"),
    ),
    bug(
        "containers-not-reported-at-registration",
        "A NodeManager does not report its running containers to a restarted ResourceManager.",
        drop(NodeStatusUpdater._registration_statuses, "append"),
        plans=("kill-rm", "random"),
    ),
    bug(
        "two-heartbeats-at-once",
        "A NodeManager sends a heartbeat while another one is under way.",
        instead(NodeStatusUpdater.send_soon, _at_once),
        plans=("lost-replies",),
    ),
    bug(
        "exit-status-of-the-kill-lost",
        "A container that was killed is reported with exit status 0.",
        instead(container_lifecycle._killed, _with_exit_status_0),
    ),
    bug(
        "exit-not-noticed",
        "The end of a container's process is not noticed if its exit code is not 0.",
        always(NodeManagerCore._exited, "_is_current", when="code != 0"),
    ),
    bug(
        "container-launched-twice",
        "The process of a container is launched twice.",
        instead(container_lifecycle._launched, _twice),
    ),
    bug(
        "application-keeps-ended-containers",
        "An application on a node does not forget a container that has ended.",
        drop(application._container_finished, "remove"),
    ),
    bug(
        "increase-not-reported",
        "A NodeManager does not report that a container has grown.",
        instead(NodeStatusUpdater._send, _without_increases),
        plans=UNUSUAL,
    ),
    bug(
        "new-size-not-applied",
        "A container keeps its size although its NodeManager has accepted another one.",
        drop(container_lifecycle._update_while_watched, "token"),
        plans=UNUSUAL,
    ),
)
