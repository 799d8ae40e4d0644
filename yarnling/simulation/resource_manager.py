"""The ResourceManager's process in a simulation: its core, services, keys and state store (rm.daemon)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Protocol, TypeAlias, assert_never

from rm.core.am_launcher import (
    AMLauncher,
    AMStartAnswered,
    AMStartFailed,
    AMStopped,
    LauncherEvent,
    StartAMContainer,
    StopAMContainer,
    shown,
)
from rm.core.durability import DurableRequest, divided
from rm.core.effects import (
    CleanUpAM,
    Effect,
    LaunchAM,
    Preempted,
    RemoveApplication,
    SaveApplication,
    SaveAttempt,
    SaveNodeLabels,
)
from rm.core.events import (
    Allocate,
    AMLaunched,
    AMLaunchFailed,
    Event,
    HostListsRead,
    NodeHeartbeat,
    PlayedHeartbeat,
    ProcessStalled,
    RefreshQueues,
    StateLoaded,
)
from rm.core.host_lists import HostLists
from rm.core.resource_manager import ResourceManagerCore
from rm.daemon import STALLS_PER_EXPIRY
from rm.shell.effects import SETTLED
from rm.shell.master_keys import MasterKeys
from rm.shell.master_launcher import CALL_TIMEOUT_S, launch_retry, start_request
from rm.shell.response_signer import ResponseSigner
from rm.shell.servers import client_authentication
from rm.shell.services import ClientService, MasterService, TrackerService
from wire.caller import RM_CALLER
from wire.files.topology import Topology
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.protocols.tracker import ResourceTracker
from wire.retry import NO_RETRY
from wire.tokens import (
    SECRET_BYTES,
    AMRMTokenSecretManager,
    ContainerTokenSecretManager,
    NMTokenSecretManager,
    NodeTokenSecretManager,
)
from yarn.configuration import Configuration
from yarn.containers import Container, ContainerStatus, ContainerTokenIdentifier, Token
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, NodeId
from yarn.machine import InvariantsBroken, Refuse, Reply, StateChanged, Tick, Warn
from yarn.protocols.container_management import StartContainersResponse
from yarn.protocols.master import AllocateRequest, AllocateResponse
from yarn.protocols.tracker import MasterKey, NodeHeartbeatRequest, NodeHeartbeatResponse
from yarn.resource import INT32_MAX
from yarn.settings import resourcemanager
from yarn.settings.yarnling import CHECK_INVARIANTS
from yarn.states import ContainerType
from yarnling.run.trace import Trace
from yarnling.simulation.engine import Engine, Rank
from yarnling.simulation.network import Endpoint, Network, Served
from yarnling.simulation.node_reports import NodeReportAudit
from yarnling.simulation.process import CoreHost, run
from yarnling.simulation.server import Server
from yarnling.simulation.state_store import SimulatedStore, SimulatedStoreWriter
from yarnling.simulation.warnings import unexpected

NUMBER = 0
"""The number of the ResourceManager among hosts; nodes are numbered from 1."""

NodeLink: TypeAlias = Callable[[NodeId], tuple[str, Endpoint]]
"""The link to the NodeManager of that id, and who answers there."""


class SuspendedHeartbeats(Protocol):
    """The heartbeats of the cluster that are left out (yarnling.simulation.quiet_heartbeats)."""

    def look(self) -> None:
        """Check after a step of the core which nodes' next heartbeats may change something now."""

    def resume_all(self) -> None:
        """Make all NodeManagers send their heartbeats again."""


