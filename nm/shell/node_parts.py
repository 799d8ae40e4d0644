"""The parts of a running node that carry the core's effects out."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from nm.core.effects import (
    ChangeMonitoring,
    DeleteApplicationFiles,
    DeleteApplicationLogs,
    DeleteContainerFiles,
    DeleteResource,
    FetchResource,
    LaunchContainer,
    MonitorContainer,
    RegisterNode,
    SendHeartbeat,
    SignalContainer,
    UnregisterNode,
)
from nm.launcher.deletion import DeletionService
from nm.launcher.launchers import Launchers
from nm.localizer.service import Localizer
from nm.shell.monitor import ContainersMonitor
from nm.shell.services import ContainerManagementService
from yarn.ids import ApplicationId


class TrackerCalls(Protocol):
    """The way of one node to the RM."""

    def call(self, effect: RegisterNode | SendHeartbeat | UnregisterNode) -> None: ...


class RunningParts(Struct, frozen=True):
    """Hands each effect to its part (nm.shell.effects.NodeParts)."""

    tracker: TrackerCalls
    localizer: Localizer
    launcher: Launchers
    watcher: ContainersMonitor
    deletion: DeletionService
    service: ContainerManagementService

    def call_resource_manager(self, effect: RegisterNode | SendHeartbeat | UnregisterNode) -> None:
        self.tracker.call(effect)

    def fetch(self, effect: FetchResource) -> None:
        self.localizer.fetch(effect)

    def launch(self, effect: LaunchContainer) -> None:
        self.launcher.launch(effect)

    def signal(self, effect: SignalContainer) -> None:
        self.launcher.signal(effect)

    def monitor(self, effect: MonitorContainer) -> None:
        self.watcher.watch(effect)

    def change_monitoring(self, effect: ChangeMonitoring) -> None:
        self.watcher.change(effect)
        self.launcher.change_cpu(effect)

    def delete(
        self, effect: DeleteResource | DeleteContainerFiles | DeleteApplicationFiles | DeleteApplicationLogs
    ) -> None:
        self.deletion.delete(effect)

    def application_finished(self, application_id: str) -> None:
        self.service.forget(ApplicationId.parse(application_id))
