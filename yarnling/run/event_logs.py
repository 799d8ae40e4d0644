"""Reads the event logs of a cluster's daemons (wire.event_log): what crossed between them is found by matching logs.

A daemon logs what reaches its core and what its core answers. A NodeManager's heartbeat is in its log when it is sent
and when it is answered, and in the ResourceManager's log when it arrives; the two are matched by node and response id.
Applications and clients have no log: of their calls only the arrival and the reply are known. The scheduler's decisions
are found by replaying the ResourceManager's log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from nm.core.effects import SendHeartbeat, SendRegistration
from nm.core.events import NodeHeartbeatAnswered, NodeHeartbeatFailed, NodeRegistered, RegistrationFailed
from nm.shell.node_manager import NodeCoreStart
from rm.core.effects import CleanUpAM, LaunchAM
from rm.core.events import AMLaunched, AMLaunchFailed
from rm.daemon import ResourceManagerStart
from rm.view import RMView
from wire.event_log import read_step
from wire.files.json_records import from_json
from wire.files.plain_json import plain
from yarn.errors import InvalidArgumentException
from yarn.machine import Refuse, Reply, StateChanged
from yarnling.run.builder import RunBuilder
from yarnling.run.decisions import Decisions
from yarnling.run.matching import matched
from yarnling.run.names import RM_LIFELINE, node_lifeline
from yarnling.run.records import Call, Role

CLIENT = "client"
_OWN_HOST = re.compile(r"127\.0\.0\.(\d{1,3}):\d+")
_FIRST_HOST = 2
"""yarnling's nodes are 127.0.0.2 and so on."""
_NODE_HEARTBEAT, _REGISTRATION = "nodeHeartbeat", "registerNodeManager"
_START, _STOP = "startContainers", "stopContainers"
_RPCS = {
    "RegisterNode": _REGISTRATION,
    "UnregisterNode": "unRegisterNodeManager",
    "KillApplication": "forceKillApplication",
    "MoveApplication": "moveApplicationAcrossQueues",
    "UpdateContainers": "updateContainer",
}
"""{class of an event: its RPC}, where the names differ."""
_Key: TypeAlias = tuple[str, str, int]
_NOT_OF_THE_REQUEST = frozenset({"call", "user", "groups", "caller"})


