"""A ResourceManager's core with a store in memory; the store and the NodeManagers survive its restart."""

from __future__ import annotations

from collections.abc import Mapping

from rm.core.effects import Effect, RemoveApplication, SaveApplication, SaveAttempt, SaveNodeLabels, StoreEffect
from rm.core.events import ApplicationSaved, AttemptSaved, Event, RegisterNode, StateLoaded
from rm.core.stored_state import (
    ApplicationAttemptStateData,
    ApplicationStateData,
    NodeLabelState,
    RMState,
    StoredApplication,
)
from tests.rm.builders import RM
from yarn.containers import NMContainerStatus
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.nodes import NodeHealth
from yarn.protocols.tracker import RegisterNodeManagerRequest
from yarn.resource import Resource
from yarn.settings.resourcemanager import RECOVERY_ENABLED, WORK_PRESERVING_RECOVERY_ENABLED
from yarn.states import ContainerState

STORED = {RECOVERY_ENABLED.key: "true"}
NOT_PRESERVING = {**STORED, WORK_PRESERVING_RECOVERY_ENABLED.key: "false"}


class Disk:
    """The stored records. `is_slow`: records wait for `write`; those still waiting are lost with the RM."""

    def __init__(self) -> None:
        self.epoch = 1  # the first RM was started on an empty one
        self.is_slow = False
        self.applications: dict[ApplicationId, ApplicationStateData] = {}
        self.attempts: dict[ApplicationAttemptId, ApplicationAttemptStateData] = {}
        self.node_labels = NodeLabelState()
        self.waiting: list[Effect] = []

    def take(self, effect: Effect) -> Event | None:
        """Write one effect; returns the event that confirms it, if any."""
        match effect:
            case SaveApplication(application, saving):
                self.applications[application.application_id] = application
                return ApplicationSaved(application.application_id, saving)
            case SaveAttempt(attempt, saving):
                self.attempts[attempt.attempt_id] = attempt
                return AttemptSaved(attempt.attempt_id, saving)
            case SaveNodeLabels(node_labels):
                self.node_labels = node_labels
            case RemoveApplication(application_id):
                del self.applications[application_id]
                for attempt_id in [a for a in self.attempts if a.application_id == application_id]:
                    del self.attempts[attempt_id]
        return None

    def load(self) -> RMState:
        return RMState(
            self.epoch,
            tuple(
                StoredApplication(
                    self.applications[app], tuple(self.attempts[a] for a in sorted(self.attempts) if a[0] == app)
                )
                for app in sorted(self.applications)
            ),
            self.node_labels,
        )


class StoredRM(RM):
    """Passes effects to the disk and its confirmations back, as the shell does. `restart` is kill -9 and a new RM."""

    def __init__(self, conf: Mapping[str, str] | None = None, disk: Disk | None = None, *, strict: bool = True) -> None:
        super().__init__({**STORED, **(conf or {})}, strict=strict)
        self.conf = conf
        self.disk = disk or Disk()

    def step(self, event: Event) -> object:
        value = super().send(event)
        stored = [effect for effect in self.effects if isinstance(effect, StoreEffect)]
        self.disk.waiting += stored
        return value

    def send(self, event: Event) -> object:  # type: ignore[override]
        answer: object = None
        try:
            answer = self.step(event)
        finally:
            if not self.disk.is_slow:
                self.write()
        return answer

    def write(self) -> None:
        """Write the waiting records, and those that the confirmations lead to."""
        while self.disk.waiting:
            event = self.disk.take(self.disk.waiting.pop(0))
            if event is not None:
                self.step(event)

    def restart(self, conf: Mapping[str, str] | None = None, *, strict: bool = True) -> StoredRM:
        """Kill the RM and start another one a second later; no node or client has called it yet."""
        self.disk.waiting.clear()
        rm = StoredRM(conf if conf is not None else self.conf, self.disk, strict=strict)
        rm.now_ms = self.now_ms + 1000
        rm.nodes = self.nodes
        rm._response_ids = self._response_ids
        rm._calls = self._calls
        rm.send(StateLoaded(self.disk.load()))
        self.disk.epoch += 1
        return rm

    def comes_back(
        self,
        host: str = "n1",
        ended: Mapping[ContainerId, int] | None = None,
        size: Resource | None = None,
        *,
        healthy: bool = True,
    ) -> None:
        """Register a node again with its running containers and those that `ended` {container: exit status}."""
        nm = self.nodes[host]
        ended = ended or {}
        for container_id in ended:
            nm.running.pop(container_id, None)
        size = size or Resource(1024, 1)
        reports = [NMContainerStatus(c, ContainerState.RUNNING, size, creation_time_ms=1) for c in nm.running]
        reports += [
            NMContainerStatus(c, ContainerState.COMPLETE, size, exit_status=status) for c, status in ended.items()
        ]
        apps = tuple(dict.fromkeys(c.application_id for c in (*nm.running, *ended)))
        nm.response_id = 0
        health = NodeHealth(healthy=healthy)
        request = RegisterNodeManagerRequest(nm.node_id, 8042, nm.resource, "", tuple(reports), apps, health=health)
        self.send(RegisterNode(self.call(), request, "/default-rack"))
