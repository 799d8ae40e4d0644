"""The cluster after a step: queues, nodes with what is on them, applications and why they wait. Plain data.

Reading it changes nothing, so a run that is looked at is the same run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from rm.core.applications import RMApp
from rm.core.context import RMContext
from rm.core.explain.application import explanation
from rm.core.reports.applications import application_state, final_status
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.queue import CSQueue, ParentQueue
from rm.scheduler.model.rm_container import RMContainer
from yarn.nodes import NO_LABEL
from yarn.states import FINAL_APPLICATION_STATES
from yarnling.run.names import Names, host
from yarnling.simulation.cluster import SimulatedCluster
from yarnling.simulation.machine import SimulatedMachine

ROOT = "root"
APPLICATIONS_MAX = 40
"""The number of applications that are shown: those that have not ended first, then the newest."""
_HOST = re.compile(r"\bn\d{5}\b")


class UserView(Struct, frozen=True):
    """The amount that a user holds in a leaf queue, and the limit as it was last looked up."""

    name: str
    used_mb: int
    limit_mb: int
    is_active: bool


class QueueView(Struct, frozen=True):
    """A queue of the default partition, in MB. `depth`: 0 for root."""

    path: str
    depth: int
    used_mb: int
    reserved_mb: int
    pending_mb: int
    guaranteed_mb: int
    maximum_mb: int
    users: tuple[UserView, ...] = ()


class BoxView(Struct, frozen=True):
    """A container on a node, or a reservation there. `application`: the number of its application's id."""

    name: str
    application: int
    memory_mb: int
    vcores: int
    state: str
    is_am: bool = False


class NodeView(Struct, frozen=True):
    """A machine. `state`: what the ResourceManager calls it; `process`: what its NodeManager really is."""

    name: str
    state: str
    process: str
    memory_mb: int
    vcores: int
    label: str = ""
    containers: tuple[BoxView, ...] = ()
    reserved: BoxView | None = None

    @property
    def used_mb(self) -> int:
        return sum(box.memory_mb for box in self.containers)


class ApplicationView(Struct, frozen=True):
    """An application. `pending`: how many containers it waits for. `waits`: why, as `yarnling explain` says it."""

    name: str
    number: int
    user: str
    queue: str
    state: str
    containers: int
    memory_mb: int
    pending: int
    waits: tuple[str, ...] = ()


class ClusterView(Struct, frozen=True):
    """`rm`: what the process of the ResourceManager is. While it is down, what it knew last is not shown."""

    at_ms: int
    rm: str
    queues: tuple[QueueView, ...] = ()
    nodes: tuple[NodeView, ...] = ()
    applications: tuple[ApplicationView, ...] = ()


def view_of(cluster: SimulatedCluster, names: Names, at_ms: int) -> ClusterView:
    """The cluster as it is now, `at_ms` after its start."""
    rm = cluster.rm
    process = "paused" if rm.is_paused else "running" if rm.is_up else "down"
    if not rm.is_up:
        return ClusterView(at_ms, process, nodes=tuple(_machine(machine, None, names) for machine in cluster.machines))
    context = rm.core.context
    root = context.scheduler.queue(ROOT)
    return ClusterView(
        at_ms,
        process,
        tuple(_queues(root, 0)) if root is not None else (),
        tuple(_machine(machine, context, names) for machine in cluster.machines),
        tuple(_applications(context, names, cluster.engine.now_ms)),
    )


def _queues(queue: CSQueue, depth: int) -> Iterator[QueueView]:
    usage = queue.usage
    users: tuple[UserView, ...] = ()
    if isinstance(queue, LeafQueue):
        users = tuple(
            UserView(
                user.name,
                user.usage.used(NO_LABEL).memory_mb,
                user.limit.memory_mb,
                queue.users.is_active(user.name),
            )
            for user in queue.users.users.values()
        )
    yield QueueView(
        queue.path,
        depth,
        usage.used(NO_LABEL).memory_mb,
        usage.reserved(NO_LABEL).memory_mb,
        usage.pending(NO_LABEL).memory_mb,
        queue.effective_minimum(NO_LABEL).memory_mb,
        queue.effective_maximum(NO_LABEL).memory_mb,
        users,
    )
    if isinstance(queue, ParentQueue):
        for child in queue.children:
            yield from _queues(child, depth + 1)


def _machine(machine: SimulatedMachine, context: RMContext | None, names: Names) -> NodeView:
    nm = machine.nm
    process = "paused" if nm.is_paused else "running" if nm.is_up else "down"
    known = scheduled = None
    if context is not None:
        known = context.nodes.get(nm.node_id) or context.inactive_nodes.get(nm.node_id)
        scheduled = context.scheduler.nodes.get(nm.node_id)
    state = "not registered" if known is None else known.state.name
    boxes, reserved = _contents(scheduled, names)
    label = scheduled.partition if scheduled is not None else ""
    return NodeView(
        host(machine.host), state, process, machine.size.memory_mb, machine.size.vcores, label, boxes, reserved
    )


def _contents(scheduled: SchedulerNode | None, names: Names) -> tuple[tuple[BoxView, ...], BoxView | None]:
    if scheduled is None:
        return (), None
    boxes = tuple(_box(container, names) for container in scheduled.containers.values())
    reserved = scheduled.reserved_container
    return boxes, None if reserved is None else _box(reserved, names)


def _box(container: RMContainer, names: Names) -> BoxView:
    return BoxView(
        names.container(container.id),
        container.id.application_id.id,
        container.resource.memory_mb,
        container.resource.vcores,
        container.state.name,
        container.is_am,
    )


def _applications(context: RMContext, names: Names, now_ms: int) -> list[ApplicationView]:
    apps = sorted(
        context.apps.values(), key=lambda app: (application_state(app) in FINAL_APPLICATION_STATES, -app.submit_ms)
    )
    shown = sorted(apps[:APPLICATIONS_MAX], key=lambda app: app.application_id)
    return [_application(context, app, names, now_ms) for app in shown]


def _application(context: RMContext, app: RMApp, names: Names, now_ms: int) -> ApplicationView:
    state, name = application_state(app), names.application(app.application_id)
    is_over = state in FINAL_APPLICATION_STATES
    attempt = None if is_over else context.scheduler.attempt_of(app.application_id)
    described = (
        f"{state.name} {final_status(app).name}" if is_over and final_status(app).name != state.name else state.name
    )
    number = app.application_id.id
    if attempt is None or attempt.is_stopped:
        return ApplicationView(name, number, app.user, app.queue, described, 0, 0, 0)
    held = attempt.live_containers.values()
    found = explanation(context, app.application_id, now_ms)
    return ApplicationView(
        name,
        number,
        app.user,
        attempt.leaf.path,
        described,
        len(held),
        sum(container.resource.memory_mb for container in held),
        sum(ask.count for ask in found.asks if ask.resource_name == "*"),
        tuple(_HOST.sub(lambda match: host(match[0]), verdict.sentence) for verdict in found.verdicts),
    )
