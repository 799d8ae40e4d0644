"""Invariants of what a step books, compared with the step before: I-07, I-10, I-46, I-64; of sizes: I-01, I-68."""

from __future__ import annotations

from collections.abc import Iterator

from rm.core.context import RMContext
from rm.core.effects import Effect
from rm.core.events import (
    Allocate,
    Event,
    MoveApplication,
    NodeHeartbeat,
    RefreshNodes,
    RegisterNode,
    StateLoaded,
    UpdateNodeResource,
)
from rm.core.rm_node import RMNode
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.rm_container import RMContainerState
from yarn.ids import ContainerId, NodeId
from yarn.machine import Reply
from yarn.protocols.master import AllocateResponse
from yarn.resource import Resource
from yarn.states import ContainerUpdateType, NodeState

_TAKES_REPORTS = (NodeState.RUNNING, NodeState.DECOMMISSIONING)
_TAKES_UPDATES = (NodeState.RUNNING, NodeState.UNHEALTHY)


class BookingAudit:
    """Compares bookings with those of the last step: I-07, I-10, I-46 and I-64."""

    def __init__(self, context: RMContext) -> None:
        self._context = context
        self._placing_from_ms = 0
        self._running: dict[NodeId, tuple[RMNode, SchedulerNode, set[ContainerId]]] = {}
        self._am_used: dict[tuple[str, str], Resource] = {}
        self._runnable: dict[str, int] = {}

    def violations(self, event: Event, effects: list[Effect], booked_on: list[NodeId]) -> Iterator[str]:
        context = self._context
        if isinstance(event, StateLoaded) and event.state.applications and context.settings.work_preserving:
            self._placing_from_ms = context.now_ms + context.scheduler.context.settings.settle_ms
        if context.now_ms < self._placing_from_ms:
            for node_id in booked_on:
                yield f"I-46: a container was booked on {node_id} {self._placing_from_ms - context.now_ms} ms too early"
        yield from self._freed()
        started = [*self._activated(), *self._started()]
        # CapacityScheduler.moveApplication asks neither limit: the queue may be at both.
        if not isinstance(event, MoveApplication):
            yield from started

    def _freed(self) -> Iterator[str]:
        """I-07: resources of running containers are not free. Nodes that changed in this step are not compared.

        A container counts as running from the heartbeat after its NM registered with it
        (RMNodeImpl.ReconnectNodeTransition). A node that reports a container as ended, and then as running, frees its
        resources itself.
        """
        nodes, scheduled = self._context.nodes, self._context.scheduler.nodes
        running: dict[NodeId, tuple[RMNode, SchedulerNode, set[ContainerId]]] = {}
        for node_id, node in nodes.items():
            place = scheduled.get(node_id)
            if place is None:
                continue
            launched = set(node.launched).difference(node.newly_launched)
            freed = launched.difference(place.containers)
            before = self._running.get(node_id)
            if freed and before is not None and before[0] is node and before[1] is place:
                for container_id in sorted((freed & before[2]) - node.completed):
                    yield f"I-07: {container_id} still runs on {node_id}, and its resources are free"
            running[node_id] = node, place, launched - freed
        self._running = running

    def _activated(self) -> Iterator[str]:
        """I-10: the AM limits hold. The first application of a queue may always run (activateApplications)."""
        fits_in = self._context.scheduler.context.calculator.fits_in
        for leaf in self._leaves():
            for partition in leaf.usage.partitions():
                used, limit = leaf.usage.am_used(partition), leaf.am_limit(partition)
                before = self._am_used.get((leaf.path, partition), used)
                self._am_used[leaf.path, partition] = used
                if leaf.active_count > 1 and not fits_in(used, before) and not fits_in(used, limit):
                    yield f"I-10: the AMs of {leaf.path} use {used} after {before}, and may use {limit}"

    def _started(self) -> Iterator[str]:
        for path, queue in self._context.scheduler.queues.items():
            count, most = queue.runnable_total(), queue.configuration.max_parallel_apps
            if count > max(most, self._runnable.get(path, 0)):
                yield f"I-64: {count} applications run in {path}, and its max-parallel-apps is {most}"
            self._runnable[path] = count

    def _leaves(self) -> Iterator[LeafQueue]:
        return (queue for queue in self._context.scheduler.queues.values() if isinstance(queue, LeafQueue))


class SizeAudit:
    """Checks sizes. I-68: a reported increase stays, and a decrease is sent to the node. I-01: a node's size."""

    def __init__(self, context: RMContext) -> None:
        self._context = context

    def violations(self, event: Event, effects: list[Effect], booked_on: list[NodeId]) -> Iterator[str]:
        if isinstance(event, NodeHeartbeat):
            yield from self._of_report(event)
        elif isinstance(event, Allocate):
            for effect in effects:
                if isinstance(effect, Reply) and isinstance(effect.value, AllocateResponse):
                    yield from self._of_reply(effect.value)
        elif isinstance(event, RegisterNode | RefreshNodes | UpdateNodeResource):
            yield from self._of_nodes()

    def _of_nodes(self) -> Iterator[str]:
        """Check that a running node's total is the size that it registered with, or that an administrator set."""
        scheduler = self._context.scheduler
        for node in self._context.nodes.values():
            known = scheduler.nodes.get(node.node_id)
            if known is None or node.state is not NodeState.RUNNING:
                continue
            if known.total != scheduler.resource_types.complete(node.capability):
                yield f"I-01: {node.node_id} has {node.capability}, and the scheduler takes it to have {known.total}"

    def _of_report(self, event: NodeHeartbeat) -> Iterator[str]:
        """Check that a reported increase no longer expires, unless the report did not reach the scheduler."""
        node = self._context.nodes.get(event.request.node_id)
        if node is None or node.state not in _TAKES_REPORTS or not event.request.health.healthy:
            return
        for reported in event.request.increased_containers:
            container = self._context.scheduler.container(reported.id)
            if container is None or container.state is not RMContainerState.RUNNING:
                continue
            if container.resource == reported.resource and reported.id in self._context.increase_expiry:
                yield f"I-68: {reported.id} has {reported.resource} on its node, and that still expires"

    def _of_reply(self, reply: AllocateResponse) -> Iterator[str]:
        """Check that each decrease in a reply is sent to the node. A reply that is sent again may be outdated.

        A node that is being decommissioned is sent no updates: only RUNNING has a row for them (RMNodeImpl).
        """
        for updated in reply.updated_containers:
            container = self._context.scheduler.container(updated.container.id)
            node = self._context.nodes.get(updated.container.node_id)
            is_current = container is not None and container.container.version == updated.container.version
            if updated.type is not ContainerUpdateType.DECREASE_RESOURCE or not is_current:
                continue
            if node is not None and node.state in _TAKES_UPDATES and updated.container.id not in node.to_update:
                yield f"I-68: {updated.container.id} shrinks to {updated.container.resource}, and its node is not told"
