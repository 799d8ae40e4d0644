"""The state store: what is written is read back whole, in each engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from rm.core.effects import RemoveApplication, SaveApplication, SaveAttempt, SaveNodeLabels
from rm.core.states import RMAppAttemptState, RMAppState
from rm.core.stored_state import NodeLabelState, RMState, Saving, StoredApplication
from rm.shell.row_state_store import RowStateStore
from rm.shell.sqlite_store import SQLiteStateStore
from tests.rm.test_sqlite_store import APP, application, attempt
from tests.zookeeper.stores import model_store, real_store
from wire.files.store_file import StoreDamaged
from yarn.ids import NodeId
from yarn.nodes import NodeLabel
from yarn.protocols.tracker import MasterKey
from yarn.states import FinalApplicationStatus
from yarnling.simulation.zookeeper import ZooKeeperModel

Open = Callable[[], RowStateStore]


@pytest.fixture(params=["sqlite", "model", pytest.param("zookeeper", marks=[pytest.mark.hadoop, pytest.mark.slow])])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the store for the next ResourceManager, after the last one was closed."""
    if request.param == "sqlite":
        return lambda: _sqlite(tmp_path / "state.sqlite")
    if request.param == "model":
        model = ZooKeeperModel()
        return lambda: model_store(model)
    zookeeper = request.getfixturevalue("zookeeper")
    return lambda: real_store(zookeeper.address, tmp_path.name, tmp_path)


def _sqlite(path: Path) -> RowStateStore:
    store = SQLiteStateStore.open(path, "KEY")
    store.raise_epoch()
    return store


@pytest.fixture
def store(open_store: Open) -> Iterator[RowStateStore]:
    with closing(open_store()) as store:
        yield store


def test_stored_records_are_read_by_the_next_store(store: RowStateStore, open_store: Open) -> None:
    ended = application(
        placed="root.a.b",
        launch_ms=6,
        lifetime_ends_ms=9,
        state=RMAppState.FINISHED,
        diagnostics="fine \N{SNOWMAN}",
        finish_ms=8,
    )
    over = attempt(
        state=RMAppAttemptState.FINISHED,
        tracking_url="N/A",
        final_status=FinalApplicationStatus.SUCCEEDED,
        exit_status=-102,
        memory_mb_seconds=1 << 50,
    )
    store.write([SaveApplication(ended, Saving.FINAL), SaveAttempt(over, Saving.FINAL)])
    store.close()
    with closing(open_store()) as again:
        assert again.load().applications == (StoredApplication(ended, (over,)),)
        assert again.load().applications[0].application.submission.am_container.tokens == b"credentials"


def test_the_last_write_wins_and_the_order_is_that_of_ids(store: RowStateStore) -> None:
    apps = [application(number) for number in (10, 2, 1)]
    store.write([SaveApplication(app, Saving.NEW) for app in apps])
    store.write([SaveAttempt(attempt(number), Saving.NEW) for number in (11, 2, 1)])
    changed = replace(apps[2], launch_ms=77)
    store.write([SaveApplication(changed, Saving.CHANGE)])
    found = store.load().applications
    assert [stored.application for stored in found] == [changed, apps[1], apps[0]]
    assert [one.attempt_id.attempt for one in found[0].attempts] == [1, 2, 11]


def test_an_application_is_removed_with_its_attempts(store: RowStateStore, open_store: Open) -> None:
    store.write([SaveApplication(application(), Saving.NEW), SaveAttempt(attempt(), Saving.NEW)])
    store.write([RemoveApplication(APP)])
    assert store.load().applications == ()
    store.write([SaveApplication(application(), Saving.NEW)])
    assert store.load().applications[0].attempts == ()
    store.write([SaveAttempt(attempt(2), Saving.NEW), RemoveApplication(APP)])
    store.close()
    with closing(open_store()) as again:
        assert again.load().applications == ()


def test_the_last_state_of_labels_is_stored(store: RowStateStore) -> None:
    assert store.load().node_labels == NodeLabelState()
    for labels in ((NodeLabel("a"),), (NodeLabel("a"), NodeLabel("b", exclusive=False))):
        state = NodeLabelState(labels, ((NodeId("h", 0), "a"), (NodeId("h", 7), "")))
        store.write([SaveNodeLabels(state)])
        assert store.load().node_labels == state


def test_keys_are_stored_by_kind(store: RowStateStore, open_store: Open) -> None:
    keys = (MasterKey(4, b"four"), MasterKey(2, b"two"))
    assert store.keys("a") == ()
    store.write_keys("a", keys)
    store.write_keys("b", keys[:1])
    store.write_keys("b", keys[1:])
    assert (store.keys("a"), store.keys("b")) == (keys, keys[1:])
    store.close()
    with closing(open_store()) as again:
        assert (again.keys("a"), again.keys("b")) == (keys, keys[1:])


def test_each_resource_manager_has_a_higher_epoch(store: RowStateStore, open_store: Open) -> None:
    epochs = [store.epoch()]
    for _ in range(2):
        store.close()
        store = open_store()
        epochs.append(store.epoch())
    store.close()
    assert [epoch - epochs[0] for epoch in epochs] == [0, 1, 2]


def test_a_write_is_atomic(store: RowStateStore) -> None:
    impossible = replace(application(2), diagnostics=object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="object cannot be written"):
        store.write([SaveApplication(application(), Saving.NEW), SaveApplication(impossible, Saving.NEW)])
    assert store.load().applications == RMState().applications


def test_a_record_that_is_intact_but_cannot_be_decoded_is_damage(store: RowStateStore) -> None:
    with store._rows.writing() as group:
        group.put("attempt", (*APP, 1), ('{"colour": 3}',))
    with pytest.raises(StoreDamaged, match=r"^.* is damaged: a record cannot be read: "):
        store.load()
