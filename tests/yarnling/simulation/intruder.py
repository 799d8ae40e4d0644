"""An intruder who has overheard calls, and makes calls that are forbidden. Each must be refused and change nothing.

The tries: a call with a wrong signature, a second start of a container, a start on another node, with the NM token of
another node or by another application, a stop or a release of a container of another application, an allocate that was
answered long ago, and a heartbeat for another node. At the end of a run, when it disturbs nobody, old heartbeats are
sent again: no NodeManager may go on with them.

A try that succeeds is a violation of I-33 or I-65. The tries have a seeded stream of their own, so they change nothing
else in a run.

    run = simulate(plan, seed)         as yarnling.simulation.runner.simulate, with the intruder
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from msgspec import Struct
from msgspec.structs import replace

from wire.caller import caller_metadata
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.protocols.tracker import ResourceTracker
from wire.rpc import Rpc
from yarn.containers import Container, ContainerLaunchContext, Token
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.protocols.container_management import (
    StartContainerRequest,
    StartContainersResponse,
    StopContainersResponse,
)
from yarn.protocols.master import AllocateRequest, AllocateResponse
from yarn.protocols.tracker import NodeHeartbeatRequest, NodeHeartbeatResponse
from yarn.states import NodeAction
from yarnling.faults.plan import Plan
from yarnling.run.trace import Trace
from yarnling.simulation import runner
from yarnling.simulation.cluster import InvariantBroken, SimulatedCluster
from yarnling.simulation.engine import Rank
from yarnling.simulation.machine import SimulatedMachine
from yarnling.simulation.network import Endpoint, _Call
from yarnling.simulation.runner import DEFAULTS, Options, PlanRun, SimulatedRun
from yarnling.simulation.server import Envelope

NAME = "intruder"
NUMBER = (1 << 20) + 1
"""Its number among hosts: after the clients."""
TRIES_MAX = 60
PAUSE_MS = (100, 500)
"""The time between two tries: from, to."""
REMEMBERED_MAX = 40
"""Calls of one kind that are remembered; the oldest is forgotten first."""
RECENT_MS = 500
"""An allocate is sent again while its AM is alive: each call of an attempt, refused or not, shows that its AM lives."""

_START = ContainerManagementProtocol.start_containers


def simulate(plan: Plan, seed: int, options: Options = DEFAULTS) -> SimulatedRun:
    """Run a plan with the intruder."""
    with patch.object(runner, "PlanRun", IntrudedRun):
        return runner.simulate(plan, seed, options)


class IntrudedRun(PlanRun):
    """A run with the intruder, from the start of the cluster to the end of the plan."""

    def __init__(self, plan: Plan, seed: int, options: Options, trace: Trace | None, directory: Path) -> None:
        super().__init__(plan, seed, options, trace, directory)
        self.intruder = Intruder(self.cluster)

    def go(self) -> None:
        with self.intruder.listening():
            super().go()

    def phases(self) -> Iterator[int]:
        yield from super().phases()
        self.intruder.send_old_heartbeats()

    def _inject_faults(self) -> Iterator[int]:
        self.intruder.start()
        yield from super()._inject_faults()


class Carried(Struct, frozen=True):
    """A call that was answered without an error; its first attempt was made at `started_ms`."""

    endpoint: Endpoint
    made: tuple[Rpc[Any, Any]]
    request: object
    reply: object
    user: str
    token: Token | None
    started_ms: int

    def method(self) -> Rpc[Any, Any]:
        """The called RPC. `made` is a tuple, because an Rpc in a class is a method of a proxy."""
        return self.made[0]


class Intruder:
    """Raises InvariantBroken at the first violation."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._draw = cluster.engine.stream("intruder")
        self._calls: dict[str, deque[tuple[int, Carried]]] = {}
        self._fresh: deque[Container] = deque(maxlen=REMEMBERED_MAX)
        self._nm_tokens: dict[tuple[ApplicationId, NodeId], Token] = {}
        self._tries = 0
        self._remembers_from_ms: dict[int, int] = {}
        """{the number of a machine: its NodeManager may have forgotten which containers it started before}"""

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Overhear answered calls, and note what makes NodeManagers forget."""
        answered, lose_disk, start = _Call._answered, SimulatedMachine.lose_disk, SimulatedMachine.start
        ahead_ms: dict[int, int] = {}

        def overhear(call: _Call, number: int, answer: Envelope | YarnException) -> None:
            if isinstance(answer, Envelope):
                self._overhear(call, answer)
            answered(call, number, answer)

        def forget(machine: SimulatedMachine) -> None:
            self._remembers_from_ms[machine.number] = self._cluster.engine.now_ms
            lose_disk(machine)

        def forget_if_clock_has_jumped(machine: SimulatedMachine, *, empty_disk: bool = False) -> None:
            if machine.nm.clock_ahead_ms != ahead_ms.get(machine.number, 0):
                ahead_ms[machine.number] = machine.nm.clock_ahead_ms
                self._remembers_from_ms[machine.number] = self._cluster.engine.now_ms
            start(machine, empty_disk=empty_disk)

        with (
            patch.object(_Call, "_answered", overhear),
            patch.object(SimulatedMachine, "lose_disk", forget),
            patch.object(SimulatedMachine, "start", forget_if_clock_has_jumped),
        ):
            yield

    def start(self) -> None:
        """Try something every now and then."""
        self._later()

    def send_old_heartbeats(self) -> None:
        """Send to the ResourceManager, for each node, a heartbeat that was answered long ago."""
        for _, carried in self._known(ResourceTracker.node_heartbeat):
            request = carried.request
            assert isinstance(request, NodeHeartbeatRequest)
            node = self._cluster.rm.core.context.nodes.get(request.node_id)
            if node is not None and 1 < (node.last_response.response_id - request.response_id) < REMEMBERED_MAX:
                self._send(carried, done=partial(self._old_heartbeat_answered, request))

    def _old_heartbeat_answered(self, request: NodeHeartbeatRequest, outcome: object) -> None:
        if isinstance(outcome, NodeHeartbeatResponse) and outcome.action is NodeAction.NORMAL:
            raise InvariantBroken(f"I-25: an old heartbeat {request.response_id} of {request.node_id} was handled")

    def _overhear(self, call: _Call, answer: Envelope) -> None:
        sent, reply = call.message, answer.content(call.network.encode)
        if isinstance(reply, YarnException):
            return
        carried = Carried(call.endpoint, (sent.rpc,), call.request, reply, sent.user, sent.token, call.started_ms)
        known = self._calls.setdefault(carried.method().path, deque(maxlen=REMEMBERED_MAX))
        known.append((self._cluster.engine.now_ms, carried))
        if isinstance(carried.reply, AllocateResponse):
            self._fresh.extend(carried.reply.allocated)
            for container in carried.reply.allocated:
                self._learn_tokens(container.id.application_id, carried.reply)

    def _learn_tokens(self, application_id: ApplicationId, reply: AllocateResponse) -> None:
        for each in reply.nm_tokens:
            if each.token is not None:
                self._nm_tokens[application_id, each.node_id] = each.token

    def _known(self, rpc: Rpc[Any, Any]) -> tuple[tuple[int, Carried], ...]:
        return tuple(self._calls.get(rpc.path, ()))

    def _later(self) -> None:
        if self._tries < TRIES_MAX:
            self._tries += 1
            engine = self._cluster.engine
            engine.at(engine.now_ms + self._draw.randint(*PAUSE_MS), Rank.CLIENT, NUMBER, self._try)

    def _try(self) -> None:
        tries = (
            self._wrong_signature,
            self._second_start,
            self._start_elsewhere,
            self._start_by_another_application,
            self._start_with_a_token_of_another_node,
            self._stop_of_another_application,
            self._release_of_another_application,
            self._old_allocate,
            self._heartbeat_for_another_node,
        )
        self._draw.choice(tries)()
        self._later()

    def _wrong_signature(self) -> None:
        known = [rpc for rpc in self._calls.values() if rpc and rpc[0][1].token is not None]
        if not known:
            return
        carried = self._draw.choice(self._draw.choice(known))[1]
        assert carried.token is not None
        token = replace(carried.token, password=bytes(each ^ 1 for each in carried.token.password))
        self._send(carried, token=token, done=partial(self._must_be_refused, "a call with a wrong signature"))

    def _second_start(self) -> None:
        """Preferably of a container that its NodeManager does not know any more.

        One that has lost its disk, or whose clock has jumped, may have forgotten what it started before, also if the
        reply came later. A start that was refused because that clock was wrong is a first one when it is sent again.
        """
        known = [
            carried
            for _, carried in self._known(_START)
            if carried.started_ms > self._forgotten_until_ms(carried) and _all_started(carried)
        ]
        forgotten = [carried for carried in known if self._is_forgotten(carried)]
        if known:
            self._send(self._draw.choice(forgotten or known), done=partial(self._no_start, "a second time"))

    def _forgotten_until_ms(self, carried: Carried) -> int:
        served = carried.endpoint()
        numbers = [one.number for one in self._cluster.machines if served is not None and one.nm is served[0]]
        return max((self._remembers_from_ms.get(number, 0) for number in numbers), default=0)

    def _is_forgotten(self, carried: Carried) -> bool:
        served, reply = carried.endpoint(), carried.reply
        assert isinstance(reply, StartContainersResponse)
        if served is None:
            return False
        nodes = (machine.nm for machine in self._cluster.machines if machine.nm is served[0])
        return any(container_id not in nm.core.containers for nm in nodes for container_id in reply.succeeded)

    def _start_elsewhere(self) -> None:
        for container in self._containers():
            for (application_id, node_id), token in self._nm_tokens.items():
                if application_id == container.id.application_id and node_id != container.node_id:
                    self._start(container, node_id, token, f"on {node_id} instead of {container.node_id}")
                    return

    def _start_by_another_application(self) -> None:
        for container in self._containers():
            for (application_id, node_id), token in self._nm_tokens.items():
                if application_id != container.id.application_id and node_id == container.node_id:
                    self._start(container, node_id, token, f"by {application_id}")
                    return

    def _start_with_a_token_of_another_node(self) -> None:
        for container in self._containers():
            for (application_id, node_id), token in self._nm_tokens.items():
                if application_id == container.id.application_id and node_id != container.node_id:
                    self._start(container, container.node_id, token, f"with an NM token for {node_id}")
                    return

    def _stop_of_another_application(self) -> None:
        for machine in self._cluster.machines:
            node_id = machine.nm.node_id
            for container_id in machine.containers.running:
                for (application_id, known), token in self._nm_tokens.items():
                    if known == node_id and application_id != container_id.application_id:
                        self._stop(container_id, node_id, token)
                        return

    def _release_of_another_application(self) -> None:
        """With the right response id, which AMs do not tell one another."""
        known = self._recent_allocate()
        if known is None:
            return
        attempt_id, carried = known
        session = self._cluster.rm.core.context.sessions.get(attempt_id)
        others = [one.id for one in self._containers() if one.id.application_id != attempt_id.application_id]
        app = self._cluster.rm.core.context.apps[attempt_id.application_id]
        if session is None or session.response_id < 0 or not others or app.submission.keep_containers_across_attempts:
            return
        request = AllocateRequest(session.response_id, releases=(others[0],))
        what = f"a release of {others[0]} by {attempt_id}"
        self._send(carried, request=request, done=partial(self._must_be_refused, what))

    def _old_allocate(self) -> None:
        known = self._recent_allocate()
        if known is None:
            return
        attempt_id, carried = known
        session = self._cluster.rm.core.context.sessions.get(attempt_id)
        if session is None or session.response_id < 3:
            return
        request = AllocateRequest(session.response_id - 3)
        what = f"an allocate of {attempt_id} with an old response id"
        self._send(carried, request=request, done=partial(self._must_be_refused, what))

    def _heartbeat_for_another_node(self) -> None:
        known = self._known(ResourceTracker.node_heartbeat)
        if not known:
            return
        carried = known[-1][1]
        assert isinstance(carried.request, NodeHeartbeatRequest)
        other = next((one for _, one in known if one.token != carried.token), None)
        if other is not None:
            what = f"a heartbeat of another node for {carried.request.node_id}"
            self._send(carried, token=other.token, done=partial(self._must_be_refused, what))

    def _recent_allocate(self) -> tuple[ApplicationAttemptId, Carried] | None:
        """An allocate just answered, and the attempt that called."""
        oldest_ms = self._cluster.engine.now_ms - RECENT_MS
        rm = self._cluster.rm
        for at_ms, carried in reversed(self._known(ApplicationMasterProtocol.allocate)):
            if at_ms < oldest_ms or not rm.is_up:
                break
            for attempt_id, session in rm.core.context.sessions.items():
                is_last = session.response is not None and session.response.response_id == _response_id(carried)
                if is_last and self._is_token_of(attempt_id, carried.token):
                    return attempt_id, carried
        return None

    def _is_token_of(self, attempt_id: ApplicationAttemptId, token: Token | None) -> bool:
        try:
            return self._cluster.rm._keys.masters.check(token).attempt_id == attempt_id
        except YarnException:
            return False

    def _containers(self) -> Iterator[Container]:
        """Containers that were allocated, the newest first."""
        return (container for container in reversed(self._fresh) if container.token is not None)

    def _start(self, container: Container, node_id: NodeId, token: Token, how: str) -> None:
        assert container.token is not None
        request = (StartContainerRequest(ContainerLaunchContext(("work-0",)), container.token),)
        self._send_to(node_id, _START, request, token, partial(self._no_start, how))

    def _stop(self, container_id: ContainerId, node_id: NodeId, token: Token) -> None:
        rpc = ContainerManagementProtocol.stop_containers
        self._send_to(node_id, rpc, (container_id,), token, partial(self._no_stop, container_id))

    def _send_to(
        self, node_id: NodeId, rpc: Rpc[Any, Any], request: object, token: Token, done: Callable[[object], None]
    ) -> None:
        _, endpoint = self._cluster.node_link(node_id)
        self._deliver(endpoint, rpc, request, "", token, done)

    def _send(
        self,
        carried: Carried,
        *,
        done: Callable[[object], None],
        request: object = None,
        token: Token | None = None,
    ) -> None:
        again = carried.request if request is None else request
        self._deliver(carried.endpoint, carried.method(), again, carried.user, token or carried.token, done)

    def _deliver(
        self,
        endpoint: Endpoint,
        rpc: Rpc[Any, Any],
        request: object,
        user: str,
        token: Token | None,
        done: Callable[[object], None],
    ) -> None:
        """Directly to the server, if it runs: no connection is needed."""
        served, encode = endpoint(), self._cluster.network.encode
        if served is None or served[0].is_paused:
            return
        payload = rpc.request.encode(request) if encode else request
        message = Envelope(rpc, payload, caller_metadata(user, token) if encode else (), user, token)
        observer = self._cluster.network.observer
        number = observer.called(NAME, "", rpc, request)
        observer.sent(number, served[0].name)
        observer.arrived(number)

        def answered(reply: Envelope) -> None:
            observer.replied(number)
            outcome = _outcome(reply, encode)
            observer.over(number, outcome)
            done(outcome)

        served[1].answer(message, answered)

    def _must_be_refused(self, what: str, outcome: object) -> None:
        if not isinstance(outcome, YarnException):
            raise InvariantBroken(f"I-65: {what} was accepted")

    def _no_start(self, how: str, outcome: object) -> None:
        if isinstance(outcome, StartContainersResponse) and outcome.succeeded:
            raise InvariantBroken(f"I-33: {outcome.succeeded[0]} was started {how}")

    def _no_stop(self, container_id: ContainerId, outcome: object) -> None:
        if isinstance(outcome, StopContainersResponse) and outcome.succeeded:
            raise InvariantBroken(f"I-65: {container_id} was stopped by another application")


def _response_id(carried: Carried) -> int:
    return carried.reply.response_id if isinstance(carried.reply, AllocateResponse) else -1


def _all_started(carried: Carried) -> bool:
    return isinstance(carried.reply, StartContainersResponse) and not carried.reply.failed


def _outcome(reply: Envelope, encode: bool) -> object:
    """The reply's record, or its error."""
    try:
        return reply.content(encode)
    except YarnException as error:
        return error
