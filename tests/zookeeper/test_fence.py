"""The fence of the state store in ZooKeeper, over the model: who may write, and what became of a lost transaction."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from rm.core.effects import RemoveApplication, SaveApplication, SaveAttempt
from rm.core.stored_state import Saving
from rm.shell.znodes import DeleteZnode, SetZnode
from rm.shell.zookeeper_fence import FENCE, OutcomeUnknown
from rm.shell.zookeeper_rows import RECORD_BYTES_MAX, TRANSACTION_BYTES
from rm.shell.zookeeper_store import ROOT, ZooKeeperStateStore
from tests.rm.test_sqlite_store import APP, application, attempt
from tests.zookeeper.stores import LossyZnodes, model_store, store_over
from wire.files.store_file import StoreDamaged, StoreFenced, StoreUnavailable
from yarn.errors import YarnException
from yarnling.simulation.zookeeper import ModelZnodes, ZooKeeperModel

FENCE_PATH = f"/rmstore/{ROOT}/{FENCE}"


def saved(number: int) -> SaveApplication:
    return SaveApplication(application(number), Saving.NEW)


def numbers(model: ZooKeeperModel) -> list[int]:
    """The applications that the next ResourceManager finds."""
    return [each.application.application_id.id for each in model_store(model, "next").load().applications]


@pytest.fixture
def model() -> ZooKeeperModel:
    return ZooKeeperModel()


@pytest.fixture
def znodes(model: ZooKeeperModel) -> LossyZnodes:
    return LossyZnodes(model)


@pytest.fixture
def store(znodes: LossyZnodes) -> ZooKeeperStateStore:
    store = store_over(znodes)
    assert store.take_over(1) == 0
    return store


def test_the_former_holder_cannot_write(model: ZooKeeperModel, store: ZooKeeperStateStore) -> None:
    store.write([saved(1)])
    model_store(model, "rm2", term=2).write([saved(2)])
    for _ in range(2):
        with pytest.raises(StoreFenced, match=r"ResourceManager rm2 has taken over \(term 2, epoch 2\)$"):
            store.write([saved(3)])
    assert numbers(model) == [1, 2]


def test_a_second_reign_of_one_process_fences_its_first(model: ZooKeeperModel, store: ZooKeeperStateStore) -> None:
    model_store(model, "rm1", term=1)
    with pytest.raises(StoreFenced):
        store.write([saved(1)])
    assert numbers(model) == []


def test_an_earlier_term_does_not_take_over(model: ZooKeeperModel) -> None:
    model_store(model, "rm2", term=7)
    with pytest.raises(StoreFenced, match=r"rm2 has taken over \(term 7, "):
        model_store(model, "rm1", term=6)
    assert model_store(model, "rm1", term=8).epoch() == 1


def test_a_resource_manager_without_elections_takes_over(model: ZooKeeperModel, store: ZooKeeperStateStore) -> None:
    assert model_store(model, "", term=0).epoch() == 1
    with pytest.raises(StoreFenced):
        store.write([saved(1)])


@pytest.mark.parametrize("word", ["request", "answer", "late"])
def test_a_lost_transaction_is_carried_out_once(
    word: str, model: ZooKeeperModel, znodes: LossyZnodes, store: ZooKeeperStateStore
) -> None:
    znodes.lose = [word]
    store.write([saved(1)])
    store.write([SaveAttempt(attempt(), Saving.NEW)])
    assert numbers(model) == [1]


def test_a_transaction_that_arrives_after_the_next_holder_took_over_is_refused(
    model: ZooKeeperModel, znodes: LossyZnodes, store: ZooKeeperStateStore
) -> None:
    znodes.lose = ["late"]

    def take_over_meanwhile() -> None:
        model_store(model, "rm2", term=2)

    read = znodes.read
    znodes.read = lambda path: (take_over_meanwhile(), read(path))[1]  # type: ignore[method-assign]
    with pytest.raises(StoreFenced):
        store.write([saved(1)])
    with pytest.raises(Exception, match="BadVersion"):
        znodes.arrive()
    assert numbers(model) == []


@pytest.mark.parametrize("word", ["request", "answer", "late"])
def test_taking_over_survives_a_lost_answer(word: str, model: ZooKeeperModel, znodes: LossyZnodes) -> None:
    store = store_over(znodes)
    znodes.lose = [word, "", word]
    assert store.take_over(1) == 0
    store.write([saved(1)])
    assert numbers(model) == [1]


def test_without_a_connection_nothing_is_sent_and_the_store_is_unavailable(
    model: ZooKeeperModel, znodes: LossyZnodes, store: ZooKeeperStateStore
) -> None:
    znodes.is_cut = True
    with pytest.raises(StoreUnavailable, match=r"^hadoop.zk.address = zk: ZooKeeper cannot be reached$"):
        store.write([saved(1)])
    znodes.is_cut = False
    store.write([saved(2)])
    assert numbers(model) == [2]


@pytest.mark.parametrize("word", ["request", "answer"])
def test_a_transaction_that_was_sent_is_never_reported_as_not_written(
    word: str, znodes: LossyZnodes, store: ZooKeeperStateStore
) -> None:
    znodes.lose = [word]
    commit = znodes.commit

    def commit_and_cut(operations: object) -> None:
        try:
            commit(operations)  # type: ignore[arg-type]
        finally:
            znodes.is_cut = True

    znodes.commit = commit_and_cut  # type: ignore[method-assign]
    with pytest.raises(OutcomeUnknown, match="has not said for 60 s whether it is stored"):
        store.write([saved(1)])


def test_taking_over_without_a_connection_is_unavailable(znodes: LossyZnodes) -> None:
    znodes.is_cut = True
    with pytest.raises(StoreUnavailable, match="ZooKeeper has not answered for 60 s"):
        store_over(znodes).take_over(1)


def test_more_than_a_request_holds_is_sent_in_order_in_several(
    model: ZooKeeperModel, znodes: LossyZnodes, store: ZooKeeperStateStore
) -> None:
    before = znodes.commits
    large = [
        SaveApplication(application(number, diagnostics="x" * (TRANSACTION_BYTES // 3)), Saving.FINAL)
        for number in range(1, 6)
    ]
    store.write(large)
    assert znodes.commits - before == 3
    assert numbers(model) == [1, 2, 3, 4, 5]


def test_between_the_parts_of_a_write_nothing_is_reported_as_not_written(
    znodes: LossyZnodes, store: ZooKeeperStateStore
) -> None:
    large = [
        SaveApplication(application(number, diagnostics="x" * TRANSACTION_BYTES), Saving.FINAL) for number in (1, 2)
    ]
    commit, count = znodes.commit, itertools.count()

    def cut_after_one(operations: object) -> None:
        commit(operations)  # type: ignore[arg-type]
        znodes.is_cut = next(count) == 0

    znodes.commit = cut_after_one  # type: ignore[method-assign]
    with pytest.raises(OutcomeUnknown):
        store.write(large)


def test_an_application_that_is_too_large_is_refused_before_it_is_sent(store: ZooKeeperStateStore) -> None:
    large = SaveApplication(application(diagnostics="x" * RECORD_BYTES_MAX), Saving.NEW)
    refusal = store.refusal(large)
    assert refusal is not None
    assert refusal.message.startswith(f"{APP} takes 10")
    assert "raise yarn.resourcemanager.zk-max-znode-size.bytes" in refusal.message
    assert store.refusal(saved(1)) is None


def test_a_record_that_no_request_holds_is_not_sent(model: ZooKeeperModel, store: ZooKeeperStateStore) -> None:
    large = SaveApplication(application(diagnostics="x" * 2 * RECORD_BYTES_MAX), Saving.FINAL)
    with pytest.raises(YarnException, match=r"^the record application/1700000000000_1 has 2\d+ bytes, ZooKeeper"):
        store.write([saved(2), large])
    assert numbers(model) == []


def test_a_row_that_others_have_changed_is_damage(model: ZooKeeperModel, store: ZooKeeperStateStore) -> None:
    store.write([saved(1), saved(2)])
    intruder = ModelZnodes(model)
    path = f"/rmstore/{ROOT}/application/1700000000000_1"
    found = intruder.read(path)
    assert found is not None
    intruder.commit([SetZnode(path, found.data.replace(b'"ann', b'"bob').replace(b"ann", b"bob"))])
    with pytest.raises(StoreDamaged, match="the record application/1700000000000_1 does not match its checksum"):
        model_store(model)


@pytest.mark.parametrize("path", [f"/rmstore/{ROOT}/application/1700000000000_1", FENCE_PATH])
def test_a_missing_record_is_damage(path: str, model: ZooKeeperModel, store: ZooKeeperStateStore) -> None:
    store.write([saved(1), saved(2)])
    ModelZnodes(model).commit([DeleteZnode(path)])
    with pytest.raises(StoreDamaged, match=r"yarnling/(fence|application/1700000000000_1): NoNode"):
        store.write([RemoveApplication(APP)])
    with pytest.raises(StoreDamaged, match=r"zkCli\.sh to start without its applications"):
        model_store(model)


def test_the_store_of_another_release_is_refused(model: ZooKeeperModel, store: ZooKeeperStateStore) -> None:
    intruder = ModelZnodes(model)
    found = intruder.read(FENCE_PATH)
    assert found is not None
    intruder.commit([SetZnode(FENCE_PATH, found.data.replace(b'"format":1', b'"format":2'))])
    with pytest.raises(YarnException, match="the store has format 2, this release reads format 1"):
        model_store(model)
    intruder.commit([SetZnode(FENCE_PATH, b"{}}")])
    with pytest.raises(StoreDamaged, match="its fence cannot be read"):
        model_store(model)


def test_the_fence_can_be_read_by_people(model: ZooKeeperModel, store: ZooKeeperStateStore) -> None:
    store.write([saved(1)])
    found = ModelZnodes(model).read(FENCE_PATH)
    assert found is not None
    content = msgspec.json.decode(found.data)
    assert (content["holder"], content["term"], content["epoch"], content["writes"]) == ("rm1", 1, 1, 2)
