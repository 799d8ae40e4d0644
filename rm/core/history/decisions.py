"""The decisions of the last minutes, from what the containers themselves carry: nothing else is kept for them.

A container knows when it was reserved and placed and which rounds of preemption chose it; the last ones that ended are
kept for explanations (rm.scheduler.model.ended_containers).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from rm.core.context import RMContext
from rm.scheduler.model.rm_container import RMContainer, RMContainerState

_PREEMPTION = {"requested": "asked to release", "killed": "preempted", "killable": "marked to be killed"}
_NOT_PLACED = frozenset({RMContainerState.NEW, RMContainerState.RESERVED})


class ContainerDecision(Struct, frozen=True):
    """An act of the scheduler on a container, at `at_ms`; `what` is a word or two: "placed", "reserved", "ended" ..."""

    at_ms: int
    what: str
    container: RMContainer


def decisions_since(context: RMContext, from_ms: int) -> Iterator[ContainerDecision]:
    """Yield each decision on a container that lives, is reserved, or is among the last that ended, in no order."""
    scheduler = context.scheduler
    for node in list(scheduler.nodes.values()):
        for container in list(node.containers.values()):
            yield from _of(container, from_ms)
        if node.reserved_container is not None:
            yield from _of(node.reserved_container, from_ms)
    for container, ended_ms in list(scheduler.context.ended.last_first()):
        if ended_ms < from_ms:
            return
        yield from _of(container, from_ms)
        yield ContainerDecision(ended_ms, "ended", container)


def _of(container: RMContainer, from_ms: int) -> Iterator[ContainerDecision]:
    origin = container.origin
    is_placed = container.state not in _NOT_PLACED
    reserved_ms = container.started_ms if not is_placed else origin.reserved_ms if origin is not None else None
    if reserved_ms is not None and reserved_ms >= from_ms:
        yield ContainerDecision(reserved_ms, "reserved", container)
    if is_placed and container.started_ms >= from_ms:
        yield ContainerDecision(container.started_ms, "placed", container)
    for step in container.preemption_steps:
        if step.at_ms >= from_ms:
            yield ContainerDecision(step.at_ms, _PREEMPTION.get(step.step, step.step), container)
