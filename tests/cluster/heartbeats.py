"""Container reports of NodeManagers, read from the ResourceManager's event log."""

from __future__ import annotations

from pathlib import Path

from rm.core.events import NodeHeartbeat
from wire.event_log import read_event_log
from yarn.ids import ContainerId
from yarn.settings.yarnling import EVENT_LOG
from yarn.states import ContainerState


class HeartbeatLog:
    """The event log of a cluster with these `settings`."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.settings = {EVENT_LOG.key: str(directory)}
        self._log = directory / "resourcemanager.jsonl"

    def running(self) -> set[ContainerId]:
        """The containers reported as running to the RM: only those are kept when their AM dies."""
        _, steps = read_event_log(self._log)
        beats = (step.event for step in steps if isinstance(step.event, NodeHeartbeat))
        statuses = (status for beat in beats for status in beat.request.containers)
        return {status.container_id for status in statuses if status.state is ContainerState.RUNNING}