class ResourceManagerProcess(CoreHost[Event, Effect]):
    """A ResourceManager. `excluded`: the hosts that its exclude file lists. `changed` gets each state change,
    `preempted` each decision of preemption.

    `store`: its disk, None without recovery.
    """

    def __init__(
        self,
        engine: Engine,
        network: Network,
        conf: Configuration,
        *,
        cluster_secret: bytes,
        topology: Topology,
        node_link: NodeLink,
        changed: Callable[[StateChanged], None],
        preempted: Callable[[Preempted], None],
        broken: Callable[[str], None],
        trace: Trace | None,
    ) -> None:
        super().__init__(engine, "rm", NUMBER, tick=Tick(), trace=trace, broken=broken)
        self.excluded: tuple[str, ...] = ()
        self.after_step: Callable[[], None] = _nothing
        """Called after each step of the core."""
        self._network = network
        self._conf = conf
        self._secret = cluster_secret
        self._topology = topology
        self._node_link = node_link
        self._changed = changed
        self._preempted = preempted
        self.store = SimulatedStore() if resourcemanager.RECOVERY_ENABLED.of(conf) else None
        self._writer: SimulatedStoreWriter | None = None
        self._keys_drawn = engine.stream("keys of the ResourceManager")
        self._walks_drawn = engine.stream("walks of asynchronous scheduling")
        self._store_drawn = engine.stream("state store")
        expiries = (resourcemanager.NM_EXPIRY_INTERVAL, resourcemanager.AM_EXPIRY_INTERVAL)
        self.quiet_heartbeats: SuspendedHeartbeats | None = None
        self._stall_ms = min(setting.of(conf) for setting in expiries) // STALLS_PER_EXPIRY

    def start(self, *, empty_disk: bool = False) -> None:
        """Start it; it recovers what an earlier one stored, unless that is lost with the disk."""
        self.boot()
        if empty_disk and self.store is not None:
            self.store = SimulatedStore()
        conf = self._conf
        started_ms = self.engine.now_ms
        self._keys = MasterKeys(conf, partial(drawn_key, self._keys_drawn))
        self.core = ResourceManagerCore(
            conf, cluster_timestamp=started_ms, user="yarn", draw=Random(self._walks_drawn.getrandbits(32)).randrange
        )
        self._node_reports = NodeReportAudit(self.core.context) if CHECK_INVARIANTS.of(conf) else None
        self.run_core(self.core)
        self._signer = ResponseSigner(
            self._keys,
            rm_identifier=started_ms,
            token_lifetime_ms=resourcemanager.CONTAINER_ALLOCATION_EXPIRY_INTERVAL.of(conf),
            user_of=lambda application_id: self.core.context.apps[application_id].user,
            clock=lambda: self.engine.now_ms,
        )
        self._launcher = AMLauncher(resourcemanager.AM_LAUNCHER_THREAD_COUNT.of(conf))
        self._launch_retry = launch_retry(conf)
        self._server = self._make_server()
        self._writer = None
        self._recover()
        self.step(HostListsRead(HostLists(excluded=tuple((host, None) for host in self.excluded))))

    def served(self) -> Served | None:
        """The process and server at the ResourceManager's addresses; None while it is down."""
        return (self, self._server) if self.is_up else None

    def _recover(self) -> None:
        if self.store is None:
            return
        state, managers = self.store.load(), self._managers()
        self._keys.recover(lambda kind: self.store.keys.get(kind, ()) if self.store is not None else ())
        for manager in managers:
            self.store.keys[manager.kind] = manager.keys.accepted()
        if any(manager.keys.next is not None for manager in managers):
            self._activate_later()
        self._writer = SimulatedStoreWriter(self.store, self, self._store_drawn, report=self.step, answer=self._answer)
        self.step(StateLoaded(state))

    def roll_keys(self) -> None:
        """Make the next key of each kind of token, unless there is one (rm.shell.master_keys)."""
        for manager in self._managers():
            if manager.keys.next is None:
                manager.keys.roll(drawn_key(self._keys_drawn))
        self._keep_keys()
        self._activate_later()

    def _activate_later(self) -> None:
        self.after(round(self._stall_ms * STALLS_PER_EXPIRY * 1.5), Rank.TIMER, self._activate_keys)

    def _activate_keys(self) -> None:
        for manager in self._managers():
            manager.keys.activate_next()
        self._keep_keys()

    def _keep_keys(self) -> None:
        if self.store is not None:
            for manager in self._managers():
                self.store.keys[manager.kind] = manager.keys.accepted()

    def _managers(self) -> tuple[AMRMTokenSecretManager, NMTokenSecretManager, ContainerTokenSecretManager]:
        return self._keys.masters, self._keys.nodes, self._keys.containers

    def refresh_queues(self, conf: Configuration, done: Callable[[object], None]) -> None:
        """Read the queues again; a configuration that is accepted is also that of the next start."""

        def answered(outcome: object) -> None:
            if not isinstance(outcome, YarnException):
                self._conf = conf
            done(outcome)

        self.deliver(self.starts, lambda: run(self.ask(lambda call: RefreshQueues(call, conf)), answered))

    def _make_server(self) -> Server:
        server, node_tokens, keys = (
            Server(encode=self._network.encode),
            NodeTokenSecretManager(self._secret),
            self._keys,
        )
        server.add(
            ApplicationClientProtocol.rpcs,
            ClientService(self.core, self, self._signer),
            client_authentication(self._conf, self._secret),
        )
        server.add(
            ApplicationMasterProtocol.rpcs,
            MasterService(self, self._signer),
            lambda caller: keys.masters.check(caller.token),
        )
        server.add(
            ResourceTracker.rpcs,
            TrackerService(self, self._signer, self._topology),
            lambda caller: node_tokens.check(caller.token),
        )
        return server

    def woke_after(self, paused_ms: int) -> None:
        if paused_ms > self._stall_ms:
            self.step(ProcessStalled(paused_ms))

    def step(self, event: Event) -> None:
        """Handle an event; while the state store cannot be written, refuse requests that must be stored."""
        problem = self._writer.problem if self._writer is not None else None
        if problem is not None and isinstance(event, DurableRequest):
            self.refuse(event.call, problem)
        else:
            if isinstance(event, RefreshQueues) and self.quiet_heartbeats is not None:
                # The refresh may change how long nodes may be silent.
                self.quiet_heartbeats.resume_all()
            super().step(event)
            if self.quiet_heartbeats is not None:
                self.quiet_heartbeats.look()

    def play_heartbeat(self, request: NodeHeartbeatRequest) -> NodeHeartbeatResponse:
        """Answer a heartbeat of a node that is played: it has no token."""
        reply = self.ask_now(lambda call: NodeHeartbeat(call, request))
        return self._signer.sign_heartbeat(request, reply)

    def play_news(self, node_id: NodeId, news: tuple[ContainerStatus, ...]) -> NodeHeartbeatResponse:
        """Answer a heartbeat that was left out until now, and only reports `news` of containers."""
        reply: NodeHeartbeatResponse = self.ask_now(lambda call: PlayedHeartbeat(call, node_id, news))
        return reply

    def play_allocate(self, attempt_id: ApplicationAttemptId, request: AllocateRequest) -> AllocateResponse:
        """Answer the heartbeat of an AM whose calls are played: nothing is signed. Raises YarnException."""
        reply: AllocateResponse = self.ask_now(lambda call: Allocate(call, attempt_id, request))
        return reply

    def start_permit(self, container: Container, user: str, allocated_ms: int) -> ContainerTokenIdentifier:
        """The content of the token of a task's container that an AM would have got in a reply of `allocated_ms`."""
        return self._signer.identifier_of(container, user, ContainerType.TASK, allocated_ms)

    def signed(self, permit: ContainerTokenIdentifier) -> tuple[Token, Token]:
        """The tokens for the node with which the AM starts that container: the container's, and the NM token."""
        nm_token = self._keys.nodes.create(permit.container_id.attempt_id, permit.node_id, permit.user)
        return self._keys.containers.create(permit), nm_token

    def exit(self) -> None:
        if self.quiet_heartbeats is not None:
            self.quiet_heartbeats.resume_all()
        super().exit()

    def pause(self) -> None:
        if self.quiet_heartbeats is not None:
            self.quiet_heartbeats.resume_all()
        super().pause()

    def carry_out_step(self, event: Event, effects: list[Effect]) -> None:
        if self._writer is None:
            super().carry_out_step(event, effects)
        else:
            step = divided(event, effects, store_is_busy=self._writer.is_busy)
            super().carry_out_step(event, step.now)
            if step.to_store or step.answers:
                self._writer.put(step.to_store, step.answers)
        if self._node_reports is not None:
            for violation in self._node_reports.violations(event, effects):
                self.broken(violation)
        self.after_step()

    def carry_out(self, effect: Effect) -> None:
        match effect:
            case Reply() | Refuse():
                self._answer(effect)
            case StateChanged():
                if effect.kind == "RMAppAttempt" and effect.target in SETTLED:
                    self._signer.forget(ApplicationAttemptId.parse(effect.subject))
                self._changed(effect)
            case LaunchAM() | CleanUpAM():
                self._launch(effect)
            case InvariantsBroken(violations):
                for violation in violations:
                    self.broken(violation)
            case SaveApplication() | SaveAttempt() | RemoveApplication() | SaveNodeLabels():
                raise AssertionError(f"{effect} must be carried out with its whole step")
            case Preempted():
                self._preempted(effect)
            case Warn(text):
                if unexpected_violation := unexpected(text):
                    self.broken(unexpected_violation)
            case _:
                assert_never(effect)

    def _answer(self, answer: Reply | Refuse) -> None:
        match answer:
            case Reply(call, value):
                self.give(call, value)
            case Refuse(call, error):
                self.refuse(call, error)

    def _launch(self, event: LauncherEvent) -> None:
        for effect in self._launcher.handle(event):
            match effect:
                case StartAMContainer(launch):
                    self._start(launch)
                case StopAMContainer(clean_up):
                    self._stop(clean_up)
                case AMLaunched() | AMLaunchFailed():
                    self.step(effect)
                case _:
                    assert_never(effect)

    def _start(self, launch: LaunchAM) -> None:
        node_id, attempt_id = launch.container.node_id, launch.attempt_id

        def done(outcome: StartContainersResponse | YarnException) -> None:
            if isinstance(outcome, YarnException):
                self._launch(AMStartFailed(attempt_id, shown(outcome)))
            else:
                self._launch(AMStartAnswered(attempt_id, outcome))

        link, endpoint = self._node_link(node_id)
        self._network.call(
            self,
            link,
            endpoint,
            ContainerManagementProtocol.start_containers,
            (start_request(launch, self._signer),),
            done,
            user=RM_CALLER,
            token=self._keys.nodes.create(attempt_id, node_id, launch.user),
            retry=self._launch_retry,
            timeout_s=CALL_TIMEOUT_S,
        )

    def _stop(self, clean_up: CleanUpAM) -> None:
        link, endpoint = self._node_link(clean_up.node_id)
        self._network.call(
            self,
            link,
            endpoint,
            ContainerManagementProtocol.stop_containers,
            (clean_up.container_id,),
            lambda _: self._launch(AMStopped()),
            user=RM_CALLER,
            token=self._keys.nodes.create(clean_up.attempt_id, clean_up.node_id, ""),
            retry=NO_RETRY,
            timeout_s=CALL_TIMEOUT_S,
        )


def _nothing() -> None:
    """Do nothing."""


def drawn_key(draw: Random) -> MasterKey:
    """A key from a seeded stream, in the place of wire.tokens.new_master_key."""
    return MasterKey(1 + draw.randrange(INT32_MAX - 1), draw.randbytes(SECRET_BYTES))
