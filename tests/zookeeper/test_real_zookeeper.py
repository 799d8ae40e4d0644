"""Store and elector on a real ZooKeeper: paused and cut-off leaders, and a server that goes and comes back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from rm.core.effects import SaveApplication
from rm.core.stored_state import Saving
from rm.shell.ha.zookeeper_elector import ZooKeeperElector
from rm.shell.zookeeper_fence import OutcomeUnknown
from rm.shell.zookeeper_store import ZooKeeperStateStore
from tests.rm.served_cluster import until
from tests.rm.test_sqlite_store import application
from tests.zookeeper.proxy import CuttingProxy
from tests.zookeeper.server import ZooKeeperServer
from tests.zookeeper.stores import SESSION_MS, real_store, zookeeper_configuration
from wire.files.store_file import StoreFenced, StoreUnavailable
from yarn.errors import YarnException

pytestmark = [pytest.mark.hadoop, pytest.mark.slow]


def saved(number: int) -> SaveApplication:
    return SaveApplication(application(number), Saving.NEW)


class Party:
    """A candidate that notes what its elector says."""

    def __init__(self, elector: ZooKeeperElector) -> None:
        self.elector = elector
        self.terms: list[int] = []
        self.leads = False

    def elected(self, term: int) -> None:
        self.terms.append(term)
        self.leads = True

    def deposed(self, reason: str) -> None:
        self.leads = False


@asynccontextmanager
async def candidate(address: str, directory: Path, rm_id: str) -> AsyncIterator[Party]:
    """A candidate of the cluster that is named as the directory."""
    party = Party(ZooKeeperElector.read(zookeeper_configuration(address, directory.name, directory), rm_id))
    await party.elector.open(party)
    await party.elector.campaign()
    try:
        yield party
    finally:
        await party.elector.close()


def numbers(store: ZooKeeperStateStore) -> list[int]:
    return [each.application.application_id.id for each in store.load().applications]


async def test_one_of_two_leads_and_the_other_follows_when_it_resigns(
    zookeeper: ZooKeeperServer, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(candidate(zookeeper.address, tmp_path, "rm1"))
        await until(first.elector.holds)
        second = await stack.enter_async_context(candidate(zookeeper.address, tmp_path, "rm2"))
        await until(lambda: second.elector._election.holder == "rm1")
        assert (await second.elector.leader(), second.elector.description) == ("rm1", "CONNECTED")
        assert not second.elector.holds()
        await first.elector.resign()
        assert not first.elector.holds()
        await until(second.elector.holds)
        assert second.terms[0] > first.terms[0]
        await first.elector.campaign()
        await second.elector.close()
        await until(lambda: len(first.terms) == 2)
        assert first.terms[1] > second.terms[0]


async def test_a_leader_that_is_cut_off_is_deposed_before_another_leads_and_comes_back(
    zookeeper: ZooKeeperServer, proxy: CuttingProxy, tmp_path: Path
) -> None:
    async with candidate(proxy.address, tmp_path, "rm1") as first:
        await until(first.elector.holds)
        async with candidate(zookeeper.address, tmp_path, "rm2") as second:
            proxy.cut()
            led_together = []
            await until(lambda: led_together.append(first.elector.holds()) or second.elector.holds())  # type: ignore[func-returns-value]
            assert not led_together[-1]
            assert not first.leads
            proxy.mend()
            await until(lambda: first.elector._election.holder == "rm2")
        await until(first.elector.holds)
        assert first.terms[0] < second.terms[0] < first.terms[1]


async def test_after_a_short_restart_of_zookeeper_the_leader_still_leads(
    zookeeper: ZooKeeperServer, tmp_path: Path
) -> None:
    conf = zookeeper_configuration(zookeeper.address, tmp_path.name, tmp_path, session_ms=20_000)
    party = Party(ZooKeeperElector.read(conf, "rm1"))
    await party.elector.open(party)
    await party.elector.campaign()
    try:
        await until(party.elector.holds)
        zookeeper.kill()
        await until(lambda: party.elector.description == "DISCONNECTED")
        assert party.elector.holds()
        await asyncio.to_thread(zookeeper.start)
        await until(lambda: party.elector.description == "CONNECTED")
        assert party.elector.holds()
        assert len(party.terms) == 1
    finally:
        await party.elector.close()


async def test_a_zookeeper_that_is_stopped_leaves_no_leader_until_it_goes_on(
    zookeeper: ZooKeeperServer, tmp_path: Path
) -> None:
    async with candidate(zookeeper.address, tmp_path, "rm1") as party:
        await until(party.elector.holds)
        zookeeper.pause()
        try:
            await until(lambda: not party.leads)
            assert not party.elector.holds()
        finally:
            zookeeper.resume()
        await until(party.elector.holds)


async def test_an_elector_without_zookeeper_says_so(tmp_path: Path) -> None:
    conf = zookeeper_configuration("127.0.0.1:1", tmp_path.name, tmp_path, session_ms=300)
    elector = ZooKeeperElector.read(conf, "rm1")
    with pytest.raises(YarnException, match=r"hadoop.zk.address = 127.0.0.1:1: ZooKeeper has not answered for 300 ms"):
        await elector.open(Party(elector))


def test_a_leader_that_was_paused_cannot_write(zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    first = real_store(zookeeper.address, tmp_path.name, tmp_path, "rm1", term=1)
    second = real_store(zookeeper.address, tmp_path.name, tmp_path, "rm2", term=2)
    try:
        second.write([saved(2)])
        with pytest.raises(StoreFenced, match="ResourceManager rm2 has taken over"):
            first.write([saved(1)])
        assert numbers(second) == [2]
    finally:
        first.close()
        second.close()


def test_a_write_that_was_under_way_when_another_took_over_is_refused(
    zookeeper: ZooKeeperServer, proxy: CuttingProxy, tmp_path: Path
) -> None:
    first = real_store(proxy.address, tmp_path.name, tmp_path, "rm1", term=1)
    outcome: list[BaseException | None] = []
    proxy.hold()
    writing = threading.Thread(target=lambda: outcome.append(_outcome(lambda: first.write([saved(1)]))))
    writing.start()
    second = real_store(zookeeper.address, tmp_path.name, tmp_path, "rm2", term=2)
    proxy.release()
    writing.join(60)
    try:
        assert isinstance(outcome[0], StoreFenced)
        assert numbers(second) == []
    finally:
        first.close()
        second.close()


def test_what_was_confirmed_is_there_after_zookeeper_was_killed(zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    store = real_store(zookeeper.address, tmp_path.name, tmp_path)
    confirmed: list[int] = []
    for round_number in range(2):
        is_writing = threading.Event()

        def write(
            first: int = round_number * 1000,
            begun: threading.Event = is_writing,
            store: ZooKeeperStateStore = store,
        ) -> None:
            for number in range(first + 1, first + 1000):
                if _outcome(partial(store.write, [saved(number)])) is not None:
                    return
                confirmed.append(number)
                if len(confirmed) % 50 == 20:
                    begun.set()

        writing = threading.Thread(target=write)
        writing.start()
        assert is_writing.wait(60)
        zookeeper.kill()
        zookeeper.start()
        writing.join(60)
        store.close()
        store = real_store(zookeeper.address, tmp_path.name, tmp_path)
        assert set(confirmed) <= set(numbers(store))
    store.close()


def test_without_a_connection_the_store_is_unavailable_and_later_works(
    zookeeper: ZooKeeperServer, proxy: CuttingProxy, tmp_path: Path
) -> None:
    store = real_store(proxy.address, tmp_path.name, tmp_path)
    try:
        proxy.cut()
        assert isinstance(_outcome(lambda: store.write([saved(1)])), StoreUnavailable | OutcomeUnknown)
        assert isinstance(_outcome(lambda: store.write([saved(2)])), StoreUnavailable)
        proxy.mend()
        while isinstance(_outcome(lambda: store.write([saved(3)])), StoreUnavailable):
            pass
        assert 3 in numbers(store)
        assert 2 not in numbers(store)
    finally:
        store.close()


def test_others_can_neither_read_nor_change_the_store(zookeeper: ZooKeeperServer, tmp_path: Path) -> None:
    store = real_store(zookeeper.address, tmp_path.name, tmp_path)
    other = KazooClient(zookeeper.address, timeout=SESSION_MS / 1000)
    other.start(60)
    try:
        for call in (other.get, other.delete, other.get_children):
            with pytest.raises(NoAuthError):
                call(f"/{tmp_path.name}/yarnling/fence")
        (tmp_path / "other").mkdir()
        with pytest.raises(YarnException, match=r"NoAuth \(use the cluster secret, or the hadoop\.zk\.auth, with"):
            real_store(zookeeper.address, tmp_path.name, tmp_path / "other")
    finally:
        other.stop()
        other.close()
        store.close()


def _outcome(call: Callable[[], object]) -> BaseException | None:
    try:
        call()
    except YarnException as error:
        return error
    return None
