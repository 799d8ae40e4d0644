"""An ApplicationMaster's process in a simulation: the cores of a real AM and of its clients for the RM and the NMs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeAlias, assert_never

from msgspec import Struct

from am.core.actions import (
    Application,
    ChangeBlacklist,
    Finish,
    Launch,
    Leave,
    ReleaseContainer,
    RequestContainer,
    StopContainer,
    WithdrawRequest,
)
from am.core.am_rm_client_core import (
    AMRMClientCore,
    CallAnswered,
    CallFailed,
    ClientEffect,
    ClientEvent,
    ContainersRequested,
    Deliver,
    Register,
    RegisterFailed,
    Request,
    Response,
    SendCall,
    Unregister,
    Unregistered,
    UnregisterFailed,
    UseToken,
)
from am.core.am_rm_client_state import AMRMClientState
from am.core.application_master import (
    AbandonLaunch,
    ApplicationMasterCore,
    ApplicationMasterEffect,
    ApplicationMasterEvent,
    MarkedLost,
)
from am.core.client_invariants import CheckedAMRMClientCore
from am.core.events import HeartbeatDone
from am.core.invariants import CheckedAMRMClientState
from am.core.reconciliation import MarkLost, NodeAnswered, NodeUnreachable, QueryNode, StopOrphan
from am.programs.application_master import EXIT_CRASH
from nm.core.effects import LaunchContainer
from wire.caller import caller_metadata
from wire.files.credentials import Credentials
from wire.files.topology import Topology
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.retry import RetryPolicy
from yarn.configuration import Configuration
from yarn.containers import AMRM_KIND, Token
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ContainerId, NodeId
from yarn.machine import StateChanged, Tick, Warn
from yarn.protocols.container_management import GetContainerStatusesResponse
from yarn.protocols.master import (
    AllocateRequest,
    AllocateResponse,
    FinishApplicationMasterRequest,
    RegisterApplicationMasterRequest,
)
from yarn.resource import NONE
from yarn.settings.resourcemanager import (
    AM_HEARTBEAT_INTERVAL,
    CONNECT_MAX_WAIT,
    NM_CLIENT_CONNECT_MAX_WAIT,
    NM_CLIENT_CONNECT_RETRY_INTERVAL,
    NM_EXPIRY_INTERVAL,
)
from yarn.settings.yarnling import CHECK_INVARIANTS
from yarnling.run.trace import Trace
from yarnling.simulation.engine import Engine, Rank
from yarnling.simulation.master_requests import MasterRequests
from yarnling.simulation.network import Done, Endpoint, Network, UnderWay
from yarnling.simulation.network_starts import NetworkStarts
from yarnling.simulation.process import Alarm, HeartbeatSaver, Process
from yarnling.simulation.server import Envelope
from yarnling.workload.model import AM_START_MS

NodeLink: TypeAlias = Callable[[NodeId], tuple[str, Endpoint]]


class PlayedCalls(Protocol):
    """The calls of an AM whose messages are not sent one by one (yarnling.simulation.played_calls)."""

    def allocate(self, request: AllocateRequest, done: Done[AllocateResponse], under_way: UnderWay | None) -> None:
        """Send a heartbeat."""

    def answer_of(self, request: AllocateRequest) -> Envelope:
        """The ResourceManager's reply to a heartbeat that arrives there now."""
        ...

    def launch(self, launch: Launch) -> bool:
        """Start a container; False if it has to be started over the network."""
        ...


class AMSettings(Struct, frozen=True):
    """The settings that an AM reads from the configuration."""

    heartbeat_interval_ms: int
    silence_max_ms: int
    node_expiry_ms: int
    rm_retry: RetryPolicy
    nm_retry: RetryPolicy
    check_invariants: bool

    @staticmethod
    def read(conf: Configuration) -> AMSettings:
        silence_max_ms = CONNECT_MAX_WAIT.of(conf)
        return AMSettings(
            AM_HEARTBEAT_INTERVAL.of(conf),
            silence_max_ms if silence_max_ms >= 0 else 1 << 53,
            NM_EXPIRY_INTERVAL.of(conf),
            RetryPolicy.read(conf),
            RetryPolicy.read(conf, NM_CLIENT_CONNECT_MAX_WAIT, NM_CLIENT_CONNECT_RETRY_INTERVAL),
            CHECK_INVARIANTS.of(conf),
        )


class AMConduct(Struct, frozen=True):
    """The behaviour of a simulated AM.

    `start_ms`: from the start of the AM's process to its first call. `asks_again`: as in AMRMClientState.
    """

    start_ms: int = AM_START_MS
    asks_again: bool = False


