"""Elects the active ResourceManager by an ephemeral znode (rm.core.zookeeper_election has the rules).

    <zk-base-path>/<cluster-id>/ActiveStandbyElectorLock      its data is the id of the active ResourceManager

The elector has a session of its own. kazoo calls from threads of its own; everything else runs in the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, assert_never

from rm.core.zookeeper_election import (
    Connected,
    CreateLock,
    DeleteLock,
    Disconnected,
    ElectionEffect,
    ElectionEvent,
    JoinElection,
    LockCallFailed,
    LockChanged,
    LockRead,
    LockTried,
    Lost,
    QuitElection,
    ReadLock,
    SessionOver,
    TimePassed,
    Won,
    ZooKeeperElection,
)
from rm.shell.ha.interfaces import Candidate
from rm.shell.kazoo_znodes import zookeeper_client
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.settings.resourcemanager import CLUSTER_ID
from yarn.settings.zookeeper import ELECTION_PATH, ZK_ADDRESS, ZK_TIMEOUT

if TYPE_CHECKING:
    from kazoo.client import KazooClient

LOCK = "ActiveStandbyElectorLock"
ID_BYTES_MAX = 256
"""Bytes that are read of the id of a leader."""
RESIGN_S = 2.0
"""The time that `resign` waits until the lock is deleted; a lock that is left goes with the session."""
_logger = logging.getLogger(f"yarnling.{__name__}")


def monotonic_now_ms() -> int:
    """The machine's monotonic clock, which goes on while the process is stopped."""
    return time.monotonic_ns() // 1_000_000