class EventLogs:
    """Adds the runs of daemons to `builder`."""

    def __init__(self, builder: RunBuilder) -> None:
        self.builder = builder
        self.decisions: Decisions | None = None
        self._received: dict[_Key, list[Call]] = {}
        self._sent: dict[_Key, list[Call]] = {}
        self._of_rm: dict[tuple[str, str], Call] = {}
        self._others: list[Call] = []

    def read(self, start: Any, lines: Iterable[Any]) -> None:
        """Read one log, which begins with `start`. Raises InvalidArgumentException if it is not one."""
        try:
            self._read(from_json(start), lines)
        except (InvalidArgumentException, KeyError, TypeError, ValueError, AttributeError) as error:
            raise InvalidArgumentException(f"is not an event log of this version: {error}") from None

    def _read(self, start: Any, lines: Iterable[Any]) -> None:
        if isinstance(start, ResourceManagerStart):
            _RMLog(self, start).read(lines)
        elif isinstance(start, NodeCoreStart):
            _NMLog(self, self.node(str(start.node_id))).read(lines)
        else:
            raise InvalidArgumentException(f"it is the log of {type(start).__name__}")

    def node(self, node_id: str) -> str:
        """The lifeline of a node."""
        own = _OWN_HOST.fullmatch(node_id)
        name = node_lifeline(int(own[1]) - _FIRST_HOST + 1) if own else node_id
        self.builder.nodes[node_id] = name
        return self.builder.lifeline(name, Role.NM)

    def received(self, source: str, target: str, rpc: str, at_ms: int, request: Any) -> Call:
        """Note a call whose arrival is in a log."""
        call = Call(source, target, rpc, at_ms, request, arrived_ms=at_ms, arrivals=1)
        if rpc in (_NODE_HEARTBEAT, _REGISTRATION):
            self._received.setdefault(_key(rpc, request), []).append(call)
        else:
            self._others.append(call)
        return self.builder.call(call)

    def sent(self, call: Call) -> None:
        """Note a node's call whose sending is in a log."""
        self._sent.setdefault(_key(call.rpc, call.request), []).append(call)

    def sent_by_rm(self, container_id: str, call: Call) -> None:
        """Note a call by which the ResourceManager starts or stops an AM's container."""
        self._of_rm[call.rpc, container_id] = call

    def match(self) -> None:
        """Combine the sending, the arrival and the reply of each call into one record."""
        for key in dict.fromkeys((*self._sent, *self._received)):
            for sent, call in matched(self._sent.get(key, ()), self._received.get(key, ())):
                if call is None:
                    assert sent is not None, "one of a pair is there"
                    self.builder.call(sent)
                elif sent is None:
                    _end_with_reply(call)
                else:
                    call.sent_ms, call.over_ms, call.error = min(sent.sent_ms, call.sent_ms), sent.over_ms, sent.error
        for call in self._others:
            self._match_with_rm(call)
        for call in self._of_rm.values():
            self.builder.call(call)

    def _match_with_rm(self, call: Call) -> None:
        """Fill in a call that the ResourceManager made, as the attempt whose AM it starts or stops."""
        keys = [(call.rpc, one) for one in _containers(call)]
        own = next((self._of_rm.pop(key) for key in keys if key in self._of_rm), None)
        if own is not None:
            call.source, call.sent_ms = RM_LIFELINE, min(own.sent_ms, call.sent_ms)
            call.over_ms, call.error = own.over_ms, own.error or call.error
        _end_with_reply(call)


def _containers(call: Call) -> list[str]:
    """The containers that a call starts or stops."""
    requests = call.request if isinstance(call.request, list) else []
    return [str(one["token"]["container_id"]) if isinstance(one, dict) else str(one) for one in requests]


def _key(rpc: str, request: Any) -> _Key:
    """The key that is the same where a node's call is sent and where it arrives."""
    fields = request if isinstance(request, dict) else {}
    return str(fields.get("node_id", "")), rpc, int(fields.get("response_id", -1))


def _end_with_reply(call: Call) -> None:
    """Assume that the caller received the reply, because it has no log."""
    if call.over_ms is None:
        call.over_ms = call.replied_ms


class _Log:
    """Reads the log of one daemon on lifeline `host`."""

    def __init__(self, reader: EventLogs, host: str) -> None:
        self.reader, self.host = reader, host
        self._calls: dict[int, Call] = {}

    def read(self, lines: Iterable[Any]) -> None:
        for line in lines:
            step = read_step(line)
            now_ms, event, effects = step.now_ms, step.event, step.effects
            number = getattr(event, "call", None)
            if isinstance(number, int):
                source = self.caller(event)
                rpc = _rpc(type(event).__name__)
                self._calls[number] = self.reader.received(source, self.host, rpc, now_ms, _request(event))
            self.step(now_ms, event, effects)
            for effect in effects:
                self._effect(now_ms, effect)

    def caller(self, event: Any) -> str:
        """The lifeline from which a call came."""
        raise NotImplementedError

    def step(self, now_ms: int, event: Any, effects: Sequence[Any]) -> None:
        """Process a step in a way that depends on the daemon."""

    def _effect(self, now_ms: int, effect: Any) -> None:
        if isinstance(effect, StateChanged):
            self.reader.builder.change(now_ms, self.host, plain(effect))
        elif isinstance(effect, Reply | Refuse):
            call = self._calls.pop(effect.call, None)
            if call is None:
                return
            call.replied_ms = now_ms
            if isinstance(effect, Reply):
                call.reply = plain(effect.value)
            else:
                call.is_refused = True
                call.error = f"{type(effect.error).__name__}: {effect.error.message}"


