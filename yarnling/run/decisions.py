"""The decisions of a scheduler, found by looking at a ResourceManager's core after each of its steps.

A decision is no effect of the core: what was allocated is known from the containers of the node whose heartbeat was
handled, and what was refused from the refusals that the scheduler keeps for `explain`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from rm.core.effects import Preempted
from rm.core.events import NodeHeartbeat, RegisterNode
from rm.view import ContainerSnapshot, NodeSnapshot, RefusalSnapshot, RMView
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.machine import Tick
from yarnling.run.records import Decision, Sample, What

_Held: TypeAlias = dict[ContainerId, Decision]
SAMPLE_INTERVAL_MS = 100
"""The least time between two looks at the use of queues and applications."""


class Decisions:
    """Compares the scheduler with what it was after the step before."""

    def __init__(self, view: RMView) -> None:
        self._view = view
        self._held: dict[NodeId, _Held] = {}
        self._awaited: set[NodeId] = set()
        self._reserved: dict[NodeId, Decision] = {}
        self._refused: dict[tuple[ApplicationId, NodeId | None], str] = {}
        self._sampled_ms: int | None = None
        self._of_queues: dict[str, Sample] = {}
        self._of_attempts: dict[ApplicationAttemptId, Sample] = {}

    def restarted(self, view: RMView) -> None:
        """Continue with the view of a restarted ResourceManager.

        Containers that it recovers go on too. Those of a node that has not registered with it yet are not released.
        """
        self._view = view
        self._awaited = set(self._held)

    def after(self, event: object, effects: Sequence[object], now_ms: int) -> Iterator[Decision]:
        """The decisions in the step that has handled `event`."""
        for effect in effects:
            if isinstance(effect, Preempted):
                yield self._preempted(effect, now_ms)
        node_ids = self._view.node_ids()
        self._awaited.difference_update(node_ids)
        visited: Iterable[NodeId] = {*self._held, *node_ids} if isinstance(event, Tick) else ()
        if isinstance(event, RegisterNode | NodeHeartbeat):
            visited = (event.request.node_id,)
        for node_id in sorted(set(visited) - self._awaited):
            yield from self._on_node(node_id, self._view.node(node_id), now_ms)
        if isinstance(event, NodeHeartbeat):
            for refusal in self._view.refusals(event.request.node_id, now_ms):
                yield from self._refusal(refusal, now_ms)

    def samples(self, now_ms: int) -> Iterator[Sample]:
        """The queues and applications whose use has changed since the last look, if it is time for a look."""
        if self._sampled_ms is None or now_ms >= self._sampled_ms + SAMPLE_INTERVAL_MS:
            self._sampled_ms = now_ms
            yield from self._sample_queues(now_ms)
            yield from self._sample_attempts(now_ms)

    def _sample_queues(self, now_ms: int) -> Iterator[Sample]:
        for queue in self._view.queues():
            used, limit, guaranteed = queue.used.memory_mb, queue.maximum.memory_mb, queue.guaranteed.memory_mb
            reserved, pending = queue.reserved.memory_mb, queue.pending.memory_mb
            sample = Sample(0, queue.path, used, limit, guaranteed, reserved, pending)
            if self._of_queues.get(queue.path) != sample:
                self._of_queues[queue.path] = sample
                yield replace(sample, at_ms=now_ms)

    def _sample_attempts(self, now_ms: int) -> Iterator[Sample]:
        """The attempts whose headroom, use or limit has changed, and zeros for those that ended."""
        found = {
            one.attempt_id: Sample(
                0,
                one.queue,
                one.used.memory_mb,
                one.limit.memory_mb,
                one.guaranteed.memory_mb,
                application=str(one.attempt_id.application_id),
                user=one.user,
                user_used_mb=one.user_used.memory_mb,
                headroom_mb=one.headroom.memory_mb,
            )
            for one in self._view.uses()
        }
        for attempt_id, last in self._of_attempts.items():
            if attempt_id not in found:
                yield replace(last, at_ms=now_ms, used_mb=0, user_used_mb=0, limit_mb=0, headroom_mb=0)
        for attempt_id, sample in found.items():
            if self._of_attempts.get(attempt_id) != sample:
                yield replace(sample, at_ms=now_ms)
        self._of_attempts = found

    def _on_node(self, node_id: NodeId, node: NodeSnapshot | None, now_ms: int) -> Iterator[Decision]:
        before, now = self._held.get(node_id, {}), node.containers if node is not None else ()
        held = {one.container_id: before.get(one.container_id) or _decided(What.ALLOCATED, one, now_ms) for one in now}
        reserved = node.reserved if node is not None else None
        was_reserved = self._reserved.pop(node_id, None)
        if reserved is not None:
            self._reserved[node_id] = _decided(What.RESERVED, reserved, now_ms)
        is_same = (
            reserved is not None and was_reserved is not None and was_reserved.container == str(reserved.container_id)
        )
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

    def _preempted(self, effect: Preempted, now_ms: int) -> Decision:
        container = self._view.container(effect.container_id)
        reason = f"{effect.step}: {effect.reason}" + (f" for {effect.serves}" if effect.serves else "")
        if container is None:
            id_ = effect.container_id
            return Decision(now_ms, What.PREEMPTED, str(id_.application_id), container=str(id_), reason=reason)
        return replace(_decided(What.PREEMPTED, container, now_ms), reason=reason)

    def _refusal(self, refusal: RefusalSnapshot, now_ms: int) -> Iterator[Decision]:
        """The present refusal, unless it is the same as the last one."""
        key = refusal.application_id, refusal.node_id
        if self._refused.get(key) == refusal.reason:
            return
        self._refused[key] = refusal.reason
        node = "" if refusal.node_id is None else str(refusal.node_id)
        application = str(refusal.application_id)
        yield Decision(now_ms, What.REFUSED, application, node, queue=refusal.queue, reason=refusal.reason)


def _decided(what: What, container: ContainerSnapshot, now_ms: int) -> Decision:
    return Decision(
        now_ms,
        what,
        str(container.container_id.application_id),
        str(container.node_id),
        str(container.container_id),
        container.queue,
        container.resource.memory_mb,
        container.resource.vcores,
    )
