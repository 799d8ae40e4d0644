"""The embedded lease: at most one leads at any time, and a store refuses the writes of every earlier leader."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from rm.core import lease as rules
from rm.core.effects import SaveNodeLabels
from rm.core.lease import Blocked, Lease
from rm.core.stored_state import NodeLabelState
from rm.shell.ha.lease_elector import LeaseElector, monotonic_ms
from rm.shell.ha.lease_store import LeaseStore
from rm.shell.ha.liveness_lock import LivenessLock, is_locked, kill_holder, lockers_of
from rm.shell.sqlite_store import SHARED_FORM, SQLiteStateStore
from wire.files.store_file import StoreFenced, StoreFile
from yarn.errors import YarnException
from yarn.protocols.tracker import MasterKey

LENGTH_MS = 10_000
HANGS_S = 60.0
LABELS = SaveNodeLabels(NodeLabelState())


def may_take(lease: Lease | None, rm_id: str = "rm2", now_ms: int = 1000, *, gone: bool = False) -> bool:
    return rules.may_take(lease, rm_id, now_ms, LENGTH_MS, holder_is_gone=gone)


def test_a_lease_is_free_when_it_is_over_given_up_or_its_holder_is_gone() -> None:
    assert may_take(None)
    assert not may_take(Lease(1, "rm1", 1001))
    assert may_take(Lease(1, "rm1", 1000))
    assert may_take(Lease(1, "", 0))
    assert may_take(Lease(1, "rm1", 1001), gone=True)
    assert may_take(Lease(1, "rm2", 1001)), "its own, from before a restart"
    assert may_take(Lease(1, "rm1", 1001 + LENGTH_MS)), "from before a reboot"


def test_the_holder_stops_to_acknowledge_before_another_may_take_the_lease() -> None:
    own = rules.taken(1, "rm1", 0, LENGTH_MS)
    last_ms = next(now_ms for now_ms in range(LENGTH_MS + 1) if not rules.holds(own, now_ms, LENGTH_MS))
    assert not may_take(own, now_ms=last_ms)
    assert may_take(own, now_ms=LENGTH_MS)


def test_a_holder_renews_also_late_but_not_after_another_has_taken_it() -> None:
    own = rules.taken(1, "rm1", 0, LENGTH_MS)
    assert rules.renewed(own, own, 50_000, LENGTH_MS) == Lease(1, "rm1", 60_000)
    assert rules.renewed(Lease(2, "rm2", 60_000), own, 50_000, LENGTH_MS) is None
    assert rules.renewed(Lease(2, "rm1", 60_000), own, 50_000, LENGTH_MS) is None, "taken after a restart of its own"


@contextmanager
def opened(path: Path) -> Iterator[StoreFile]:
    file = StoreFile.open(path, "store", SHARED_FORM)
    try:
        yield file
    finally:
        file.close()


def test_taking_the_lease_fences_the_store_of_the_earlier_leader(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with opened(path) as one, opened(path) as two:
        first = LeaseStore(one).take("rm1", 0, LENGTH_MS, gone_holder="")
        assert first is not None
        old = SQLiteStateStore(one)
        assert old.take_over(first.term) == 0
        old.write([LABELS])
        assert LeaseStore(two).take("rm2", 5000, LENGTH_MS, gone_holder="") is None
        second = LeaseStore(two).take("rm2", LENGTH_MS, LENGTH_MS, gone_holder="")
        assert second is not None
        new = SQLiteStateStore(two)
        assert (new.take_over(second.term), new.load().epoch) == (1, 1)
        before = new.load()
        with pytest.raises(StoreFenced, match="epoch 2"):
            old.write([LABELS])
        with pytest.raises(StoreFenced):
            old.write_keys("AMRM", (MasterKey(1, b"secret"),))
        with pytest.raises(StoreFenced):
            SQLiteStateStore(one).take_over(first.term)
        assert new.load() == before
        assert LeaseStore(one).renew(first, LENGTH_MS, LENGTH_MS) is None


def test_an_ended_holder_is_replaced_at_once_and_a_living_one_is_not(tmp_path: Path) -> None:
    lock = LivenessLock(tmp_path / "lock")
    lock.take()
    assert is_locked(tmp_path / "lock")
    with pytest.raises(YarnException, match="another ResourceManager has this id"):
        LivenessLock(tmp_path / "lock").take()
    lock.release()
    assert not is_locked(tmp_path / "lock")
    assert not is_locked(tmp_path / "missing")


class Recorder:
    """A candidate that notes what its elector says."""

    def __init__(self) -> None:
        self.said: asyncio.Queue[object] = asyncio.Queue()

    def elected(self, term: int) -> None:
        self.said.put_nowait(term)

    def deposed(self, reason: str) -> None:
        self.said.put_nowait(reason)

    async def next(self) -> object:
        async with asyncio.timeout(HANGS_S):
            return await self.said.get()


@asynccontextmanager
async def elector(path: Path, rm_id: str, lease_ms: int = 2000) -> AsyncIterator[tuple[LeaseElector, Recorder]]:
    with opened(path) as file:
        it, candidate = LeaseElector(LeaseStore(file), rm_id, path, lease_ms), Recorder()
        await it.open(candidate)
        try:
            yield it, candidate
        finally:
            await it.close()


async def test_one_of_two_is_elected_and_the_other_when_it_resigns(tmp_path: Path) -> None:
    path = tmp_path / "state"
    async with elector(path, "rm1") as (one, first), elector(path, "rm2") as (two, second):
        await one.campaign()
        assert await first.next() == 1
        assert one.holds()
        await two.campaign()
        assert not two.holds()
        await one.resign()
        assert not one.holds()
        assert await second.next() == 2
        assert await two.leader() == "rm2"


async def test_one_that_closes_is_followed_long_before_its_lease_would_end(tmp_path: Path) -> None:
    path = tmp_path / "state"
    async with elector(path, "rm2", lease_ms=10_000_000) as (two, second):
        async with elector(path, "rm1", lease_ms=10_000_000) as (one, first):
            await one.campaign()
            assert await first.next() == 1
            await two.campaign()
            assert second.said.empty()
        two._wake.set()
        assert await second.next() == 2


async def test_a_stalled_leader_does_not_hold_its_lease_and_is_deposed_when_it_looks(tmp_path: Path) -> None:
    path = tmp_path / "state"
    async with elector(path, "rm1", lease_ms=600_000) as (one, first):
        await one.campaign()
        assert await first.next() == 1
        one._clock = lambda: monotonic_ms() + 600_000
        assert not one.holds(), "although nobody else leads yet"
        with opened(path) as file:
            assert LeaseStore(file).take("rm2", monotonic_ms() + 600_000, 600_000, gone_holder="") is not None
        one._wake.set()
        assert await first.next() == "rm2 has taken the lease"


def test_a_transaction_hangs_when_the_file_is_locked_for_a_lease_and_not_written() -> None:
    first = rules.still_blocked(None, 1000, 7)
    assert rules.still_blocked(first, 5000, 7) == Blocked(1000, 7)
    assert rules.still_blocked(first, 5000, 8) == Blocked(5000, 8), "somebody writes"
    assert not rules.hangs(first, 1000 + LENGTH_MS - 1, LENGTH_MS)
    assert rules.hangs(first, 1000 + LENGTH_MS, LENGTH_MS)


STOPS_IN_A_TRANSACTION = """
import os, signal, sys
from pathlib import Path
from rm.shell.ha.lease_elector import monotonic_ms
from rm.shell.ha.lease_store import LeaseStore
from rm.shell.ha.liveness_lock import LivenessLock
from rm.shell.sqlite_store import SHARED_FORM
from wire.files.store_file import StoreFile

