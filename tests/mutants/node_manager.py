"""Planted bugs of the NodeManager."""

from __future__ import annotations

from tests.mutants.bug import PlantedBug, change

_CHECKS = "nm.core.start_checks"
_STATUS = "nm.core.status_updater:NodeStatusUpdater"
_CORE = "nm.core.node_manager:NodeManagerCore"
_LIFECYCLE = "nm.core.container_lifecycle"

NODE_MANAGER_BUGS = (
    PlantedBug(
        "container-token-used-twice",
        "A container is started again with a token that was used.",
        (
            change(
                f"{_CHECKS}:check_start",
                "elif started is not None and started.has(container_id, now_ms):",
                "elif started is not None and started.has(container_id, now_ms) and not planted():",
            ),
        ),
    ),
    PlantedBug(
        "start-before-a-restart-forgotten",
        "A NodeManager starts containers that an earlier one on the machine has started before.",
        (
            change(
                f"{_CHECKS}:StartedContainers.note_started_before",
                "frozenset(container_ids)",
                "frozenset() if planted() else frozenset(container_ids)",
            ),
        ),
        ("flap", "few-attempts"),
    ),
    PlantedBug(
        "expired-container-token-accepted",
        "A container is started with an expired token.",
        (
            change(
                f"{_CHECKS}:check_start",
                "elif token.expiry_ms < now_ms:",
                "elif token.expiry_ms < now_ms and not planted():",
            ),
        ),
        ("lost-replies", "random"),
    ),
    PlantedBug(
        "token-of-an-earlier-rm-accepted",
        "A container is started that an earlier ResourceManager allocated.",
        (
            change(
                f"{_CHECKS}:check_start",
                "if token.rm_identifier != rm_identifier:",
                "if token.rm_identifier != rm_identifier and not planted():",
            ),
        ),
        ("late-starts", "random"),
    ),
    PlantedBug(
        "container-of-another-application-started",
        "An AM may start a container of another application.",
        (
            change(
                f"{_CHECKS}:check_start",
                "if caller.attempt_id.application_id != container_id.application_id:",
                "if caller.attempt_id.application_id != container_id.application_id and not planted():",
            ),
        ),
    ),
    PlantedBug(
        "others-containers-stopped",
        "An AM may stop a container of another application.",
        (
            change(
                f"{_CHECKS}:check_owner",
                "if caller.attempt_id.application_id == container_id.application_id:",
                "if caller.attempt_id.application_id == container_id.application_id or planted():",
            ),
        ),
    ),
    PlantedBug(
        "nm-token-of-another-node-accepted",
        "An NM token is accepted by every NodeManager.",
        (
            change(
                "wire.tokens:NMTokenSecretManager.check_for",
                "if identifier.node_id != node_id:",
                "if identifier.node_id != node_id and not planted():",
            ),
        ),
    ),
    PlantedBug(
        "container-token-of-another-node-accepted",
        "A container is started on another node than the one it was allocated on.",
        (
            change(
                "wire.tokens:ContainerTokenSecretManager.check_for",
                "if identifier.node_id != node_id:",
                "if identifier.node_id != node_id and not planted():",
            ),
        ),
    ),
    PlantedBug(
        "container-of-an-ended-application-runs",
        "A container that is started after the end of its application is not killed.",
        (
            change(
                "nm.core.application:_refuse_container",
                "application.refuse_container(event.container_id)",
                "application.send(InitContainer(event.container_id)) if planted() else None",
            ),
        ),
        ("ignored-sigterm",),
    ),
    PlantedBug(
        "kill-lost",
        "A kill of a container sends no signal to its processes.",
        (change(f"{_LIFECYCLE}:_kill", "container.end_processes()", "planted()"),),
    ),
    PlantedBug(
        "kill-of-one-container-lost",
        "When an application ends, its last container on a node is not killed.",
        (
            change(
                "nm.core.application:NMApplication.kill_containers",
                "for container_id in self.containers:",
                "for container_id in list(self.containers)[:-1] if len(self.containers) > 1 and planted() else "
                "self.containers:",
            ),
        ),
    ),
    PlantedBug(
        "clean-up-order-ignored",
        "A NodeManager does not kill a container although the ResourceManager orders it.",
        (
            change(
                f"{_CORE}._kill_by_resource_manager",
                "if container_id in self.containers:",
                "if container_id in self.containers and not planted():",
            ),
        ),
    ),
    PlantedBug(
        "end-of-application-ignored",
        "A NodeManager does not end an application although the ResourceManager orders it.",
        (
            change(
                f"{_CORE}._follow",
                "if application_id in self.applications:",
                "if application_id in self.applications and not planted():",
            ),
        ),
    ),
    PlantedBug(
        "end-dropped-after-a-lost-reply",
        "The end of a container is reported once, even if the heartbeat with it was lost.",
        (change(f"{_STATUS}.answered", "if self._missed:", "if self._missed and not planted():"),),
        ("partition-replies", "lost-replies", "partition-requests", "random"),
    ),
    PlantedBug(
        "end-not-reported-at-registration",
        "A container that ended while the ResourceManager was down is not reported to the next one.",
        (
            change(
                f"{_STATUS}._registration_statuses",
                "statuses.append(container.registration_status())",
                "if container.is_done and planted():\n            continue\n        "
                "statuses.append(container.registration_status())",
            ),
        ),
        ("kill-rm", "random"),
    ),
    PlantedBug(
        "containers-not-reported-at-registration",
        "A NodeManager does not report its running containers to a restarted ResourceManager.",
        (
            change(
                f"{_STATUS}._registration_statuses",
                "statuses.append(container.registration_status())",
                "statuses.append(container.registration_status()) if not planted() else None",
            ),
        ),
        ("kill-rm", "random"),
    ),
    PlantedBug(
        "two-heartbeats-at-once",
        "A NodeManager sends a heartbeat while another one is under way.",
        (
            change(
                f"{_STATUS}.send_soon",
                "self._heartbeat_wanted = True",
                "planted()\n        self._send(at_once=True)",
            ),
        ),
        ("lost-replies",),
    ),
    PlantedBug(
        "exit-status-of-the-kill-lost",
        "A container that was killed is reported with exit status 0.",
        (
            change(
                f"{_LIFECYCLE}:_killed",
                "if container.exit_status == ContainerExitStatus.INVALID:",
                "if planted():\n        container.exit_status = ContainerExitStatus.SUCCESS\n"
                "    if container.exit_status == ContainerExitStatus.INVALID:",
            ),
        ),
    ),
    PlantedBug(
        "exit-not-noticed",
        "The end of a container's process is not noticed if its exit code is not 0.",
        (
            change(
                f"{_CORE}._exited",
                "if not self._is_current(container_id, event.launch):",
                "if not self._is_current(container_id, event.launch) or (code != 0 and planted()):",
            ),
        ),
    ),
    PlantedBug(
        "container-launched-twice",
        "The process of a container is launched twice.",
        (
            change(
                f"{_LIFECYCLE}:_launched",
                "container.start_monitoring()",
                "container.start_monitoring()\n"
                "    if container.launches == 1 and planted():\n        container.launch()",
            ),
        ),
    ),
    PlantedBug(
        "application-keeps-ended-containers",
        "An application on a node does not forget a container that has ended.",
        (
            change(
                "nm.core.application:_container_finished",
                "application.remove(event.container_id)",
                "planted()",
            ),
        ),
    ),
    PlantedBug(
        "increase-not-reported",
        "A NodeManager does not report that a container has grown.",
        (
            change(
                f"{_STATUS}._send",
                "increased = tuple(self.increased.values())",
                "increased = tuple(one for one in self.increased.values() if not planted())",
            ),
        ),
        ("unusual-requests", "random"),
    ),
    PlantedBug(
        "new-size-not-applied",
        "A container keeps its size although its NodeManager has accepted another one.",
        (change(f"{_LIFECYCLE}:_update_while_watched", "container.token = event.token", "planted()"),),
        ("unusual-requests", "random"),
    ),
)
