"""The ResourceManager as a process: four servers around one core.

await serve(conf, ready)      runs until SIGTERM or SIGINT; `ready` is called once, when calls are answered
"""

from __future__ import annotations

import asyncio
import getpass
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random, getrandbits
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rm.core.events import HostListsRead, StateLoaded
from rm.core.host_lists import HostLists
from rm.core.resource_manager import ResourceManagerCore
from rm.core.stored_state import RMState
from rm.pack.service import serve_packs
from rm.shell.admin_service import AdminService
from rm.shell.configuration_files import host_lists, with_mapping_rules
from rm.shell.effects import ResourceManagerShell
from rm.shell.ha.candidate import HACandidate
from rm.shell.ha.engines import Engines, engines_of
from rm.shell.ha.front import front
from rm.shell.inspection_service import InspectionService
from rm.shell.master_keys import MasterKeys
from rm.shell.master_launcher import MasterLauncher
from rm.shell.mutable_configuration import MutableConfiguration
from rm.shell.response_signer import ResponseSigner
from rm.shell.servers import Servers, client_authentication
from rm.shell.services import ClientService, MasterService, TrackerService
from rm.shell.sqlite_store import SQLiteStateStore
from rm.shell.state_store_engine import StateStoreEngine
from rm.shell.store_writer import StoreWriter
from wire.caller import RM_CALLER
from wire.channel import Channels
from wire.cluster_secret import read_cluster_secret
from wire.core_shell import WallClock
from wire.daemon import Reload, ReportReady, ended_by_signal
from wire.dispatch import RpcObserver
from wire.event_log import open_event_log
from wire.files.store_file import StoreDamaged
from wire.files.topology import Topology
from wire.garbage_collection import collect_less_often, uncollected
from wire.hadoop_authentication import ByToken, ByUser
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.inspection import InspectionProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.protocols.tracker import ResourceTracker
from wire.tokens import ClientTokenSecretManager, NodeTokenSecretManager
from wire.watching import CallWatch
from yarn.configuration import Configuration
from yarn.containers import Token
from yarn.errors import InvalidToken, YarnException
from yarn.ids import ApplicationAttemptId
from yarn.machine import StateChanged
from yarn.settings import high_availability, resourcemanager, zookeeper
from yarn.settings.yarnling import STATE_STORE_FILE, WEB_ENABLED

if TYPE_CHECKING:
    from rm.shell.web.server import ResourceManagerWeb

ROLE = "resourcemanager"
WEB_KEY = resourcemanager.WEBAPP_ADDRESS.key
BROKEN = 70
"""Exit status after an invariant was broken (EX_SOFTWARE)."""
STORE_FAILED = 74
"""Exit status if the state store is damaged or could not be written (EX_IOERR)."""
STALLS_PER_EXPIRY = 3
"""A stall of a third of the shortest expiry interval counts: Hadoop's liveness monitors check that often."""
SEED_BITS = 32
_logger = logging.getLogger(f"yarnling.{__name__}")


class ResourceManagerStart(Struct, frozen=True):
    """The arguments of the core: the first line of its event log."""

    configuration: Configuration
    cluster_timestamp: int
    user: str
    seed: int = 0

    def core(self) -> ResourceManagerCore:
        """A new core with these arguments; `seed` is that of its random numbers."""
        return ResourceManagerCore(
            self.configuration,
            cluster_timestamp=self.cluster_timestamp,
            user=self.user,
            draw=Random(self.seed).randrange,
        )


async def serve(
    conf: Configuration,
    ready: ReportReady,
    *,
    reload: Reload | None = None,
    stop: asyncio.Event | None = None,
    observers: tuple[RpcObserver, ...] = (),
) -> int:
    """Run the ResourceManager until it is stopped; returns the exit status.

    `reload` reads the configuration files again for refreshQueues. `stop` given: the RM shares its process; setting the
    event ends the RM, and signal handlers and garbage collection are left alone. Raises YarnException, naming key and
    remedy, if it cannot start, except for a damaged state store, which is logged and has its own exit status.
    """
    if stop is None:
        collect_less_often()
    stopping = stop or asyncio.Event()
    try:
        async with ended_by_signal(stopping, use_signals=stop is None):
            if high_availability.HA_ENABLED.of(conf):
                return await _serve_as_candidate(conf, ready, stopping, reload, observers)
            rm = ResourceManager(conf, reload=reload, observers=observers)
            rm.give_up = stopping.set
            async with rm.running():
                ready(rm.facts())
                _logger.info("ready cluster_timestamp=%d addresses=%s", rm.cluster_timestamp, rm.addresses)
                await stopping.wait()
                _logger.info("stopping")
    except StoreDamaged as damage:
        _logger.critical("the state store cannot be read: %s", damage.message)
        return STORE_FAILED
    return rm.exit_status


