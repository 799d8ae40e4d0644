"""The model of ZooKeeper answers as a real one, and its sessions end at the times of ExpiryQueue."""

from __future__ import annotations

import pytest

from rm.shell.znodes import CreateZnode, DeleteZnode, OperationRefused, SetZnode
from tests.zookeeper.calls import ModelCalls, RealCalls, random_calls, transcript
from tests.zookeeper.server import ZooKeeperServer
from yarnling.simulation.zookeeper import SessionEnded, WatchReport, ZooKeeperModel


def test_a_session_that_is_silent_for_its_timeout_expires_at_the_next_tick() -> None:
    model = ZooKeeperModel(tick_ms=100)
    session, other = model.open(1000, 50), model.open(2000, 50)
    model.create(session, "/lock", b"", 60, ephemeral=True)
    assert model.read(other, "/lock", 60, watch=True) is not None
    model.advance(1099)
    assert model.lives(session)
    model.advance(1100)
    assert not model.lives(session)
    assert model.events(other) == [WatchReport("/lock", "deleted")]
    assert model.events(other) == []
    with pytest.raises(SessionEnded):
        model.read(session, "/lock", 1100)


def test_a_message_keeps_a_session_alive() -> None:
    model = ZooKeeperModel(tick_ms=100)
    session = model.open(1000, 0)
    for now_ms in range(0, 5000, 900):
        model.hear(session, now_ms)
    assert model.lives(session)


@pytest.mark.parametrize(("asked_ms", "granted_ms"), [(10, 200), (500, 500), (9999, 2000)])
def test_a_timeout_is_brought_into_the_bounds_of_the_server(asked_ms: int, granted_ms: int) -> None:
    model = ZooKeeperModel(tick_ms=100)
    session = model.open(asked_ms, 0)
    model.advance(granted_ms)
    assert model.lives(session)
    model.advance(granted_ms + 100)
    assert not model.lives(session)


def test_a_transaction_is_carried_out_whole_or_not_at_all() -> None:
    model = ZooKeeperModel()
    session = model.open(10_000, 0)
    model.commit(session, [CreateZnode("/a", b"1"), CreateZnode("/a/b", b"2")], 1)
    with pytest.raises(OperationRefused, match="BadVersion") as refused:
        model.commit(session, [SetZnode("/a", b"9"), DeleteZnode("/a/b"), SetZnode("/a", b"9", 0)], 2)
    assert refused.value.place == 2
    found = model.read(session, "/a", 3)
    assert found is not None
    assert (found.data, found.version) == (b"1", 0)
    assert model.children(session, "/a", 3) == ["b"]


@pytest.mark.hadoop
@pytest.mark.slow
@pytest.mark.parametrize("number", [1])
def test_a_real_zookeeper_answers_the_same_calls_alike(number: int, zookeeper: ZooKeeperServer) -> None:
    calls = random_calls(number, 160)
    real = RealCalls(zookeeper.port)
    try:
        answers = transcript(calls, real)
        real._first.delete("/test", recursive=True)
    finally:
        real.close()
    assert answers == transcript(calls, ModelCalls())
