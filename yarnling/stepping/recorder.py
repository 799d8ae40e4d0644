"""Notes what happens in a simulated cluster between two looks: events of cores, decisions, calls without a reply.

A note keeps the events and effects themselves, which are immutable: putting them into words (yarnling.stepping.wording)
takes longer than the run, and a run that is repeated to go back needs no words.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rm.core.events import NodeHeartbeat, SubmitApplication
from rm.view import RefusalSnapshot, RMView
from wire.event_log import LoggedStep
from wire.rpc import Rpc
from yarn.errors import ServerUnavailable
from yarn.ids import ApplicationId
from yarn.machine import Tick
from yarnling.run.records import Decision, What
from yarnling.run.trace import Trace
from yarnling.simulation.account import Account, Told
from yarnling.simulation.call_observer import CallObserver
from yarnling.simulation.cluster import SimulatedCluster
from yarnling.stepping.steps import SCENE

_SERVED = frozenset({What.ALLOCATED, What.RESERVED})


class CoreStep(Struct, frozen=True):
    """A step of a core.

    `host` handled `event`. `told`: the account of it, without state changes; `decisions`: the scheduler's.
    `refusals`: why applications got nothing at a heartbeat.
    """

    host: str
    event: object
    effects: tuple[object, ...]
    told: tuple[Told, ...]
    decisions: tuple[Decision, ...] = ()
    refusals: tuple[RefusalSnapshot, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if a timer went off and nothing came of it."""
        return isinstance(self.event, Tick) and not (self.effects or self.told or self.decisions)


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


class Recorder(CallObserver):
    """Notes of a cluster whose steps `trace` gets, and of which `account` tells. It observes its network."""

    def __init__(self, cluster: SimulatedCluster, trace: Trace, account: Account) -> None:
        self._cluster = cluster
        self._account = account
        self._noted: list[Noted] = []
        self._calls: dict[int, tuple[str, str, str]] = {}
        self._count = 0
        trace.observers.append(self._stepped)
        cluster.network.observer = self

    def note(self, text: str, by: str) -> None:
        """Note an event that is not a step of a core."""
        self._told()
        self._noted.append(Note(text, by))

    def take(self) -> list[Noted]:
        """The notes since the last call."""
        self._told()
        noted, self._noted = self._noted, []
        return noted

    def _told(self) -> tuple[Told, ...]:
        """The lines of the account since the last look. Notes those of what was done to the cluster."""
        told = tuple(self._account.told)
        self._account.told.clear()
        self._noted += [Note(each.text, SCENE) for each in told if each.is_happening]
        return tuple(each for each in told if not (each.is_happening or each.change))

    def _stepped(self, step: LoggedStep) -> None:
        if isinstance(step.event, SubmitApplication):
            self._name(step.event.context.application_id)
        noted = CoreStep(step.host, step.event, tuple(step.effects), self._told())
        if step.host == self._cluster.rm.name:
            noted = self._with_decisions(noted)
        if not noted.is_empty:
            self._noted.append(noted)

    def _name(self, application_id: ApplicationId) -> None:
        """Make the application's name unique, because several may be submitted under one name."""
        names = self._account.names.applications
        name = names[application_id]
        if any(other == name and known != application_id for known, other in names.items()):
            names[application_id] = f"{name}.{application_id.id}"

    def _with_decisions(self, step: CoreStep) -> CoreStep:
        decided = self._account.decided
        if not isinstance(step.event, NodeHeartbeat):
            return replace(step, decisions=decided)
        served = {ApplicationId.parse(each.application) for each in decided if each.what in _SERVED}
        refusals = tuple(RMView(self._cluster.rm.core).refusals_in_force(step.event.request.node_id, served))
        return replace(step, decisions=decided, refusals=refusals)

    def called(self, source: str, link: str, rpc: Rpc[Any, Any], request: object) -> int:
        self._count += 1
        self._calls[self._count] = (source, link, rpc.name)
        return self._count

    def over(self, call: int, outcome: object) -> None:
        known = self._calls.pop(call, None)
        if known is not None and isinstance(outcome, ServerUnavailable):
            self._told()
            self._noted.append(LostCall(*known, outcome))