async def _serve_as_candidate(
    conf: Configuration,
    ready: ReportReady,
    stopping: asyncio.Event,
    reload: Reload | None,
    observers: tuple[RpcObserver, ...],
) -> int:
    """Run one of several ResourceManagers until it is stopped; returns the exit status."""
    rm_id = high_availability.own_id(conf)
    addresses = high_availability.addresses_of(conf, rm_id)
    web = {each: high_availability.addresses_of(conf, each)[WEB_KEY] for each in high_availability.rm_ids(conf)}
    engines = await asyncio.to_thread(engines_of, conf, rm_id)
    statuses: list[int] = []

    def give_up(rm: ResourceManager) -> None:
        if rm.exit_status == STORE_FAILED:
            # The ResourceManager that leads next recovers what is stored; this one becomes standby.
            candidate.cannot_serve("the state store cannot be written")
        else:
            statuses.append(rm.exit_status)
            stopping.set()

    def make(term: int) -> ResourceManager:
        current = conf if reload is None else reload()
        role = CandidateRole(rm_id, term, engines, candidate)
        rm = ResourceManager(
            high_availability.with_own_addresses(current, rm_id),
            reload=None if reload is None else _with_addresses(reload, rm_id),
            observers=observers,
            role=role,
        )
        rm.give_up = partial(give_up, rm)
        return rm

    candidate = HACandidate(
        rm_id,
        engines,
        make=make,
        automatic=high_availability.AUTOMATIC_FAILOVER_ENABLED.of(conf),
        patience_ms=2 * high_availability.LEASE.of(conf),
    )
    own = high_availability.with_own_addresses(conf, rm_id)
    try:
        async with front(own, candidate, web, observers) as served, candidate.running():
            ready({"role": ROLE, "pid": os.getpid(), "id": rm_id, "addresses": addresses | served})
            _logger.info("ready id=%s addresses=%s", rm_id, addresses | served)
            await stopping.wait()
            _logger.info("stopping")
    finally:
        engines.close()
    return statuses[0] if statuses else 0


class CandidateRole(Struct, frozen=True):
    """The place of a ResourceManager that leads for a term, in a process that answers administrators and the web."""

    rm_id: str
    term: int
    engines: Engines
    candidate: HACandidate


