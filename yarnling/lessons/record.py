"""Records a run as steps: what each core was sent, how it replied, which states changed, what the scheduler decided.

It reads the trace of the simulation (yarnling.run.trace), so it sees what the cores see: a message appears at
the time at which it reaches its core, and one that is lost does not appear.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

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
from rm.scheduler.model.node import SchedulerNode
from rm.scheduler.model.rm_container import RMContainer
from yarn.containers import ContainerStatus
from yarn.ids import ContainerId, NodeId
from yarn.machine import Refuse, Reply, StateChanged
from yarn.protocols.client import GetNewApplicationResponse
from yarn.protocols.master import AllocateRequest, AllocateResponse, RegisterApplicationMasterResponse
from yarn.protocols.tracker import NodeHeartbeatResponse, RegisterNodeManagerResponse
from yarnling.lessons.steps import Change, Decision, Message, Step
from yarnling.run.names import CLIENT, RM, Names, am, amount, nm, node
from yarnling.run.step_wording import Wording
from yarnling.run.trace import Line, Trace
from yarnling.simulation.engine import START_MS
from yarnling.simulation.workload import AM_RULE

KINDS = ("RMNode", "RMApp", "RMAppAttempt")


class Record(Trace):
    """The steps of a run. `nodes`: returns the scheduler's nodes, whose containers are compared after each step.

    `allocate_replies`: (time, AM, reply) of each allocate call. `preempted`: (time, container, step) of each decision
    to preempt, "requested" or "killed".
    """

    def __init__(self, names: Names, line: Line | None = None) -> None:
        super().__init__(line)
        self.recorded: list[Step] = []
        self.nodes: Callable[[], Collection[SchedulerNode]] = tuple
        self.happened: Callable[[Decision], None] = self.recorded.append
        """Called with what is done to the cluster."""
        self.seen: Callable[[int, str, object, Sequence[object]], None] = _unseen
        """Gets each step once it is recorded, without its text."""
        self._names = names
        self._wording = Wording(names)
        self.preempted: list[tuple[int, ContainerId, str]] = []
        self.allocate_replies: list[tuple[int, str, AllocateResponse]] = []
        self._calls: dict[int, tuple[str, str]] = {}
        self._reported: dict[NodeId, tuple[ContainerStatus, ...]] = {}
        self._placed: dict[tuple[ContainerId, bool], NodeId] = {}

    def note(self, now_ms: int, host: str, event: object, effects: Sequence[object]) -> None:
        if self.observers:
            super().note(now_ms, host, event, effects)
        at_ms = now_ms - START_MS
        if host == "rm":
            self._request(at_ms, event)
            for effect in effects:
                self._effect(at_ms, effect)
            self._compare(at_ms)
        elif host.startswith("nm-"):
            self._at_node(at_ms, f"n{host.removeprefix('nm-')}", event)
        self.seen(now_ms, host, event, effects)

    # The ResourceManager

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
                self._names.applications.setdefault(context.application_id, context.name)
                text = f"application {context.name} of {user}, queue {context.queue}, AM of {amount(context.resource)}"
                add(at_ms, call, CLIENT, "submitApplication", text)
            case KillApplication(call, application_id):
                add(at_ms, call, CLIENT, "forceKillApplication", self._names.application(application_id))
            case RegisterApplicationMaster(call, attempt_id):
                name = self._names.application(attempt_id.application_id)
                add(at_ms, call, am(name), "registerApplicationMaster", f"attempt {attempt_id.attempt}")
            case Allocate(call, attempt_id, request):
                name = self._names.application(attempt_id.application_id)
                add(at_ms, call, am(name), "allocate", wording.allocate(request), is_quiet=_asks_nothing(request))
            case FinishApplicationMaster(call, attempt_id, request):
                name = self._names.application(attempt_id.application_id)
                add(at_ms, call, am(name), "finishApplicationMaster", request.final_status.name)
            case _:
                pass

    def _add_request(self, at_ms: int, call: int, source: str, rpc: str, text: str, *, is_quiet: bool = False) -> None:
        self._calls[call] = (source, rpc)
        self.recorded.append(Message(at_ms, source, RM, rpc, text, is_quiet=is_quiet))

    def _effect(self, at_ms: int, effect: object) -> None:
        match effect:
            case Reply(call, value):
                if isinstance(value, AllocateResponse):
                    self.allocate_replies.append((at_ms, self._calls[call][0], value))
                self._reply(at_ms, call, *self._words_of(value))
            case Refuse(call, error):
                self._reply(at_ms, call, f"refused: {error}", is_quiet=False)
            case StateChanged(kind, subject) if kind in KINDS:
                name = self._names.subject(kind, subject)
                change = Change(at_ms, RM, kind, name, effect.event, effect.source, effect.target)
                self.recorded.append(change)
            case Preempted(container_id, step, _, serves):
                name, target = self._names.container(container_id), f" for queue {serves}" if serves else ""
                self.preempted.append((at_ms, container_id, step))
                verb = f"wants {name} back" if step == "requested" else f"kills {name}"
                self.recorded.append(Decision(at_ms, RM, f"preemption: {verb}{target}"))
            case _:
                pass

    def _reply(self, at_ms: int, call: int, text: str, is_quiet: bool) -> None:
        known = self._calls.pop(call, None)
        if known is not None:
            target, rpc = known
            self.recorded.append(Message(at_ms, RM, target, rpc, text, is_reply=True, is_quiet=is_quiet))

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

    def _compare(self, at_ms: int) -> None:
        """Record the containers and reservations that are new since the last step, and the reservations that ended."""
        found: dict[tuple[ContainerId, bool], NodeId] = {}
        for each in self.nodes():
            for container in each.containers.values():
                found[container.id, False] = each.node_id
                if container.is_am:
                    self._names.am_containers[container.id] = None
                if (container.id, False) not in self._placed:
                    self._decided(at_ms, "recovers" if container.is_running else "allocates", container, each)
            reserved = each.reserved_container
            if reserved is not None:
                found[reserved.id, True] = each.node_id
                if (reserved.id, True) not in self._placed:
                    self._decided(at_ms, "reserves", reserved, each)
        self._placed = found

    def _decided(self, at_ms: int, verb: str, container: RMContainer, place: SchedulerNode) -> None:
        free = f"{place.unallocated.memory_mb} MB are free there" + ("" if verb == "reserves" else " now")
        name = self._names.container(container.id)
        where = node(place.node_id)
        text = f"{verb} {name} ({amount(container.resource)}) on {where}: {free}"
        self.recorded.append(Decision(at_ms, RM, text))

    # The NodeManagers

    def _at_node(self, at_ms: int, name: str, event: object) -> None:
        match event:
            case StartContainers(_, _, requests):
                for each in requests:
                    container_id = each.token.container_id
                    is_am = each.launch_context.commands == (AM_RULE,)
                    if is_am:
                        self._names.am_containers[container_id] = None
                    source = RM if is_am else am(self._names.application(container_id.application_id))
                    text = f"{self._names.container(container_id)} ({amount(each.token.resource)})"
                    self.recorded.append(Message(at_ms, source, nm(name), "startContainers", text))
            case StopContainers(_, caller, container_ids):
                text = ", ".join(self._names.container(container_id) for container_id in container_ids)
                is_am = any(container_id in self._names.am_containers for container_id in container_ids)
                source = RM if is_am else am(self._names.application(caller.attempt_id.application_id))
                self.recorded.append(Message(at_ms, source, nm(name), "stopContainers", text))
            case _:
                pass


def _asks_nothing(request: AllocateRequest) -> bool:
    return not (request.asks or request.releases or request.updates)


def _brings_nothing(reply: AllocateResponse) -> bool:
    return not (
        reply.allocated or reply.completed or reply.preemption is not None or reply.containers_from_previous_attempts
    )


def _unseen(now_ms: int, host: str, event: object, effects: Sequence[object]) -> None:
    """Nobody looks at the steps."""
