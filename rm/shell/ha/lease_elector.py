"""Elects the active ResourceManager by a lease in the shared state store (rm.core.lease has the rules)."""

from __future__ import annotations

import asyncio
import glob
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from rm.core import lease as rules
from rm.core.lease import Blocked, Lease
from rm.shell.ha.interfaces import Candidate
from rm.shell.ha.lease_store import LeaseStore
from rm.shell.ha.liveness_lock import LivenessLock, is_locked, kill_holder, lockers_of
from wire.files.store_file import StoreBusy
from yarn.errors import YarnException

T = TypeVar("T")

RENEWALS_PER_LEASE = 3
LOOKS_PER_LEASE = 20
"""A standby looks at the lease this often, and takes over this much later than it could."""
LOCK_PAUSES_S = (0.01, 0.1, 1.0)
_logger = logging.getLogger(f"yarnling.{__name__}")


def monotonic_ms() -> int:
    """The machine's monotonic clock, the same for all its processes; it goes on while a process is stopped."""
    return time.monotonic_ns() // 1_000_000


class LeaseElector:
    """The elector of one ResourceManager.

    `path`: of the store's file. The names of the files that show who lives begin with it.
    """

    def __init__(
        self, store: LeaseStore, rm_id: str, path: Path, lease_ms: int, clock: Callable[[], int] = monotonic_ms
    ) -> None:
        self._store = store
        self._rm_id = rm_id
        self._path = path
        self._lease_ms = lease_ms
        self._clock = clock
        self._lock = LivenessLock(self._lock_of(rm_id))
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="leader-lease")
        self._lease: Lease | None = None
        self._seen: Lease | None = None
        self._campaigns = False
        self._wake = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._problem = ""
        self._blocked: Blocked | None = None

    @property
    def description(self) -> str:
        return self._problem or "There is no ZooKeeper: a lease in the shared state store elects the active RM."

    async def open(self, candidate: Candidate) -> None:
        await self._take_lock()
        self._running = asyncio.get_running_loop().create_task(self._run(candidate), name="leader-lease")

    async def campaign(self) -> None:
        self._campaigns = True
        self._wake.set()

    async def resign(self) -> None:
        self._campaigns = False
        lease, self._lease = self._lease, None
        if lease is not None:
            # If it cannot be written, the lease ends by itself.
            with suppress(YarnException):
                await self._in_thread(lambda: self._store.give_up(lease))

    def holds(self) -> bool:
        return rules.holds(self._lease, self._clock(), self._lease_ms)

    async def leader(self) -> str:
        lease = self._lease or self._seen
        return "" if lease is None or self._clock() >= lease.ends_ms else lease.holder

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        await self.resign()
        self._thread.shutdown()
        self._lock.release()

    async def _take_lock(self) -> None:
        """Show that this process lives. It is tried again, because others lock the file for a moment to look at it."""
        for pause_s in LOCK_PAUSES_S:
            try:
                self._lock.take()
                break
            except YarnException:
                await asyncio.sleep(pause_s)
        else:
            self._lock.take()

    async def _run(self, candidate: Candidate) -> None:
        """Renew the lease, or look whether it can be taken, until cancelled."""
        while True:
            try:
                await (self._look(candidate) if self._lease is None else self._renew(self._lease, candidate))
                self._note("")
                self._blocked = None
            except YarnException as error:
                self._note(error.message)
                if self._lease is not None and not self.holds():
                    self._lose(f"the lease could not be renewed: {error.message}", candidate)
                if isinstance(error, StoreBusy):
                    await self._in_thread(self._end_if_it_hangs)
            parts = LOOKS_PER_LEASE if self._lease is None else RENEWALS_PER_LEASE
            self._wake.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._lease_ms / parts / 1000):
                    await self._wake.wait()

    async def _look(self, candidate: Candidate) -> None:
        seen = self._seen = await self._in_thread(self._store.read)
        gone = await self._in_thread(lambda: self._gone_holder(seen))
        now_ms = self._clock()
        if not self._campaigns or not rules.may_take(
            seen, self._rm_id, now_ms, self._lease_ms, holder_is_gone=bool(gone)
        ):
            return
        taken = await self._in_thread(lambda: self._store.take(self._rm_id, now_ms, self._lease_ms, gone_holder=gone))
        if taken is None:
            return
        self._lease = taken
        if not self._campaigns:
            await self.resign()
            return
        _logger.info("elected id=%s term=%d", self._rm_id, taken.term)
        candidate.elected(taken.term)

    async def _renew(self, own: Lease, candidate: Candidate) -> None:
        now_ms = self._clock()
        renewed = await self._in_thread(lambda: self._store.renew(own, now_ms, self._lease_ms))
        if self._lease is None:
            # Resigned meanwhile.
            return
        if renewed is None:
            self._seen = await self._in_thread(self._store.read)
            holder = "" if self._seen is None else self._seen.holder
            self._lose(f"{holder or 'another ResourceManager'} has taken the lease", candidate)
        else:
            self._lease = renewed

    def _lose(self, reason: str, candidate: Candidate) -> None:
        self._lease = None
        _logger.warning("deposed id=%s: %s", self._rm_id, reason)
        candidate.deposed(reason)

    def _end_if_it_hangs(self) -> None:
        """Kill the ResourceManager whose transaction has locked the store for a whole lease."""
        now_ms = self._clock()
        self._blocked = rules.still_blocked(self._blocked, now_ms, self._path.stat().st_mtime_ns)
        if not self._campaigns or not rules.hangs(self._blocked, now_ms, self._lease_ms):
            return
        lockers = lockers_of(self._path)
        for lock in self._path.parent.glob(f"{glob.escape(self._path.name)}-*.lock"):
            if kill_holder(lock, lockers):
                _logger.warning("killed the process of %s: it hung in a transaction of the state store", lock.name)

    def _gone_holder(self, lease: Lease | None) -> str:
        """The id of the lease's holder if its process has ended, otherwise ""."""
        if lease is None or lease.holder in ("", self._rm_id) or is_locked(self._lock_of(lease.holder)):
            return ""
        return lease.holder

    def _lock_of(self, rm_id: str) -> Path:
        return Path(f"{self._path}-{rm_id}.lock")

    def _note(self, problem: str) -> None:
        before, self._problem = self._problem, problem
        if problem and not before:
            _logger.warning("the leader's lease cannot be read or renewed: %s", problem)

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)
