"""The core's own auditor: after each step, whether all adds up (yarn.yarnling.check-invariants).

What must hold always ends the process: an event log then ends with the step that broke it. What Hadoop's decisions
break now and then is told as a warning, once for as long as it lasts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rm.core.effects import Effect
from rm.core.events import Event
from rm.core.step_watch import StepWatch
from rm.scheduler.model.notices import Notice
from rm.scheduler.placement.commit_watch import CommitWatch
from rm.scheduler.view.invariants import BROKEN_BY_HADOOP, violations
from yarn.machine import InvariantsBroken, Reply, Warn
from yarn.protocols.master import AllocateResponse

if TYPE_CHECKING:
    from rm.core.context import RMContext

REMEMBERED_MAX = 1000
"""Responses that may be told again, the last one of each master; of more masters a lost one is looked at anew."""


class Audit:
    """Checks one ResourceManager's core. Its cost grows with all that the core holds, at each step."""

    def __init__(self, context: RMContext) -> None:
        self._scheduler = context.scheduler
        self._watch = CommitWatch(context.scheduler.context, context.scheduler.placement)
        self._steps = StepWatch(context)
        self._warned: frozenset[str] = frozenset()
        self._told: dict[int, AllocateResponse] = {}

    def look_at_notice(self, notice: Notice) -> None:
        """Called with all that the scheduler tells."""
        self._watch.look_at_notice(notice)

    def look_at_step(self, event: Event, effects: list[Effect]) -> list[Effect]:
        """Called at the end of the step of `event`; the effects to add to those of the step."""
        booked_on = self._watch.take_booked_nodes()
        found = [
            *self._watch.take(),
            *self._faults_of_replies(effects),
            *self._steps.look_at_step(event, effects, booked_on),
            *violations(self._scheduler),
        ]
        known = frozenset(_number(text) for text in found) & BROKEN_BY_HADOOP.keys()
        told: list[Effect] = [
            Warn(f"invariant broken, as Hadoop breaks it where {BROKEN_BY_HADOOP[_number(text)]}: {text}")
            for text in found
            if _number(text) in known - self._warned
        ]
        self._warned = known
        broken = tuple(text for text in found if _number(text) not in known)
        return [*told, InvariantsBroken(broken)] if broken else told

    def _faults_of_replies(self, effects: Iterable[Effect]) -> Iterator[str]:
        """I-12: no headroom below nothing, none above the cluster; a reply that got lost is told again as it was."""
        cluster = self._scheduler.cluster_resource.memory_mb
        for effect in effects:
            if isinstance(effect, Reply) and isinstance(effect.value, AllocateResponse) and self._is_new(effect.value):
                told = effect.value.headroom.memory_mb
                if not 0 <= told <= max(cluster, 0):
                    yield f"I-12: call {effect.call}: a headroom of {told} MB was told in a cluster of {cluster} MB"

    def _is_new(self, response: AllocateResponse) -> bool:
        """Whether this very response was not told before."""
        key = id(response)
        if self._told.pop(key, None) is response:
            self._told[key] = response
            return False
        self._told[key] = response
        if len(self._told) > REMEMBERED_MAX:
            del self._told[next(iter(self._told))]
        return True


def _number(violation: str) -> str:
    return violation.split(":")[0]
