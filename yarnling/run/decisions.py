"""The decisions of a scheduler, found by looking at a ResourceManager's core after each of its steps.

A decision is no effect of the core: what was allocated is known from the containers of the node whose heartbeat was
handled, and what was refused from the refusals that the scheduler keeps for `explain`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from rm.core.effects import Preempted
from rm.core.events import NodeHeartbeat
from rm.core.resource_manager import ResourceManagerCore
from rm.scheduler.capacity.limits import present_headroom, present_limit
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.context import RESPECT
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.refusals import Reason, Refusal
from rm.scheduler.model.rm_container import RMContainer
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.machine import Tick
from yarn.nodes import NO_LABEL
from yarnling.run.records import Decision, Sample, What

_Held: TypeAlias = dict[ContainerId, Decision]
_NOT_SHOWN = frozenset({Reason.APPLICATION_SATISFIED, Reason.QUEUE_SATISFIED, Reason.REQUEST_SATISFIED})
"""Nothing was requested, so nothing was refused."""
SAMPLE_INTERVAL_MS = 100
"""The least time between two looks at the use of queues and applications."""


class Decisions:
    """Compares the scheduler with what it was after the step before."""

    def __init__(self, core: ResourceManagerCore) -> None:
        self._core = core
        self._held: dict[NodeId, _Held] = {}
        self._awaited: set[NodeId] = set()
        self._reserved: dict[NodeId, Decision] = {}
        self._refused: dict[tuple[ApplicationId, NodeId | None], str] = {}
        self._use: dict[str, Sample] = {}
        self._sampled_ms: int | None = None
        self._headrooms: dict[ApplicationAttemptId, Sample] = {}

    def restarted(self, core: ResourceManagerCore) -> None:
        """Go on with the core of a restarted ResourceManager.

        Containers that it recovers go on too. Those of a node that has not registered with it yet are not released.
        """
        self._core = core
        self._awaited = set(self._held)

    def after(self, event: object, effects: Sequence[object], now_ms: int) -> Iterator[Decision]:
        """The decisions in the step that has handled `event`."""
        for effect in effects:
            if isinstance(effect, Preempted):
                yield self._preempted(effect, now_ms)
        nodes = self._core.scheduler.nodes
        self._awaited -= nodes.keys()
        visited: Iterable[NodeId] = self._held.keys() | nodes.keys() if isinstance(event, Tick) else ()
        if isinstance(event, NodeHeartbeat):
            visited = (event.request.node_id,)
        for node_id in sorted(set(visited) - self._awaited):
            yield from self._on_node(node_id, nodes.get(node_id), now_ms)
        if isinstance(event, NodeHeartbeat):
            yield from self._refusals(event.request.node_id, now_ms)

    def samples(self, now_ms: int) -> Iterator[Sample]:
        """The queues and applications whose use has changed since the last look, if it is time for a look."""
        if self._sampled_ms is None or now_ms >= self._sampled_ms + SAMPLE_INTERVAL_MS:
            self._sampled_ms = now_ms
            yield from self._queues(now_ms)
            yield from self._attempts(now_ms)

    def _queues(self, now_ms: int) -> Iterator[Sample]:
        for path, queue in self._core.scheduler.queues.items():
            usage = queue.usage
            amounts = (usage.used(""), usage.reserved(""), usage.pending(""))
            used, reserved, pending = (amount.memory_mb for amount in amounts)
            limit, guaranteed = queue.effective_maximum("").memory_mb, queue.effective_minimum("").memory_mb
            use = Sample(0, path, used, limit, guaranteed, reserved, pending)
            if self._use.get(path) != use:
                self._use[path] = use
                yield replace(use, at_ms=now_ms)

    def _attempts(self, now_ms: int) -> Iterator[Sample]:
        """The attempts whose headroom, use or limit has changed, and zeros for those that ended."""
        attempts = [application.current_attempt for application in self._core.scheduler.applications.values()]
        running = [one for one in attempts if one is not None and not one.is_stopped]
        found = {one.attempt_id: _headroom(one, one.leaf) for one in running if isinstance(one.leaf, LeafQueue)}
        for attempt_id, last in self._headrooms.items():
            if attempt_id not in found:
                yield replace(last, at_ms=now_ms, used_mb=0, user_used_mb=0, limit_mb=0, headroom_mb=0)
        for attempt_id, one in found.items():
            if self._headrooms.get(attempt_id) != one:
                yield replace(one, at_ms=now_ms)
        self._headrooms = found

    def _on_node(self, node_id: NodeId, node: SchedulerNode | None, now_ms: int) -> Iterator[Decision]:
        before, now = self._held.get(node_id, {}), node.containers if node is not None else {}
        held = {id_: before.get(id_) or self._decided(What.ALLOCATED, one, now_ms) for id_, one in now.items()}
        reserved = node.reserved_container if node is not None else None
        was_reserved = self._reserved.pop(node_id, None)
        if reserved is not None:
            self._reserved[node_id] = self._decided(What.RESERVED, reserved, now_ms)
        is_same = reserved is not None and was_reserved is not None and str(reserved.id) == was_reserved.container
        if was_reserved is not None and not is_same:
            yield replace(was_reserved, at_ms=now_ms, what=What.UNRESERVED)
        for id_, decision in before.items():
            if id_ not in held:
                yield replace(decision, at_ms=now_ms, what=What.RELEASED)
        for id_, decision in held.items():
            if id_ not in before:
                self._refused.pop((id_.application_id, node_id), None)
                yield decision
        if reserved is not None and not is_same:
            yield self._reserved[node_id]
        self._held[node_id] = held

    def _decided(self, what: What, container: RMContainer, now_ms: int) -> Decision:
        resource = container.resource
        return Decision(
            now_ms,
            what,
            str(container.id.application_id),
            str(container.node_id),
            str(container.id),
            container.queue,
            resource.memory_mb,
            resource.vcores,
        )

    def _preempted(self, effect: Preempted, now_ms: int) -> Decision:
        container = self._core.scheduler.container(effect.container_id)
        reason = f"{effect.step}: {effect.reason}" + (f" for {effect.serves}" if effect.serves else "")
        if container is None:
            id_ = effect.container_id
            return Decision(now_ms, What.PREEMPTED, str(id_.application_id), container=str(id_), reason=reason)
        return replace(self._decided(What.PREEMPTED, container, now_ms), reason=reason)

    # Refusals

    def _refusals(self, node_id: NodeId, now_ms: int) -> Iterator[Decision]:
        for application_id, application in self._core.scheduler.applications.items():
            attempt = application.current_attempt
            if attempt is None or attempt.is_stopped or not isinstance(attempt.leaf, LeafQueue):
                continue
            held_back = attempt.leaf.am_refusal(attempt)
            if held_back is not None:
                yield from self._refusal(application_id, attempt, None, held_back, now_ms)
            elif attempt.usage.is_pending():
                refusal = attempt.leaf.last_refusals(attempt).get(node_id)
                if refusal is not None and refusal.at_ms == now_ms and refusal.reason not in _NOT_SHOWN:
                    yield from self._refusal(application_id, attempt, node_id, refusal, now_ms)

    def _refusal(
        self,
        application_id: ApplicationId,
        attempt: FiCaSchedulerApp,
        node_id: NodeId | None,
        refusal: Refusal,
        now_ms: int,
    ) -> Iterator[Decision]:
        """A refusal, unless the last one was the same."""
        key, reason = (application_id, node_id), str(refusal)
        if self._refused.get(key) == reason:
            return
        self._refused[key] = reason
        node = "" if node_id is None else str(node_id)
        yield Decision(now_ms, What.REFUSED, str(application_id), node, queue=attempt.leaf.path, reason=reason)


def _headroom(attempt: FiCaSchedulerApp, leaf: LeafQueue) -> Sample:
    user = leaf.users.users.get(attempt.user)
    return Sample(
        0,
        leaf.path,
        attempt.usage.used(NO_LABEL).memory_mb,
        present_limit(leaf.users, attempt.user, NO_LABEL, RESPECT).memory_mb,
        leaf.effective_minimum(NO_LABEL).memory_mb,
        application=str(attempt.attempt_id.application_id),
        user=attempt.user,
        user_used_mb=0 if user is None else user.usage.used(NO_LABEL).memory_mb,
        headroom_mb=present_headroom(attempt).memory_mb,
    )
