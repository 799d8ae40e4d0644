"""The cluster after a step: queues, nodes with what is on them, applications and why they wait. Plain data.

Reading it changes nothing, so a run that is looked at is the same run.
"""

from __future__ import annotations

import re

from msgspec import Struct

from rm.view import ApplicationSnapshot, ContainerSnapshot, QueueSnapshot, RMView
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
    """The cluster at one moment.

    `rm`: the state of the ResourceManager's process. While it is down, its last known state is not shown.
    """

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
    view = RMView(rm.core)
    return ClusterView(
        at_ms,
        process,
        tuple(_queue(queue, view) for queue in view.queues()),
        tuple(_machine(machine, view, names) for machine in cluster.machines),
        tuple(_applications(view, names, cluster.engine.now_ms)),
    )


def _queue(queue: QueueSnapshot, view: RMView) -> QueueView:
    return QueueView(
        queue.path,
        queue.path.count("."),
        queue.used.memory_mb,
        queue.reserved.memory_mb,
        queue.pending.memory_mb,
        queue.guaranteed.memory_mb,
        queue.maximum.memory_mb,
        tuple(
            UserView(user.name, user.used.memory_mb, user.limit.memory_mb, user.is_active)
            for user in view.users(queue.path)
        ),
    )


def _machine(machine: SimulatedMachine, view: RMView | None, names: Names) -> NodeView:
    nm = machine.nm
    process = "paused" if nm.is_paused else "running" if nm.is_up else "down"
    state = "" if view is None else view.node_state(nm.node_id)
    node = None if view is None else view.node(nm.node_id)
    boxes = () if node is None else tuple(_box(container, names) for container in node.containers)
    return NodeView(
        host(machine.host),
        state or "not registered",
        process,
        machine.size.memory_mb,
        machine.size.vcores,
        "" if node is None else node.label,
        boxes,
        None if node is None or node.reserved is None else _box(node.reserved, names),
    )


def _box(container: ContainerSnapshot, names: Names) -> BoxView:
    return BoxView(
        names.container(container.container_id),
        container.container_id.application_id.id,
        container.resource.memory_mb,
        container.resource.vcores,
        container.state,
        container.is_am,
    )


def _applications(view: RMView, names: Names, now_ms: int) -> list[ApplicationView]:
    apps = sorted(view.applications(), key=lambda app: (app.state in FINAL_APPLICATION_STATES, -app.submit_ms))
    shown = sorted(apps[:APPLICATIONS_MAX], key=lambda app: app.application_id)
    return [_application(view, app, names, now_ms) for app in shown]


def _application(view: RMView, app: ApplicationSnapshot, names: Names, now_ms: int) -> ApplicationView:
    state, name, number = app.state.name, names.application(app.application_id), app.application_id.id
    is_over = app.state in FINAL_APPLICATION_STATES
    described = f"{state} {app.final_status.name}" if is_over and app.final_status.name != state else state
    held = None if is_over else view.containers_of(app.application_id)
    if held is None:
        return ApplicationView(name, number, app.user, app.queue, described, 0, 0, 0)
    pending, waits = view.waits(app.application_id, now_ms)
    return ApplicationView(
        name,
        number,
        app.user,
        app.queue,
        described,
        len(held),
        sum(container.resource.memory_mb for container in held),
        pending,
        tuple(_HOST.sub(lambda match: host(match[0]), sentence) for sentence in waits),
    )
