"""The visible state of a core between two steps, under the recordings' keys (listed in their README)."""

from __future__ import annotations

import math

from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.queue import CSQueue, ParentQueue
from rm.scheduler.model.rm_container import RMContainer
from tests.conformance.cluster import RecordedApp, RecordedCluster
from tests.conformance.nodes import RecordedNode
from tests.conformance.recording import View
from tests.conformance.replies import Names, container_name, show
from yarn.containers import ANY
from yarn.nodes import NO_LABEL
from yarn.settings.scheduler import ROOT


def look(cluster: RecordedCluster) -> View:
    """{key: value} of queues, users, nodes, applications, containers and reservations."""
    view: View = {}
    _look_at_queue(cluster.core.scheduler.queues[ROOT], view)
    for host, node in cluster.nodes.items():
        _look_at_node(cluster, host, node, view)
    for name, app in cluster.apps.items():
        _look_at_app(cluster, name, app, view)
    return view


def _look_at_queue(queue: CSQueue, view: View) -> None:
    at = f"queue/{queue.path}"
    partitions = sorted({NO_LABEL, *queue.capacities.partitions(), *queue.usage.partitions()} - {ANY})
    for partition in partitions:
        _look_at_partition(queue, partition, f"{at}@{partition}", view)
    view[f"{at}/state"] = queue.state.name
    view[f"{at}/containers"] = queue.container_count
    if isinstance(queue, LeafQueue):
        view[f"{at}/active_apps"] = queue.active_count
        view[f"{at}/pending_apps"] = queue.pending_count
        _look_at_users(queue, partitions, view)
    if isinstance(queue, ParentQueue):
        for child in queue.children:
            _look_at_queue(child, view)


def _look_at_partition(queue: CSQueue, partition: str, at: str, view: View) -> None:
    usage, capacities = queue.usage, queue.capacities.at(partition)
    view[f"{at}/used"] = show(usage.used(partition))
    view[f"{at}/reserved"] = show(usage.reserved(partition))
    view[f"{at}/pending"] = show(usage.pending(partition))
    view[f"{at}/am_used"] = show(usage.am_used(partition))
    view[f"{at}/guaranteed"] = show(queue.effective_minimum(partition))
    view[f"{at}/maximum"] = show(queue.effective_maximum(partition))
    view[f"{at}/absolute_capacity"] = _number(capacities.absolute_capacity)
    view[f"{at}/absolute_maximum_capacity"] = _number(capacities.absolute_maximum_capacity)
    view[f"{at}/used_capacity"] = _number(capacities.used_capacity)
    view[f"{at}/absolute_used_capacity"] = _number(capacities.absolute_used_capacity)
    if isinstance(queue, LeafQueue):
        view[f"{at}/am_limit"] = show(usage.am_limit(partition))


def _look_at_users(leaf: LeafQueue, partitions: list[str], view: View) -> None:
    for name, user in leaf.users.users.items():
        at = f"user/{leaf.path}/{name}"
        activity = "active" if leaf.users.is_active(name) else "idle"
        view[at] = f"{activity} apps {user.active_applications}+{user.pending_applications}"
        for partition in partitions:
            view[f"{at}@{partition}/used"] = show(user.usage.used(partition))
        view[f"{at}/limit"] = show(user.limit)


def _look_at_node(cluster: RecordedCluster, host: str, recorded: RecordedNode, view: View) -> None:
    at = f"node/{host}"
    rm_node = cluster.core.context.nodes.get(recorded.node_id)
    view[f"{at}/state"] = "LOST" if rm_node is None else rm_node.state.name
    node = cluster.core.scheduler.nodes.get(recorded.node_id)
    if node is None:
        return
    view[f"{at}/total"] = show(node.total)
    view[f"{at}/used"] = show(node.allocated)
    view[f"{at}/available"] = show(node.unallocated)
    if node.partition:
        view[f"{at}/label"] = node.partition
    if not node.total_killable.is_none():
        view[f"{at}/killable"] = show(node.total_killable)
    if node.reserved_container is not None:
        reserved = node.reserved_container
        view[f"{at}/reserved"] = f"{container_name(cluster.names, reserved.id)} {show(reserved.resource)}"


def _look_at_app(cluster: RecordedCluster, name: str, recorded: RecordedApp, view: View) -> None:
    app = cluster.core.context.apps.get(recorded.application_id)
    if app is None:
        return
    at = f"app/{name}"
    view[f"{at}/state"] = app.state.name
    view[f"{at}/queue"] = app.queue
    if app.current_attempt is None:
        return
    attempt = app.current_attempt
    view[f"{at}/attempt"] = f"{attempt.attempt_id.attempt} {attempt.state.name}"
    application = cluster.core.scheduler.applications.get(app.application_id)
    scheduled = None if application is None else application.current_attempt
    if scheduled is not None and not scheduled.is_stopped:
        _look_at_attempt(cluster.names, at, scheduled, view)


def _look_at_attempt(names: Names, at: str, attempt: FiCaSchedulerApp, view: View) -> None:
    for partition in {NO_LABEL, *attempt.usage.partitions()} - {ANY}:
        view[f"{at}@{partition}/pending"] = show(attempt.usage.pending(partition))
    for container in attempt.live_containers.values():
        label = f" label {container.partition}" if container.partition else ""
        master = " master" if container.is_am else ""
        view[f"container/{container_name(names, container.id)}"] = (
            f"{_place(container)}{label} {container.state.name}{master}"
        )
    for container in attempt.reserved_containers:
        view[f"reserved/{container_name(names, container.id)}"] = _place(container)


def _place(container: RMContainer) -> str:
    return f"{container.node_id.host} [{show(container.resource)}] priority {container.priority}"


def _number(value: float) -> float | str:
    """NaN is recorded as text, which equals itself."""
    return "NaN" if math.isnan(value) else value
