"""Puts into words what the cores of a simulated cluster do, as they do it: for lessons, the quiz and stepping.

It observes the steps of cores, so it sees what they see: a message appears at the time at which it reaches its core,
and one that is lost does not appear.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from nm.core.events import StartContainers, StopContainers
from rm.core.effects import Preempted
from rm.core.events import (
    Allocate,
    FinishApplicationMaster,
    GetNewApplication,
    KillApplication,
    NodeHeartbeat,
    RegisterApplicationMaster,
    RegisterNode,
    SubmitApplication,
)
from rm.core.resource_manager import ResourceManagerCore
from rm.view import RMView
from wire.event_log import LoggedStep
from yarn.containers import ContainerStatus
from yarn.ids import ContainerId, NodeId
from yarn.machine import Refuse, Reply, StateChanged
from yarn.protocols.client import GetNewApplicationResponse
from yarn.protocols.master import AllocateRequest, AllocateResponse, RegisterApplicationMasterResponse
from yarn.protocols.tracker import NodeHeartbeatResponse, RegisterNodeManagerResponse
from yarnling.run.decisions import Decisions
from yarnling.run.names import CLIENT, RM, Names, am, amount, nm, node
from yarnling.run.records import Decision, StateChange, What
from yarnling.run.step_wording import Wording
from yarnling.run.trace import Trace
from yarnling.simulation.cluster import SimulatedCluster
from yarnling.simulation.engine import START_MS
from yarnling.simulation.workload import AM_RULE

KINDS = ("RMNode", "RMApp", "RMAppAttempt")
"""The kinds of state changes that are told."""
_VERBS = {What.ALLOCATED: "allocates", What.RESERVED: "reserves"}
"""The decisions that are told, and preemption."""


class Told(Struct, frozen=True):
    """An event in words. A message has an `rpc`, and a `target` that it reaches; a state change is in
    `change`, with the name of its subject; anything else is a decision, or with `is_happening` was done to the cluster.

    `at_ms`: since the start of the run. `is_quiet`: a heartbeat, or the reply to one, without news.
    """

    at_ms: int
    place: str
    text: str
    target: str = ""
    rpc: str = ""
    is_reply: bool = False
    is_quiet: bool = False
    change: StateChange | None = None
    is_happening: bool = False

    @property
    def is_decision(self) -> bool:
        """True if it is neither a message nor a state change."""
        return not self.rpc and self.change is None


class Account:
    """Describes the events in a cluster whose steps `trace` gets, in `told`, in order; a reader may clear it.

    `decided`: the scheduler's decisions in the last step. `allocate_replies`: (time, AM, reply) of each allocate call.
    `preempted`: (time, container, step) of each decision to preempt, "requested" or "killed".
    """

    def __init__(self, cluster: SimulatedCluster, trace: Trace, names: Names) -> None:
        self.names = names
        self.told: list[Told] = []
        self.decided: tuple[Decision, ...] = ()
        self.allocate_replies: list[tuple[int, str, AllocateResponse]] = []
        self.preempted: list[tuple[int, ContainerId, str]] = []
        self._cluster = cluster
        self._wording = Wording(names)
        self._core: ResourceManagerCore | None = None
        self._view: RMView
        self._decisions: Decisions | None = None
        self._calls: dict[int, tuple[str, str]] = {}
        self._reported: dict[NodeId, tuple[ContainerStatus, ...]] = {}
        trace.observers.append(self._stepped)

    def _stepped(self, step: LoggedStep) -> None:
        at_ms = step.now_ms - START_MS
        self.decided = ()
        if step.host == self._cluster.rm.name:
            self._request(at_ms, step.event)
            self.decided = self._found(step)
            for effect in step.effects:
                self._effect(at_ms, effect)
            self.told += self._decisions_told(at_ms)
        elif step.host.startswith("nm-"):
            self._at_node(at_ms, f"n{step.host.removeprefix('nm-')}", step.event)

    def _found(self, step: LoggedStep) -> tuple[Decision, ...]:
        core = self._cluster.rm.core
        if self._decisions is None or self._core is not core:
            self._core, self._view = core, RMView(core)
            self._decisions = Decisions(self._view)
        return tuple(self._decisions.after(step.event, step.effects, step.now_ms))

    def _request(self, at_ms: int, event: object) -> None:
        wording, add = self._wording, self._add_request
        match event:
            case RegisterNode(call, request):
                text = wording.node_registration(request)
                add(at_ms, call, nm(node(request.node_id)), "registerNodeManager", text)
            case NodeHeartbeat(call, request):
                is_quiet = self._reported.get(request.node_id, ()) == request.containers
                self._reported[request.node_id] = request.containers
                text = wording.node_heartbeat(request)
                add(at_ms, call, nm(node(request.node_id)), "nodeHeartbeat", text, is_quiet=is_quiet)
            case GetNewApplication(call):
                add(at_ms, call, CLIENT, "getNewApplication", "")
            case SubmitApplication(call, user, context):
                self.names.applications.setdefault(context.application_id, context.name)
                text = f"application {context.name} of {user}, queue {context.queue}, AM of {amount(context.resource)}"
                add(at_ms, call, CLIENT, "submitApplication", text)
            case KillApplication(call, application_id):
                add(at_ms, call, CLIENT, "forceKillApplication", self.names.application(application_id))
            case RegisterApplicationMaster(call, attempt_id):
                name = self.names.application(attempt_id.application_id)
                add(at_ms, call, am(name), "registerApplicationMaster", f"attempt {attempt_id.attempt}")
            case Allocate(call, attempt_id, request):
                name = self.names.application(attempt_id.application_id)
                add(at_ms, call, am(name), "allocate", wording.allocate(request), is_quiet=_asks_nothing(request))
            case FinishApplicationMaster(call, attempt_id, request):
                name = self.names.application(attempt_id.application_id)
                add(at_ms, call, am(name), "finishApplicationMaster", request.final_status.name)
            case _:
                pass

    def _add_request(self, at_ms: int, call: int, source: str, rpc: str, text: str, *, is_quiet: bool = False) -> None:
        self._calls[call] = (source, rpc)
        self.told.append(Told(at_ms, source, text, RM, rpc, is_quiet=is_quiet))

    def _effect(self, at_ms: int, effect: object) -> None:
        match effect:
            case Reply(call, value):
                if isinstance(value, AllocateResponse):
                    self.allocate_replies.append((at_ms, self._calls[call][0], value))
                self._reply(at_ms, call, *self._words_of(value))
            case Refuse(call, error):
                self._reply(at_ms, call, f"refused: {error}", is_quiet=False)
            case StateChanged(kind, subject) if kind in KINDS:
                name = self.names.subject(kind, subject)
                change = StateChange(at_ms, RM, kind, name, effect.event, effect.source, effect.target)
                self.told.append(Told(at_ms, RM, f"{name}: {change.source} -> {change.target}", change=change))
            case Preempted(container_id, step, _, serves):
                name, target = self.names.container(container_id), f" for queue {serves}" if serves else ""
                self.preempted.append((at_ms, container_id, step))
                verb = f"wants {name} back" if step == "requested" else f"kills {name}"
                self.told.append(Told(at_ms, RM, f"preemption: {verb}{target}"))
            case _:
                pass

    def _reply(self, at_ms: int, call: int, text: str, is_quiet: bool) -> None:
        known = self._calls.pop(call, None)
        if known is not None:
            target, rpc = known
            self.told.append(Told(at_ms, RM, text, target, rpc, is_reply=True, is_quiet=is_quiet))

    def _words_of(self, value: object) -> tuple[str, bool]:
        """(the words for a reply, whether it has no news)."""
        wording = self._wording
        match value:
            case RegisterNodeManagerResponse():
                return wording.node_registration_reply(value), False
            case NodeHeartbeatResponse():
                return wording.node_heartbeat_reply(value), value.is_quiet
            case GetNewApplicationResponse():
                return wording.new_application_reply(value), False
            case RegisterApplicationMasterResponse():
                return wording.am_registration_reply(value), False
            case AllocateResponse():
                return wording.allocate_reply(value), _brings_nothing(value)
            case _:
                return "accepted", False

    def _decisions_told(self, at_ms: int) -> Iterator[Told]:
        """Add the new containers and reservations to the account."""
        for decision in self.decided:
            if decision.what not in _VERBS:
                continue
            place = self._view.node(NodeId.parse(decision.node))
            assert place is not None, "something was just placed there"
            held = (*place.containers, *([place.reserved] if place.reserved else []))
            container = next(each for each in held if str(each.container_id) == decision.container)
            if container.is_am:
                self.names.am_containers[container.container_id] = None
            verb = "recovers" if container.state == "RUNNING" else _VERBS[decision.what]
            name, now = self.names.container(container.container_id), "" if decision.what is What.RESERVED else " now"
            free = f"{place.unallocated.memory_mb} MB are free there{now}"
            yield Told(at_ms, RM, f"{verb} {name} ({amount(container.resource)}) on {node(place.node_id)}: {free}")

    def _at_node(self, at_ms: int, name: str, event: object) -> None:
        match event:
            case StartContainers(_, _, requests):
                for each in requests:
                    container_id = each.token.container_id
                    is_am = each.launch_context.commands == (AM_RULE,)
                    if is_am:
                        self.names.am_containers[container_id] = None
                    source = RM if is_am else am(self.names.application(container_id.application_id))
                    text = f"{self.names.container(container_id)} ({amount(each.token.resource)})"
                    self.told.append(Told(at_ms, source, text, nm(name), "startContainers"))
            case StopContainers(_, caller, container_ids):
                text = ", ".join(self.names.container(container_id) for container_id in container_ids)
                is_am = any(container_id in self.names.am_containers for container_id in container_ids)
                source = RM if is_am else am(self.names.application(caller.attempt_id.application_id))
                self.told.append(Told(at_ms, source, text, nm(name), "stopContainers"))
            case _:
                pass


def _asks_nothing(request: AllocateRequest) -> bool:
    return not (request.asks or request.releases or request.updates)


def _brings_nothing(reply: AllocateResponse) -> bool:
    return not (
        reply.allocated or reply.completed or reply.preemption is not None or reply.containers_from_previous_attempts
    )
