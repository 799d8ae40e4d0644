"""A NodeManager's process in a simulation: its core, its service, and its calls to the ResourceManager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from msgspec.structs import replace

from nm.core import NodeManagerCore
from nm.core.effects import (
    AggregateLogs,
    ChangeMonitoring,
    DeleteApplicationFiles,
    DeleteApplicationLogs,
    DeleteContainerFiles,
    DeleteResource,
    Effect,
    EndNode,
    EraseStoredState,
    FetchResource,
    ForgetApplicationKeys,
    InitAuxiliaryService,
    LaunchContainer,
    LeaveContainers,
    MonitorContainer,
    ReacquireContainer,
    SendHeartbeat,
    SendRegistration,
    SendUnregistration,
    SignalProcess,
    StopAuxiliaryServices,
)
from nm.core.events import (
    Event,
    LogsAggregated,
    NodeHeartbeatAnswered,
    NodeRegistered,
    Recover,
    RegistrationFailed,
    ResourceFetched,
    Start,
    UnregisterCompleted,
)
from nm.core.played_container import PlayedContainer
from nm.core.settings import CoreSettings, NodeFacts
from nm.core.stored_state import NodeRecords, StoreEffect
from nm.shell.resource_tracker import (
    UNREGISTER_TIMEOUT_S,
    accept_keys,
    heartbeat_failed,
    verified_updates,
    with_key_ids,
)
from nm.shell.services import ContainerManagementService
from wire.caller import caller_metadata
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.tracker import ResourceTracker
from wire.retry import RetryPolicy
from wire.rpc import Rpc
from wire.tokens import ContainerTokenSecretManager, KeyRing, NMTokenSecretManager, NodeTokenSecretManager
from yarn.containers import Token
from yarn.errors import CallOutcomeUnknown, YarnException
from yarn.ids import ContainerId, NodeId
from yarn.machine import InvariantsBroken, Refuse, Reply, StateChanged, Tick, Warn
from yarn.protocols.tracker import (
    NodeHeartbeatRequest,
    NodeHeartbeatResponse,
    RegisterNodeManagerRequest,
    RegisterNodeManagerResponse,
)
from yarn.resource import INT32_MAX
from yarnling.run.trace import Trace
from yarnling.simulation.engine import Action, Engine, Rank
from yarnling.simulation.network import TRACKER_LINK, Done, Endpoint, Network, Served, UnderWay
from yarnling.simulation.process import CoreHost, HeartbeatSaver
from yarnling.simulation.server import Envelope, Server

Asked = TypeVar("Asked")
Answered = TypeVar("Answered")

FETCH_MS = 5
"""The time a file of a container takes to be copied."""


HeartbeatAnswers: TypeAlias = Callable[[NodeHeartbeatRequest], NodeHeartbeatResponse]


class PlayedCaller(Protocol):
    """An AM with calls to a NodeManager that are played (yarnling.simulation.played_calls)."""

    def before_exit(self, nm: NodeManagerProcess) -> None:
        """Prepare for the end of the NodeManager, which breaks connections and calls."""


class NodeHeartbeatSaver(HeartbeatSaver["NodeManagerProcess"], Protocol):
    """Leaves out the heartbeats of NodeManagers, also while containers are played there."""

    def is_between_heartbeats(self, nm: NodeManagerProcess) -> bool:
        """True if its heartbeats are left out and none is under way. If one is, the NodeManager sends them again."""
        ...

    def note_news(self, nm: NodeManagerProcess) -> None:
        """Note that a container was played while its heartbeats are left out."""


class NodeManagerProcess(CoreHost[Event, Effect]):
    """The NodeManager of one machine. `launch` and `signal` carry out the effects on containers.

    `ended` is called with the reason when the core has ended the node, "" for an orderly end. `play_heartbeat` answers
    heartbeats that are played, for the ResourceManager. `played_callers`: the AMs with calls to it that are played.
    """

    def __init__(
        self,
        engine: Engine,
        network: Network,
        number: int,
        *,
        resource_manager: Endpoint,
        cluster_secret: bytes,
        retry: RetryPolicy,
        launch: Callable[[LaunchContainer | ReacquireContainer | SignalProcess], None],
        ended: Callable[[str], None],
        broken: Callable[[str], None],
        trace: Trace | None,
        play_heartbeat: HeartbeatAnswers | None = None,
    ) -> None:
        super().__init__(engine, f"nm-{number}", number, tick=Tick(), trace=trace, broken=broken)
        self.node_id = NodeId("", 0)
        self.last_heartbeat: NodeHeartbeatRequest | None = None
        self._network = network
        self._resource_manager = resource_manager
        self._tokens = NodeTokenSecretManager(cluster_secret)
        self._retry = retry
        self._launch = launch
        self._ended = ended
        self._play_heartbeat = play_heartbeat
        self.played_callers: dict[PlayedCaller, None] = {}
        self.quiet_heartbeats: NodeHeartbeatSaver | None = None
        self._under_way: UnderWay | None = None
        self._records: NodeRecords | None = None
        self.leaves_containers = False

    def start(
        self,
        node_id: NodeId,
        facts: NodeFacts,
        settings: CoreSettings,
        before: tuple[ContainerId, ...] = (),
        records: NodeRecords | None = None,
    ) -> None:
        """Start it under this id. `before`: the containers that an earlier one over the same directories started.

        `records`: what it recovers, and keeps up to date; None without recovery.
        """
        self.boot()
        self.node_id = node_id
        self.token = self._tokens.create(node_id)
        if records is None or self.starts == 1:
            self._container_tokens = ContainerTokenSecretManager(KeyRing())
            self._nm_keys = KeyRing()
            self._nm_tokens = NMTokenSecretManager(self._nm_keys)
        self._records = records
        self.leaves_containers = False
        self._service = ContainerManagementService(self._container_tokens, self._nm_tokens)
        self._service.recover_keys(self._nm_tokens.remembered)
        self._server = Server(encode=self._network.encode)
        self._server.add(ContainerManagementProtocol.rpcs, self._service, self._service.authenticate)
        self.core = NodeManagerCore(node_id, facts, settings)
        self.run_core(self.core)
        self._service.open(node_id, self)
        self._conversation = 0
        if records is not None:
            self.step(Recover(records.state()))
        self.step(Start(before))

    def token_of(self, node_id: NodeId) -> Token:
        """The token of a NodeManager with this id."""
        return self._tokens.create(node_id)

    def served(self, node_id: NodeId) -> Served | None:
        """The process and server at that id; None once the NodeManager has another port."""
        return (self, self._server) if self.is_up and self.node_id == node_id else None

    # Heartbeats that are left out (yarnling.simulation.quiet_heartbeats)

    def step(self, event: Event) -> None:
        # Ticks are for other timers: that of the heartbeats is stopped while they are left out.
        if type(event) is not Tick:
            self._resume()
        super().step(event)

    def exit(self) -> None:
        self._resume()
        for caller in tuple(self.played_callers):
            caller.before_exit(self)
        super().exit()

    def pause(self) -> None:
        self._resume()
        super().pause()

    def _resume(self) -> None:
        if self.quiet_heartbeats is not None:
            self.quiet_heartbeats.resume(self)

    @property
    def tracker_link(self) -> str:
        return f"{TRACKER_LINK}{self.number}"

    def pause_heartbeats(self) -> None:
        """Stop sending heartbeats."""
        self.core.pause_heartbeats()

    def paused_heartbeat(self, count: int) -> NodeHeartbeatRequest:
        """The content of the heartbeat that follows `count` ones which were left out.

        Its key ids say that the node needs no new keys.
        """
        request = with_key_ids(self.core.paused_heartbeat(), self._container_tokens.keys, self._nm_keys)
        return replace(request, response_id=(request.response_id + count) & INT32_MAX)

    def resume_heartbeats(self, count: int, due_ms: int, under_way: UnderWay | None) -> None:
        """Resume as if `count` quiet heartbeats were sent; the next is due at `due_ms`, or `under_way` since then."""
        self.core.resume_heartbeats(count, due_ms, self.engine.now_ms)
        if under_way is None:
            self._alarm.set()
            return
        self._under_way = under_way
        self.step_at(Tick(), max(due_ms, self.core.context.dispatcher.now_ms))
        self._under_way = None

    def answer_of(self, request: NodeHeartbeatRequest) -> Envelope:
        """The ResourceManager's reply to a heartbeat that was left out until now, when it arrives there."""
        if self._play_heartbeat is not None:
            return Envelope(ResourceTracker.node_heartbeat, self._play_heartbeat(request))
        served = self._resource_manager()
        assert served is not None, "all nodes send heartbeats before the ResourceManager exits"
        replies = list[Envelope]()
        metadata = caller_metadata("", self.token) if self._network.encode else ()
        message = Envelope(ResourceTracker.node_heartbeat, request, metadata, "", self.token)
        served[1].answer(message, replies.append)
        return replies[0]

    def plays_starts(self, node_id: NodeId) -> bool:
        """True if it runs under this id, and accepts all starts."""
        return self.is_up and self.node_id == node_id and self.core.plays_starts

    @property
    def is_played(self) -> bool:
        return self._play_heartbeat is not None

    def play_starts(self, containers: Sequence[PlayedContainer]) -> None:
        self._play(lambda now_ms: self.core.play_starts(containers, now_ms))

    def play_end(self, container: PlayedContainer) -> None:
        """End a container, which an earlier start of the NodeManager may have started."""
        if self.core.containers.get(container.id) is container:
            self._play(lambda now_ms: self.core.play_end(container, now_ms))

    def _play(self, play: Callable[[int], list[Effect]]) -> None:
        quiet = self.quiet_heartbeats
        is_left_out = quiet is not None and quiet.is_between_heartbeats(self)
        self._carry_out_all(play(self.engine.now_ms))
        if quiet is not None and is_left_out:
            quiet.note_news(self)

    def play_answer(self, answer: NodeHeartbeatResponse) -> None:
        """Handle the answer to a heartbeat that was left out, which `only_forgets`."""
        self._carry_out_all(self.core.play_answer(answer, self.engine.now_ms))

    def _carry_out_all(self, effects: list[Effect]) -> None:
        for effect in effects:
            self.carry_out(effect)
        self._alarm.set()

    def carry_out(self, effect: Effect) -> None:
        match effect:
            case StateChanged() | Warn():
                # First, as most effects are changes of states.
                pass
            case SendHeartbeat(request, _):
                self._send_heartbeat(request)
            case SendRegistration(request):
                self._register(request, self.engine.now_ms)
            case SendUnregistration():
                self._unregister()
            case Reply(call, value):
                self.give(call, value)
            case Refuse(call, error):
                self.refuse(call, error)
            case LaunchContainer() | ReacquireContainer() | SignalProcess():
                self._launch(effect)
            case FetchResource(fetch_id, resource=resource):
                fetched = ResourceFetched(fetch_id, f"/cache/{effect.number}", resource.size_bytes)
                self.after(FETCH_MS, Rank.CONTAINER, partial(self.step, fetched))
            case ForgetApplicationKeys(application_id):
                self._service.forget_keys(application_id)
            case EndNode(failure):
                self.engine.at(
                    self.engine.now_ms, Rank.CONTAINER, self.number, partial(self._end, self.starts, failure)
                )
            case InvariantsBroken(violations):
                for violation in violations:
                    self.broken(violation)
            case MonitorContainer() | ChangeMonitoring():
                # Containers use what their tables say, and that is within their limits.
                pass
            case DeleteResource() | DeleteContainerFiles() | DeleteApplicationFiles() | DeleteApplicationLogs():
                # There are no files.
                pass
            case AggregateLogs(application_id):
                aggregated = LogsAggregated(application_id)
                self.after(FETCH_MS, Rank.CONTAINER, partial(self.step, aggregated))
            case InitAuxiliaryService() | StopAuxiliaryServices():
                # No shuffle service is simulated: reduces read the output of maps directly.
                pass
            case LeaveContainers():
                self.leaves_containers = True
            case EraseStoredState():
                assert self._records is not None, "only what is stored is erased"
                self._records.clear()
            case _:
                self._store(effect)

    def _store(self, effect: StoreEffect) -> None:
        """Store an effect at once: it takes a small part of a millisecond."""
        if self._records is not None:
            self._records.apply(effect)

    def _end(self, starts: int, failure: str) -> None:
        if self.is_up and self.starts == starts:
            self.exit()
            self._ended(failure)

    # Calls to the ResourceManager (nm.shell.resource_tracker)

    def _register(self, request: RegisterNodeManagerRequest, started_ms: int) -> None:
        """Register with the RM; repeat the call until it is answered."""
        conversation = self._next_conversation()

        def done(outcome: RegisterNodeManagerResponse | YarnException) -> None:
            if conversation != self._conversation:
                return
            if isinstance(outcome, RegisterNodeManagerResponse):
                accept_keys(outcome, self._container_tokens.keys, self._nm_keys)
                self.step(NodeRegistered(outcome))
            elif isinstance(outcome, CallOutcomeUnknown) and self._retry.may_wait(self.engine.now_ms - started_ms):
                again = partial(self._register_again, conversation, request, started_ms)
                self.after(self._retry.interval_ms, Rank.TIMER, again)
            else:
                self.step(RegistrationFailed(outcome.message))

        self._call(ResourceTracker.register_node_manager, request, done)

    def _register_again(self, conversation: int, request: RegisterNodeManagerRequest, started_ms: int) -> None:
        if conversation == self._conversation:
            self._register(request, started_ms)

    def _send_heartbeat(self, request: NodeHeartbeatRequest) -> None:
        self.last_heartbeat = request
        request = with_key_ids(request, self._container_tokens.keys, self._nm_keys)
        done = partial(self._heartbeat_done, self._next_conversation())
        if self._play_heartbeat is None:
            self._call(ResourceTracker.node_heartbeat, request, done, self._under_way)
            return
        under_way, delay_ms = self._under_way, self._network.conditions.delay_ms
        if under_way is not None and under_way.reply is not None:
            self._at(under_way.sent_ms + delay_ms, partial(done, under_way.reply.content(self._network.encode)))
        else:
            sent_ms = self.engine.now_ms if under_way is None else under_way.sent_ms
            self._at(sent_ms + delay_ms, partial(self._heartbeat_arrives, self._play_heartbeat, request, done))

    def _heartbeat_arrives(
        self, answer: HeartbeatAnswers, request: NodeHeartbeatRequest, done: Done[NodeHeartbeatResponse]
    ) -> None:
        self._at(self.engine.now_ms + self._network.conditions.delay_ms, partial(done, answer(request)))

    def _at(self, time_ms: int, action: Action) -> None:
        """Do `action` when a message arrives that is exchanged with the ResourceManager."""
        self.engine.at(time_ms, Rank.HEARTBEAT, self.number, partial(self.deliver, self.starts, action))

    def _heartbeat_done(self, conversation: int, outcome: NodeHeartbeatResponse | YarnException) -> None:
        if conversation != self._conversation:
            return
        if isinstance(outcome, YarnException):
            self.step(heartbeat_failed(outcome))
        else:
            accept_keys(outcome, self._container_tokens.keys, self._nm_keys)
            updates = verified_updates(outcome, self._container_tokens, self.node_id)
            self.step(NodeHeartbeatAnswered(outcome, updates))
            is_known = self.core.reports_only_containers if self.is_played else self.core.is_quiet
            if self.quiet_heartbeats is not None and is_known:
                self.quiet_heartbeats.leave_out(self)

    def _unregister(self) -> None:
        """Unregister; the reply to a call that is still waiting is ignored."""
        conversation = self._next_conversation()

        def over(_: object) -> None:
            if conversation == self._conversation:
                self._next_conversation()
                self.step(UnregisterCompleted())

        self._call(ResourceTracker.unregister_node_manager, self.node_id, over)
        self.after(round(UNREGISTER_TIMEOUT_S * 1000), Rank.TIMER, partial(over, None))

    def _call(
        self, rpc: Rpc[Asked, Answered], request: Asked, done: Done[Answered], under_way: UnderWay | None = None
    ) -> None:
        self._network.call(
            self,
            self.tracker_link,
            self._resource_manager,
            rpc,
            request,
            done,
            token=self.token,
            retry=self._retry,
            under_way=under_way,
        )

    def _next_conversation(self) -> int:
        """A number for the next call; answers to earlier ones are ignored."""
        self._conversation += 1
        return self._conversation