class ApplicationMasterProcess(Process):
    """An attempt's AM in its container on machine `number`. `ended` gets its exit code, unless it is killed."""

    def __init__(
        self,
        engine: Engine,
        network: Network,
        number: int,
        launch: LaunchContainer,
        make_application: Callable[[], Application],
        *,
        settings: AMSettings,
        topology: Topology,
        resource_manager: Endpoint,
        node_link: NodeLink,
        ended: Callable[[int], None],
        trace: Trace | None,
        lane: int = 0,
        conduct: AMConduct,
    ) -> None:
        super().__init__(engine, f"am {launch.container_id}", number, lane)
        self._network = network
        self._launch_effect = launch
        self._make_application = make_application
        self._settings = settings
        self._topology = topology
        self._resource_manager = resource_manager
        self._node_link = node_link
        self._ended = ended
        self._trace = trace
        self._asks_again = conduct.asks_again
        self.token: Token | None = None
        self._requests: MasterRequests | None = None
        self._exit_code = EXIT_CRASH
        self._client_events: deque[ClientEvent] = deque()
        self._is_in_client = False
        self.quiet_heartbeats: HeartbeatSaver[ApplicationMasterProcess] | None = None
        self.played: PlayedCalls | None = None
        self._under_way: UnderWay | None = None
        self.boot()
        self.after(conduct.start_ms, Rank.CONTAINER, self._main)

    @property
    def user(self) -> str:
        return self._launch_effect.user

    def kill(self) -> None:
        """End the AM: its container has ended."""
        self.exit()

    @property
    def requests(self) -> MasterRequests | None:
        """The requests that faults add to its next heartbeat; None before its first call."""
        self._resume()
        return self._requests

    # Heartbeats that are left out (yarnling.simulation.quiet_am_heartbeats)

    @property
    def scheduler_link(self) -> str:
        return f"scheduler-{self.number}"

    @property
    def attempt_id(self) -> ApplicationAttemptId:
        return self._launch_effect.container_id.attempt_id

    def pause(self) -> None:
        self._resume()
        super().pause()

    def exit(self) -> None:
        self._resume()
        super().exit()

    def _maybe_leave_out(self) -> None:
        quiet = self.quiet_heartbeats
        if quiet is not None and self.is_up and not self._heeds_heartbeats and self._client.is_quiet:
            quiet.leave_out(self)

    def _resume(self) -> None:
        if self.quiet_heartbeats is not None:
            self.quiet_heartbeats.resume(self)

    def pause_heartbeats(self) -> tuple[int, AllocateRequest]:
        """Stop sending heartbeats; returns when the next one was due, and its content."""
        return self._client.pause_heartbeats()

    def resume_heartbeats(self, count: int, due_ms: int, under_way: UnderWay | None) -> None:
        """Resume as if `count` quiet heartbeats were sent; the next is due at `due_ms`, or `under_way` since then."""
        self._client.resume_heartbeats(count, due_ms)
        if under_way is not None:
            self._under_way = under_way
            for effect in self._client.handle(Tick(), due_ms):
                self._carry_out_call(effect)
            self._under_way = None
        self._client_alarm.set()

    def answer_of(self, request: AllocateRequest) -> Envelope:
        """The ResourceManager's reply to a heartbeat that was left out until now, when it arrives there."""
        if self.played is not None:
            return self.played.answer_of(request)
        served = self._resource_manager()
        assert served is not None, "all AMs send heartbeats before the ResourceManager exits"
        replies = list[Envelope]()
        metadata = caller_metadata("", self.token) if self._network.encode else ()
        message = Envelope(ApplicationMasterProtocol.allocate, request, metadata, "", self.token)
        served[1].answer(message, replies.append)
        return replies[0]

    def _main(self) -> None:
        self.token = Credentials.from_bytes(self._launch_effect.tokens).token_of_kind(AMRM_KIND)
        application = self._make_application()
        self._heeds_heartbeats = application.heeds_heartbeats
        is_checked = self._settings.check_invariants
        make_state = CheckedAMRMClientState if is_checked else AMRMClientState
        self._state = make_state(self._topology.rack_of, asks_again=self._asks_again)
        self._requests = MasterRequests(self._state, self._to_node)
        self._client = (CheckedAMRMClientCore if is_checked else AMRMClientCore)(
            self._state,
            heartbeat_interval_ms=self._settings.heartbeat_interval_ms,
            silence_max_ms=self._settings.silence_max_ms,
            progress=application.progress,
        )
        self._client_alarm = Alarm(self, self._client.next_deadline_ms, lambda: self._to_client(Tick()))
        self._core = ApplicationMasterCore(application, self._settings.node_expiry_ms, check_invariants=is_checked)
        self._alarm = Alarm(self, self._core.next_deadline_ms, lambda: self._handle(Tick()))
        self.network_starts = NetworkStarts(
            self,
            self._settings.nm_retry,
            self._to_node,
            self._state.nm_tokens,
            self._handle,
            check_invariants=is_checked,
        )
        self._to_client(Register(RegisterApplicationMasterRequest(self.name)))

    def _end(self, exit_code: int) -> None:
        self.exit()
        self._ended(exit_code)

    def _handle(self, event: ApplicationMasterEvent) -> None:
        """Handle an event from the RM or an NM, the answer to a query, or a deadline."""
        self._resume()
        effects = self._core.handle(event, self.engine.now_ms)
        if self._trace is not None:
            self._trace.note(self.engine.now_ms, self.name, event, effects)
        self._alarm.set()
        for effect in effects:
            self._carry_out(effect)
        if self._requests is not None:
            self._requests.handle(event)
        self._handle_client_events()

    def wake(self) -> None:
        """Let the application check its timers, as it does at heartbeats."""
        self._handle(HeartbeatDone(NONE, 0))

    def _carry_out(self, effect: ApplicationMasterEffect) -> None:
        match effect:
            case RequestContainer(request):
                self._state.add_request(request)
                if self._client.awaits_requests:
                    self._client_events.append(ContainersRequested())
            case WithdrawRequest(request):
                self._state.remove_request(request)
            case ReleaseContainer(container_id):
                self._state.release(container_id)
            case ChangeBlacklist(additions, removals):
                self._state.change_blacklist(additions, removals)
            case Launch():
                self._launch(effect)
            case AbandonLaunch(container_id):
                self.network_starts.abandon(container_id)
            case StopContainer(container_id, node_id) | StopOrphan(container_id, node_id):
                self._stop(container_id, node_id)
            case QueryNode():
                self._query(effect)
            case MarkLost(statuses, release):
                self._handle(MarkedLost(tuple(self._state.mark_lost(statuses, release=release))))
            case Finish(final_status, diagnostics, exit_code):
                self._exit_code = exit_code
                self._client_events.append(Unregister(FinishApplicationMasterRequest(final_status, diagnostics)))
            case Leave(_, exit_code):
                self._end(exit_code)
            case StateChanged():
                pass
            case _:
                assert_never(effect)

    # The RM (am.client.am_rm_client)

    def _to_client(self, event: ClientEvent) -> None:
        self._client_events.append(event)
        self._handle_client_events()

    def _handle_client_events(self) -> None:
        """Let the client handle its events, and the events that its effects cause, one after the other."""
        if self._is_in_client:
            return
        self._is_in_client = True
        while self._client_events and self.is_up:
            for effect in self._client.handle(self._client_events.popleft(), self.engine.now_ms):
                if self.is_up:
                    self._carry_out_call(effect)
        self._is_in_client = False
        if self.is_up:
            self._client_alarm.set()

    def _carry_out_call(self, effect: ClientEffect) -> None:
        match effect:
            case SendCall(call, request):
                self._call(call, request)
            case UseToken(token):
                self.token = token
            case Deliver(event):
                self._handle(event)
            case RegisterFailed() | UnregisterFailed():
                self._end(EXIT_CRASH)
            case Unregistered():
                self._end(self._exit_code)
            case Warn():
                pass
            case _:
                assert_never(effect)

    def _call(self, call: int, request: Request) -> None:
        def done(outcome: Response | YarnException) -> None:
            if isinstance(outcome, YarnException):
                self._to_client(CallFailed(call, outcome))
            else:
                self._to_client(CallAnswered(call, outcome))
                self._maybe_leave_out()

        if self.played is not None and isinstance(request, AllocateRequest):
            self.played.allocate(request, done, self._under_way)
            return
        send = partial(
            self._network.call,
            self,
            self.scheduler_link,
            self._resource_manager,
            token=self.token,
            retry=self._settings.rm_retry,
            under_way=self._under_way,
        )
        match request:
            case RegisterApplicationMasterRequest():
                send(ApplicationMasterProtocol.register_application_master, request, done)
            case AllocateRequest():
                send(ApplicationMasterProtocol.allocate, request, done)
            case FinishApplicationMasterRequest():
                send(ApplicationMasterProtocol.finish_application_master, request, done)
            case _:
                assert_never(request)

    # The NMs (am.client.nm_client)

    def _launch(self, launch: Launch) -> None:
        if self.played is None or not self.played.launch(launch):
            self.network_starts.launch(launch)

    def _stop(self, container_id: ContainerId, node_id: NodeId) -> None:
        """Ask the NM to stop a container. A failure is ignored: the RM reports the container's end in any case."""
        if node_id in self._state.nm_tokens:
            self._to_node(node_id)(ContainerManagementProtocol.stop_containers, (container_id,), lambda _: None)

    def _to_node(self, node_id: NodeId) -> partial[None]:
        """Call the NM."""
        link, endpoint = self._node_link(node_id)
        return partial(
            self._network.call,
            self,
            link,
            endpoint,
            token=self._state.nm_tokens.get(node_id),
            retry=self._settings.nm_retry,
        )

    def _query(self, query: QueryNode) -> None:
        is_over: list[bool] = []

        def over(event: NodeAnswered | NodeUnreachable) -> None:
            if not is_over:
                is_over.append(True)
                self._handle(event)

        def done(outcome: GetContainerStatusesResponse | YarnException) -> None:
            if isinstance(outcome, YarnException):
                over(NodeUnreachable(query.node_id))
            else:
                over(NodeAnswered(query.node_id, query.container_ids, outcome.statuses))

        self.after(self._core.answer_timeout_ms, Rank.TIMER, partial(over, NodeUnreachable(query.node_id)))
        self._to_node(query.node_id)(ContainerManagementProtocol.get_container_statuses, query.container_ids, done)
