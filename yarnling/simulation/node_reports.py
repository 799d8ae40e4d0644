"""Checks that NodeManagers report every container, and every end, to the ResourceManager of a simulation.

The ResourceManager cannot check this itself: to it, what a node leaves out looks like what a restarted NodeManager has
forgotten. I-30: an end is reported until the ResourceManager has surely received it. I-45: after a restart of the
ResourceManager a node registers with all its containers, and starts none that the earlier one allocated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rm.core.context import RMContext
from rm.core.effects import Effect
from rm.core.events import Event, NodeHeartbeat, RegisterNode
from yarn.ids import ContainerId
from yarn.machine import Reply, Warn
from yarn.protocols.tracker import NodeHeartbeatResponse
from yarn.states import ContainerState, NodeAction

_MISSING = re.compile(r"Container (container_\w+) was running but not reported from ")


class NodeReportAudit:
    """Looks at the calls of nodes to one start of a ResourceManager."""

    def __init__(self, context: RMContext) -> None:
        self._context = context
        self._registered: set[ContainerId] = set()
        """The containers that nodes reported when they registered."""
        self._ignored_ends: set[ContainerId] = set()
        """The containers whose ends unhealthy nodes reported, which StatusUpdateWhenUnHealthyTransition ignores."""

    def violations(self, event: Event, effects: Iterable[Effect]) -> Iterator[str]:
        """The violations that the step of `event` shows."""
        if isinstance(event, RegisterNode):
            self._registered.update(report.container_id for report in event.request.containers)
        elif isinstance(event, NodeHeartbeat):
            if not event.request.health.healthy:
                self._ignored_ends.update(_ended(event))
            for effect in effects:
                if isinstance(effect, Warn):
                    yield from self._without_its_end(effect.text)
                elif _is_accepted(effect):
                    yield from self._not_registered(event)

    def _without_its_end(self, warning: str) -> Iterator[str]:
        """A container that a node no longer reports, and whose end is reported to an AM without its exit status.

        A NodeManager that was restarted knows no container, but it registers before it sends a heartbeat.
        """
        found = _MISSING.match(warning)
        if found is None:
            return
        container_id = ContainerId.parse(found.group(1))
        if container_id in self._ignored_ends:
            return
        app = self._context.apps.get(container_id.application_id)
        attempt = app.current_attempt if app is not None else None
        kept = attempt.finished_containers.unacknowledged(container_id) if attempt is not None else None
        if kept is not None and _MISSING.match(kept[1].diagnostics):
            yield f"I-30: {warning}, and its AM gets {kept[1].exit_status}"

    def _not_registered(self, heartbeat: NodeHeartbeat) -> Iterator[str]:
        """A container from before the ResourceManager's restart that its node did not report when it registered."""
        epoch = self._context.scheduler.context.epoch
        if not epoch:
            return
        for status in heartbeat.request.containers:
            container_id = status.container_id
            if container_id.epoch < epoch and container_id not in self._registered:
                yield f"I-45: {heartbeat.request.node_id} reports {container_id}, and did not when it registered"


def _ended(heartbeat: NodeHeartbeat) -> Iterator[ContainerId]:
    statuses = heartbeat.request.containers
    return (status.container_id for status in statuses if status.state is ContainerState.COMPLETE)


def _is_accepted(effect: Effect) -> bool:
    if not isinstance(effect, Reply) or not isinstance(effect.value, NodeHeartbeatResponse):
        return False
    return effect.value.action is NodeAction.NORMAL