path = Path(sys.argv[1])
lock = LivenessLock(Path(f"{path}-rm1.lock"))
lock.take()
file = StoreFile.open(path, "store", SHARED_FORM)
LeaseStore(file).take("rm1", monotonic_ms(), 300, gone_holder="")
with file.writing() as group:
    group.put("cluster", ("unfinished",), ("",))
    os.kill(os.getpid(), signal.SIGSTOP)
"""


@contextmanager
def stopped_in_a_transaction(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A leader rm1, a process of its own, that is stopped while it writes."""
    with subprocess.Popen([sys.executable, "-c", STOPS_IN_A_TRANSACTION, str(path)]) as process:
        try:
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
            yield process
        finally:
            process.kill()


async def test_a_leader_that_hangs_in_a_transaction_is_killed_and_its_writes_are_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wire.files.store_file.BUSY_S", 0.05)
    path = tmp_path / "state"
    with opened(path):
        pass
    async with elector(path, "rm2", lease_ms=300) as (two, second):
        with stopped_in_a_transaction(path) as process:
            await two.campaign()
            assert await second.next() == 2
            assert process.wait(HANGS_S) == -signal.SIGKILL
    with opened(path) as file:
        assert file.rows("cluster", ("unfinished",)) == []


def test_only_a_process_that_has_locked_the_store_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with opened(path):
        assert lockers_of(path) == frozenset()
    with stopped_in_a_transaction(path) as process:
        assert lockers_of(path) == {process.pid}
        lock = Path(f"{path}-rm1.lock")
        assert not kill_holder(lock, frozenset())
        assert not kill_holder(tmp_path / "missing", frozenset({process.pid}))
        ended = tmp_path / "state-rm3.lock"
        ended.write_text(str(process.pid))
        assert not kill_holder(ended, frozenset({process.pid})), "its file is not locked"
        assert kill_holder(lock, frozenset({process.pid}))
        assert process.wait(HANGS_S) == -signal.SIGKILL