class ZooKeeperElector:
    """The elector of one ResourceManager (Elector). Its methods are called from one event loop."""

    def __init__(self, client: KazooClient, path: str, rm_id: str, timeout_ms: int, said: str) -> None:
        """`path`: of the znode that has the lock. `said`: how errors refer to ZooKeeper."""
        self._client = client
        self._directory = path
        self._lock = f"{path}/{LOCK}"
        self._rm_id = rm_id
        self._timeout_ms = timeout_ms
        self._said = said
        self._election = ZooKeeperElection(timeout_ms)
        self._candidate: Candidate | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deleted = asyncio.Event()
        self._state = "TERMINATED"

    @classmethod
    def read(cls, conf: Configuration, rm_id: str) -> ZooKeeperElector:
        """The elector for this configuration.

        Raises YarnException if kazoo is not installed, or if no address, identity or cluster id is configured.
        """
        cluster = CLUSTER_ID.maybe_of(conf)
        if not cluster or "/" in cluster:
            raise YarnException(
                f"{CLUSTER_ID.key} = {cluster or ''}: elections need a name of the cluster, without a slash (set it)"
            )
        path = f"{ELECTION_PATH.of(conf).rstrip('/')}/{cluster}"
        said = f"{ZK_ADDRESS.key} = {ZK_ADDRESS.maybe_of(conf)}"
        return cls(zookeeper_client(conf), path, rm_id, ZK_TIMEOUT.of(conf), said)

    @property
    def description(self) -> str:
        """The state of the connection, in Hadoop's words (ActiveStandbyElector.ConnectionState)."""
        return self._state

    async def open(self, candidate: Candidate) -> None:
        """Connect. Raises YarnException if ZooKeeper does not answer for a session timeout or does not allow it."""
        self._candidate = candidate
        self._loop = loop = asyncio.get_running_loop()
        self._client.add_listener(self._note_state)
        try:
            await loop.run_in_executor(None, self._connect)
        except BaseException:
            await loop.run_in_executor(None, self._disconnect)
            raise

    async def campaign(self) -> None:
        """Take part in elections, also after each loss of the leadership, until `resign`."""
        self._handle(JoinElection())

    async def resign(self) -> None:
        """Take part no more, and delete the lock if this ResourceManager has it."""
        led = self.holds()
        self._deleted.clear()
        self._handle(QuitElection())
        if led:
            with suppress(TimeoutError):
                async with asyncio.timeout(RESIGN_S):
                    await self._deleted.wait()

    def holds(self) -> bool:
        """True while this ResourceManager surely leads."""
        return self._election.holds(monotonic_now_ms())

    async def leader(self) -> str:
        """The id of the ResourceManager that led when the lock was last read; "" for none."""
        return self._election.holder

    async def close(self) -> None:
        """QuitElection and disconnect."""
        if self._loop is None:
            return
        await self.resign()
        loop, self._loop = self._loop, None
        if self._timer is not None:
            self._timer.cancel()
        await loop.run_in_executor(None, self._disconnect)

    def _connect(self) -> None:
        """Connect, and create the parents of the lock. Runs in a thread."""
        from kazoo.exceptions import KazooException
        from kazoo.handlers.threading import KazooTimeoutError
        from kazoo.security import OPEN_ACL_UNSAFE

        try:
            timeout_s: Any = self._timeout_ms / 1000
            self._client.start(timeout_s)
            self._client.ensure_path(self._directory.rpartition("/")[0] or "/", OPEN_ACL_UNSAFE)
            self._client.ensure_path(self._directory)
        except KazooTimeoutError:
            raise YarnException(
                f"{self._said}: ZooKeeper has not answered for {self._timeout_ms} ms (start it, or correct the address)"
            ) from None
        except KazooException as error:
            raise YarnException(f"{self._said}: {self._directory}: {type(error).__name__}") from None

    def _disconnect(self) -> None:
        """End the session, and so give up the lock. Runs in a thread."""
        self._client.stop()
        self._client.close()

    def _note_state(self, state: str) -> None:
        """Report a change of the connection. Runs in a thread of kazoo's."""
        from kazoo.protocol.states import KazooState

        session_id = self._client._session_id or 0  # client_id is None until this listener returns
        event: ElectionEvent = SessionOver()
        name = "TERMINATED"
        if state == KazooState.CONNECTED:
            event, name = Connected(session_id), "CONNECTED"
        elif state == KazooState.SUSPENDED:
            event, name = Disconnected(), "DISCONNECTED"
        self._post(event, name)

    def _post(self, event: ElectionEvent, state: str | None = None) -> None:
        """Have the event handled in the event loop. For kazoo's threads."""
        loop = self._loop
        if loop is not None:
            with suppress(RuntimeError):  # The loop is closed: nobody waits for the event.
                loop.call_soon_threadsafe(self._receive, event, state)

    def _receive(self, event: ElectionEvent, state: str | None) -> None:
        if state is not None:
            _logger.log(logging.INFO if state == "CONNECTED" else logging.WARNING, "ZooKeeper's session: %s", state)
            self._state = state
        self._handle(event)

    def _handle(self, event: ElectionEvent) -> None:
        for effect in self._election.handle(event, monotonic_now_ms()):
            self._carry_out(effect)
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ms = self._election.next_deadline_ms()
        if deadline_ms is not None and self._loop is not None:
            wait_s = max(deadline_ms - monotonic_now_ms(), 0) / 1000
            self._timer = self._loop.call_later(wait_s, self._handle, TimePassed())

    def _carry_out(self, effect: ElectionEffect) -> None:
        assert self._candidate is not None
        match effect:
            case CreateLock(call):
                answer = self._client.create_async(self._lock, self._rm_id.encode(), ephemeral=True)
                answer.rawlink(self._then(lambda _: self._post(LockTried(call))))
            case ReadLock(call):
                answer = self._client.get_async(self._lock, watch=self._note_change)
                answer.rawlink(self._then(lambda result: self._post(_lock_read(call, result))))
            case DeleteLock(call):
                answer = self._client.delete_async(self._lock)
                answer.rawlink(self._then(lambda _: self._note_deleted(call)))
            case Won(term):
                _logger.info("elected id=%s term=%d", self._rm_id, term)
                self._candidate.elected(term)
            case Lost(reason):
                _logger.warning("deposed id=%s: %s", self._rm_id, reason)
                self._candidate.deposed(reason)
            case _:
                assert_never(effect)

    def _then(self, report: Callable[[Any], None]) -> Callable[[Any], None]:
        """The callback for kazoo, which must not raise."""

        def answered(result: Any) -> None:
            try:
                report(result)
            except Exception:
                _logger.exception("an answer of ZooKeeper could not be handled")

        return answered

    def _note_change(self, event: Any) -> None:
        """Report that the lock has changed. Runs in a thread of kazoo's."""
        self._post(LockChanged())

    def _note_deleted(self, call: int) -> None:
        self._post(LockTried(call))
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._deleted.set)


def _lock_read(call: int, result: Any) -> ElectionEvent:
    """The event for the answer to a read of the lock."""
    from kazoo.exceptions import NoNodeError

    if isinstance(result.exception, NoNodeError):
        return LockRead(call)
    if result.exception is not None:
        return LockCallFailed(call)
    data, stat = result.value
    holder = data[:ID_BYTES_MAX].decode(errors="replace")
    return LockRead(call, stat.ephemeralOwner, stat.czxid, holder)