class _RMLog(_Log):
    def __init__(self, reader: EventLogs, start: ResourceManagerStart) -> None:
        super().__init__(reader, RM_LIFELINE)
        self._core = start.core()
        if reader.decisions is None:
            reader.decisions = Decisions(RMView(self._core))
        else:
            reader.decisions.restarted(RMView(self._core))
        self._decisions: Decisions | None = reader.decisions
        self._launches: dict[str, Call] = {}

    def caller(self, event: Any) -> str:
        builder = self.reader.builder
        attempt_id, request = getattr(event, "attempt_id", None), getattr(event, "request", None)
        if attempt_id is not None and not hasattr(event, "user"):
            return builder.lifeline(str(attempt_id), Role.AM)
        node_id = getattr(request, "node_id", getattr(event, "node_id", None))
        if node_id is not None:
            return self.reader.node(str(node_id))
        return builder.lifeline(CLIENT, Role.CLIENT)

    def step(self, now_ms: int, event: Any, effects: Sequence[Any]) -> None:
        self._replay(now_ms, event)
        for effect in effects:
            if isinstance(effect, LaunchAM):
                target = self.reader.node(str(effect.container.node_id))
                launch = Call(RM_LIFELINE, target, _START, now_ms)
                self._launches[str(effect.attempt_id)] = launch
                self.reader.sent_by_rm(str(effect.container.id), launch)
            elif isinstance(effect, CleanUpAM):
                stop = Call(RM_LIFELINE, self.reader.node(str(effect.node_id)), _STOP, now_ms)
                stop.request = [str(effect.container_id)]
                self.reader.sent_by_rm(str(effect.container_id), stop)
        if isinstance(event, AMLaunched | AMLaunchFailed):
            launch_over = self._launches.pop(str(event.attempt_id), None)
            if launch_over is not None:
                launch_over.over_ms = now_ms
                launch_over.error = event.diagnostics if isinstance(event, AMLaunchFailed) else ""

    def _replay(self, now_ms: int, event: Any) -> None:
        """Replay a step and note its decisions; if a log cannot be replayed, there are none from there on."""
        if self._decisions is None:
            return
        builder = self.reader.builder
        try:
            effects = self._core.handle(event, now_ms)
            builder.decisions += self._decisions.after(event, effects, now_ms)
            builder.samples += self._decisions.samples(now_ms)
        except Exception as error:
            self._decisions = None
            builder.notes.append(f"The log cannot be replayed, so decisions are missing: {type(error).__name__}.")


class _NMLog(_Log):
    _sending: Call | None = None

    def caller(self, event: Any) -> str:
        return self.reader.builder.lifeline(str(event.caller.attempt_id), Role.AM)

    def step(self, now_ms: int, event: Any, effects: Sequence[Any]) -> None:
        sending = self._sending
        if sending is not None:
            match event:
                case NodeHeartbeatAnswered() | NodeRegistered():
                    sending.over_ms, sending.reply, self._sending = now_ms, plain(event.response), None
                case NodeHeartbeatFailed() | RegistrationFailed():
                    sending.over_ms, sending.error, self._sending = now_ms, event.problem, None
                case _:
                    pass
        for effect in effects:
            if isinstance(effect, SendHeartbeat | SendRegistration):
                rpc = _NODE_HEARTBEAT if isinstance(effect, SendHeartbeat) else _REGISTRATION
                self._sending = Call(self.host, RM_LIFELINE, rpc, now_ms, plain(effect.request))
                self.reader.sent(self._sending)


def _rpc(event: str) -> str:
    return _RPCS.get(event, event[0].lower() + event[1:])


def _request(event: Any) -> Any:
    for name in ("request", "context", "requests", "container_ids"):
        if hasattr(event, name):
            return plain(getattr(event, name))
    record = plain(event)
    return {key: value for key, value in record.items() if key not in _NOT_OF_THE_REQUEST}
