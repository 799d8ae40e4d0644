"""Notes what happens in a simulated cluster between two looks: events of cores, decisions, calls without a reply.

A note keeps the events and effects themselves, which are immutable: putting them into words (yarnling.stepping.wording)
takes longer than the run, and a run that is repeated to go back needs no words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rm.core.events import NodeHeartbeat, SubmitApplication
from rm.core.resource_manager import ResourceManagerCore
from rm.scheduler.model.node import SchedulerNode
from rm.view import RefusalSnapshot, RMView
from wire.rpc import Rpc
from yarn.errors import ServerUnavailable
from yarn.ids import ApplicationId
from yarn.machine import Tick
from yarnling.lessons.record import Record
from yarnling.lessons.steps import Change, Step
from yarnling.run.decisions import Decisions
from yarnling.run.names import Names
from yarnling.run.records import Decision, What
from yarnling.simulation.call_observer import Unobserved
from yarnling.simulation.cluster import SimulatedCluster
from yarnling.stepping.steps import SCENE

_NOTED = frozenset({What.RELEASED, What.UNRESERVED})
"""The decisions that the record of the run does not have."""
_SERVED = frozenset({What.ALLOCATED, What.RESERVED})


class CoreStep(Struct, frozen=True):
    """`host` handled `event`. `recorded`: what the run's record says of it; `decisions`: more of the scheduler's.

    `refusals`: why applications got nothing at a heartbeat.
    """

    host: str
    event: object
    effects: tuple[object, ...]
    recorded: tuple[Step, ...]
    decisions: tuple[Decision, ...] = ()
    refusals: tuple[RefusalSnapshot, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if a timer went off and nothing came of it."""
        return isinstance(self.event, Tick) and not (self.effects or self.recorded or self.decisions)


class LostCall(Struct, frozen=True):
    """A call that ended without a reply."""

    source: str
    link: str
    rpc: str
    error: ServerUnavailable


class Note(Struct, frozen=True):
    """An action on the cluster. `by`: who did it, one of OUTSIDE."""

    text: str
    by: str


Noted = CoreStep | LostCall | Note


class Recorder(Unobserved):
    """Notes of a cluster whose trace is `record`. A CallObserver of the cluster's network."""

    def __init__(self, cluster: SimulatedCluster, record: Record, names: Names) -> None:
        self._cluster = cluster
        self._names = names
        self._record = record
        self._noted: list[Noted] = []
        self._calls: dict[int, tuple[str, str, str]] = {}
        self._count = 0
        self._core: ResourceManagerCore | None = None
        self._decisions: Decisions | None = None
        record.nodes = self._nodes
        record.seen = self._stepped
        record.happened = lambda happening: self.note(happening.text, SCENE)
        cluster.network.observer = self

    def note(self, text: str, by: str) -> None:
        """Note something that no core did."""
        self._noted.append(Note(text, by))

    def take(self) -> list[Noted]:
        """The notes since the last call."""
        noted, self._noted = self._noted, []
        return noted

    def _stepped(self, now_ms: int, host: str, event: object, effects: Sequence[object]) -> None:
        if isinstance(event, SubmitApplication):
            self._name(event.context.application_id)
        recorded = tuple(step for step in self._record.recorded if not isinstance(step, Change))
        self._record.recorded.clear()
        step = CoreStep(host, event, tuple(effects), recorded)
        if host == self._cluster.rm.name:
            step = self._with_decisions(step, now_ms)
        if not step.is_empty:
            self._noted.append(step)

    def _nodes(self) -> Collection[SchedulerNode]:
        return self._cluster.rm.core.context.scheduler.nodes.values()

    def _name(self, application_id: ApplicationId) -> None:
        """Tell applications apart that were submitted under one name."""
        names = self._names.applications
        name = names[application_id]
        if any(other == name and known != application_id for known, other in names.items()):
            names[application_id] = f"{name}.{application_id.id}"

    def _with_decisions(self, step: CoreStep, now_ms: int) -> CoreStep:
        core = self._cluster.rm.core
        if self._decisions is None or self._core is not core:
            self._core, self._decisions = core, Decisions(RMView(core))
        decided = list(self._decisions.after(step.event, step.effects, now_ms))
        noted = tuple(decision for decision in decided if decision.what in _NOTED)
        if not isinstance(step.event, NodeHeartbeat):
            return replace(step, decisions=noted)
        served = {ApplicationId.parse(each.application) for each in decided if each.what in _SERVED}
        refusals = tuple(RMView(core).refusals_in_force(step.event.request.node_id, served))
        return replace(step, decisions=noted, refusals=refusals)

    # Calls

    def called(self, source: str, link: str, rpc: Rpc[Any, Any], request: object) -> int:
        self._count += 1
        self._calls[self._count] = (source, link, rpc.name)
        return self._count

    def over(self, call: int, outcome: object) -> None:
        known = self._calls.pop(call, None)
        if known is not None and isinstance(outcome, ServerUnavailable):
            self._noted.append(LostCall(*known, outcome))