class ResourceManager:
    """An RM. `addresses` {configuration key: "host:port" as it is served}, filled while it runs.

    `give_up` is called when it cannot go on; `exit_status` then has the reason. `role`: that of one of several RMs;
    administrators and the web are then served elsewhere (rm.shell.ha.front), through `admins` and `web`.
    """

    def __init__(
        self,
        conf: Configuration,
        *,
        reload: Reload | None = None,
        observers: tuple[RpcObserver, ...] = (),
        role: CandidateRole | None = None,
    ) -> None:
        """Checks the configuration. Opens no file but that of the mapping rules, and the store of queues."""
        self._role = role
        self._site = conf
        self._mutable = MutableConfiguration.open(conf)
        if self._mutable is not None:
            conf = self._mutable.applied_to(conf)
        conf = with_mapping_rules(conf)
        self._clock = clock = WallClock()
        self.cluster_timestamp = clock()
        self.addresses: dict[str, str] = {}
        self._start = ResourceManagerStart(conf, self.cluster_timestamp, getpass.getuser(), getrandbits(SEED_BITS))
        self.core = self._start.core()
        self._conf = conf
        self.keys = MasterKeys(conf)
        self._store_place = _store_place(conf)
        self._shell = ResourceManagerShell(self.core, clock)
        self._signer = ResponseSigner(
            self.keys,
            rm_identifier=self.cluster_timestamp,
            token_lifetime_ms=resourcemanager.CONTAINER_ALLOCATION_EXPIRY_INTERVAL.of(conf),
            user_of=lambda application_id: self.core.context.apps[application_id].user,
            clock=clock,
        )
        self._shell.give_up = self._give_up
        self.exit_status = 0
        self.give_up: Callable[[], None] = lambda: None
        self._shell.attempt_ended = lambda subject: self._signer.forget(ApplicationAttemptId.parse(subject))
        self._watch = CallWatch.read(conf)
        if self._watch is not None:
            self._shell.state_changed = partial(_send_change, self._watch)
        self._servers = self._make_servers(reload, observers if self._watch is None else (*observers, self._watch))

    def _give_up(self) -> None:
        """Stop, because an invariant is broken. The log has the violation, the event log the steps that led to it."""
        self.exit_status = BROKEN
        self.give_up()

    @property
    def web(self) -> Any:
        """The web services as an ASGI application; None without them."""
        return None if self._web is None else self._web.application

    def facts(self) -> dict[str, object]:
        """The content of the ready line."""
        return {
            "role": ROLE,
            "pid": os.getpid(),
            "cluster_timestamp": self.cluster_timestamp,
            "addresses": self.addresses,
        }

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve while the context is open. If starting fails, everything that was started is stopped."""
        shell = self._shell
        name = ROLE if self._role is None else f"{ROLE}-{self._role.rm_id}"
        shell.event_log = open_event_log(self._conf, name, self._start)
        try:
            async with self._recovered(), Channels() as channels, _background_tasks() as tasks:
                launcher = MasterLauncher(
                    self._conf,
                    keys=self.keys,
                    signer=self._signer,
                    channels=channels,
                    tasks=tasks,
                    report=shell.send,
                )
                shell.launch, shell.clean_up = launcher.launch, launcher.clean_up
                shell.handle(HostListsRead(_host_lists_at_start(self._conf)))
                shell.detect_stalls(self._shortest_expiry_ms() // STALLS_PER_EXPIRY)
                rolling = tasks.create_task(self.keys.roll_forever())
                try:
                    self.addresses = await self._servers.start()
                    if self._web is not None and self._role is None:
                        self.addresses |= await self._web.start()
                    elif self._web is not None:
                        self._web.start_sampling()
                    if self._watch is not None:
                        await self._watch.open(RM_CALLER)
                    yield
                finally:
                    if self._watch is not None:
                        await self._watch.close()
                    rolling.cancel()
                    launcher.cancel()
                    if self._web is not None:
                        await self._web.stop()
                    await self._servers.stop()
        finally:
            shell.close()

    @asynccontextmanager
    async def _recovered(self) -> AsyncIterator[None]:
        """Recover the state of an earlier ResourceManager, and store changes from now on, if recovery is enabled."""
        if self._store_place is None:
            yield
            return
        store = self._open_store(self._store_place)
        writer = StoreWriter(store, report=self._shell.send, answer=self._shell.carry_out, fail=self._fail_to_store)
        try:
            # Recovered objects stay; visiting them again and again took half of the time.
            with uncollected():
                state = self._taken_over(store)
                self.keys.recover(store.keys)
                await self.keys.keep(writer.write_keys)
                self._shell.store_writer = writer
                self._shell.handle(StateLoaded(state))
            _logger.info(
                "recovered epoch=%d applications=%d store=%s (%s) %s",
                state.epoch,
                len(state.applications),
                store.description,
                resourcemanager.STORE_CLASS.of(self._conf),
                self._store_place,
            )
            yield
        finally:
            await writer.close()

    def _open_store(self, place: str) -> StateStoreEngine:
        if self._role is not None:
            return self._role.engines.open_store()
        if zookeeper.has_store(self._conf):
            # kazoo is needed only here, and may be missing.
            from rm.shell.zookeeper_store import ZooKeeperStateStore

            return ZooKeeperStateStore.open(self._conf)
        return SQLiteStateStore.open(Path(STATE_STORE_FILE.of(self._conf)), place)

    def _taken_over(self, store: StateStoreEngine) -> RMState:
        """The stored state, in an epoch that no other ResourceManager has."""
        if self._role is not None:
            store.take_over(self._role.term)
            return store.load()
        return store.recover()

    def _shortest_expiry_ms(self) -> int:
        return min(
            setting.of(self._conf)
            for setting in (resourcemanager.NM_EXPIRY_INTERVAL, resourcemanager.AM_EXPIRY_INTERVAL)
        )

    def _fail_to_store(self) -> None:
        """Exit: a change that cannot be stored must not be acknowledged. The next RM recovers what is stored."""
        self.exit_status = STORE_FAILED
        self.give_up()

    def _master_token_of(self, identifier: bytes) -> Token:
        """The AMRM token with this identifier.

        Raises InvalidToken also if its attempt has ended (AMRMTokenSecretManager.retrievePassword).
        """
        token = self.keys.masters.token_of(identifier)
        attempt_id = self.keys.masters.check(token).attempt_id
        if attempt_id not in self.core.context.sessions:
            raise InvalidToken(f"{attempt_id} not found in AMRMTokenSecretManager.")
        return token

    def _make_servers(self, reload: Reload | None, observers: tuple[RpcObserver, ...]) -> Servers:
        conf, shell, signer, keys = self._conf, self._shell, self._signer, self.keys
        secret, topology = read_cluster_secret(conf), Topology.read(conf)
        clients = ClientService(self.core, shell, signer)
        self.admins = admins = AdminService(self.core, shell, self._site, _with_mapping_rules(reload), self._mutable)
        node_tokens = NodeTokenSecretManager(secret)
        inspections = InspectionService(self.core, self._clock)
        role = self._role
        servers = Servers(conf, observers, None if role is None else role.candidate.gate)
        check_client = client_authentication(conf, secret)
        by_user = ByUser(ClientTokenSecretManager(secret).create())
        servers.add(
            resourcemanager.ADDRESS,
            ApplicationClientProtocol.rpcs,
            clients,
            check_client,
            by_user,
        ).add(InspectionProtocol.rpcs, inspections, check_client)
        servers.add(
            resourcemanager.SCHEDULER_ADDRESS,
            ApplicationMasterProtocol.rpcs,
            MasterService(shell, signer),
            lambda caller: keys.masters.check(caller.token),
            ByToken(self._master_token_of),
        )
        tracker = servers.add(
            resourcemanager.RESOURCE_TRACKER_ADDRESS,
            ResourceTracker.rpcs,
            TrackerService(shell, signer, topology),
            lambda caller: node_tokens.check(caller.token),
        )
        serve_packs(tracker, secret, shell, signer, topology)
        if role is None:
            rpcs = ResourceManagerAdministrationProtocol.rpcs
            servers.add(resourcemanager.ADMIN_ADDRESS, rpcs, admins, check_client, by_user)
        self._web = self._make_web(clients, admins, inspections)
        if self._web is not None:
            shell.state_changed = _both(shell.state_changed, self._web.state_changed)
        return servers

    def _make_web(
        self, clients: ClientService, admins: AdminService, inspections: InspectionService
    ) -> ResourceManagerWeb | None:
        """The web services; imported only if they are enabled."""
        if not WEB_ENABLED.of(self._conf):
            return None
        from rm.shell.web.server import ResourceManagerWeb

        web = partial(
            ResourceManagerWeb, self.core, self._conf, self._clock, clients, admins, inspections, self._mutable
        )
        return web() if self._role is None else web(elector=self._role.candidate.elector_description)


def _both(
    first: Callable[[StateChanged], None], second: Callable[[StateChanged], None]
) -> Callable[[StateChanged], None]:
    def note(change: StateChanged) -> None:
        first(change)
        second(change)

    return note


def _with_addresses(reload: Reload, rm_id: str) -> Reload:
    return lambda: high_availability.with_own_addresses(reload(), rm_id)


def _with_mapping_rules(reload: Reload | None) -> Reload | None:
    return None if reload is None else lambda: with_mapping_rules(reload())


@asynccontextmanager
async def _background_tasks() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group that raises an error of its body as it is, not as an ExceptionGroup: its tasks handle their own."""
    failure: BaseException | None = None
    async with asyncio.TaskGroup() as tasks:
        try:
            yield tasks
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            failure = error
    if failure is not None:
        raise failure


def _send_change(watch: CallWatch, change: StateChanged) -> None:
    watch.changed(
        RM_CALLER, change.kind, change.subject, event=change.event, source=change.source, target=change.target
    )


def _store_place(conf: Configuration) -> str | None:
    """The key and value that say where the state store is; None without recovery.

    Raises ConfigurationException if no place is named.
    """
    if not resourcemanager.RECOVERY_ENABLED.of(conf):
        return None
    setting = zookeeper.ZK_ADDRESS if zookeeper.has_store(conf) else STATE_STORE_FILE
    return f"{setting.key} = {setting.of(conf)}"


def _host_lists_at_start(conf: Configuration) -> HostLists:
    """The host lists; empty until the next refresh if they cannot be read (disableHostsFileReader)."""
    try:
        return host_lists(conf)
    except YarnException as error:
        _logger.warning("cannot read the host lists, NodeManagers of all hosts are accepted: %s", error.message)
        return HostLists()
