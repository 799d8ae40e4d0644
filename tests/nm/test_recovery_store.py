"""The recovery store's file: it returns what was written, and refuses a file that it did not write."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from nm.core.resource_key import CacheKey, ResourceKey
from nm.core.stored_state import (
    ContainerProgress,
    NodeRecords,
    RecoveredContainerStatus,
    RecoveredNode,
    RecoveredResource,
    RemoveLogDeletion,
    RemoveStoredApplication,
    RemoveStoredContainer,
    RemoveStoredResource,
    RemoveUsedToken,
    StoreApplication,
    StoreContainer,
    StoreEffect,
    StoreLogDeletion,
    StoreProgress,
    StoreResource,
    StoreServiceData,
    StoreUsedToken,
)
from nm.shell.recovery_store import FILE_NAME, FORM, RecoveryStore
from tests.nm.nodes import APP, ATTEMPT, NOW_MS, OTHER_ATTEMPT, container_id, container_token
from wire.files.store_file import StoreDamaged
from yarn.containers import ContainerLaunchContext, ContainerRetryContext, LocalResource, ServiceData
from yarn.errors import YarnException
from yarn.protocols.tracker import MasterKey
from yarn.states import ApplicationAccessType, ContainerRetryPolicy, LocalResourceType

OTHER = OTHER_ATTEMPT.application_id
LAUNCH = ContainerLaunchContext(
    ("sleep 1", "echo \u00fc"),
    {"A": "b"},
    {"x": LocalResource("file:/x", 1, 2)},
    b"credentials",
    {"mapreduce_shuffle": ServiceData(b"secret")},
    ContainerRetryContext(ContainerRetryPolicy.RETRY_ON_SPECIFIC_ERROR_CODES, frozenset({3, 1}), 5, 100, 200),
    {ApplicationAccessType.VIEW_APP: "bob"},
)
PROGRESS = ContainerProgress(
    RecoveredContainerStatus.LAUNCHED, 2, NOW_MS, True, -105, "so\nfar", 4, (NOW_MS, NOW_MS + 1)
)
COPY = RecoveredResource(
    CacheKey("alice", APP), 11, ResourceKey("file:/x", 2, LocalResourceType.ARCHIVE, None), "/local/11/x", 7
)
PUBLIC = RecoveredResource(CacheKey(None, None), 10, ResourceKey("f", 1, LocalResourceType.PATTERN, "*"), "/l/10/f", 1)
WRITES: tuple[StoreEffect, ...] = (
    StoreApplication(APP, "alice", {ApplicationAccessType.MODIFY_APP: "*"}),
    StoreApplication(OTHER, "bob", {}),
    StoreServiceData(APP, "mapreduce_shuffle", ServiceData(b"\x00secret")),
    StoreContainer(container_token(1), LAUNCH),
    StoreContainer(container_token(2, attempt=OTHER_ATTEMPT), ContainerLaunchContext(("true",))),
    StoreProgress(container_id(1), PROGRESS),
    StoreContainer(container_token(1, memory_mb=512), LAUNCH),
    StoreResource(COPY),
    StoreResource(PUBLIC),
    StoreUsedToken(container_id(1), NOW_MS),
    StoreLogDeletion(OTHER, NOW_MS + 5),
)
REMOVALS: tuple[StoreEffect, ...] = (
    RemoveStoredContainer(container_id(1)),
    RemoveStoredApplication(APP),
    RemoveStoredResource(COPY.path),
    RemoveUsedToken(container_id(1)),
    RemoveLogDeletion(OTHER),
)
KEY, OLD_KEY = MasterKey(7, b"k" * 32), MasterKey(3, b"o" * 32)


def in_memory(*effects: StoreEffect) -> RecoveredNode:
    records = NodeRecords()
    for effect in effects:
        records.apply(effect)
    return records.state()


def reopened(store: RecoveryStore, directory: Path) -> RecoveryStore:
    store.close()
    return RecoveryStore.open(directory)


def written(directory: Path, *effects: StoreEffect) -> None:
    store = RecoveryStore.open(directory)
    store.write(effects)
    store.close()


def test_a_new_store_has_nothing(tmp_path: Path) -> None:
    store = RecoveryStore.open(tmp_path / "deep" / "recovery")
    assert store.load() == RecoveredNode()
    assert store.keys("nm") == (None, None)
    store.close()
    assert stat.S_IMODE((tmp_path / "deep" / "recovery").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "deep" / "recovery" / FILE_NAME).stat().st_mode) == 0o600


def test_it_returns_what_was_written(tmp_path: Path) -> None:
    store = RecoveryStore.open(tmp_path)
    store.write(WRITES)
    store = reopened(store, tmp_path)
    assert store.load() == in_memory(*WRITES)
    first = store.load().containers[0]
    assert (first.launch_context, first.token.resource.memory_mb, first.progress) == (LAUNCH, 512, PROGRESS)
    store.write(REMOVALS)
    store = reopened(store, tmp_path)
    assert store.load() == in_memory(*WRITES, *REMOVALS)
    store.close()


def test_it_keeps_the_keys_of_tokens(tmp_path: Path) -> None:
    store = RecoveryStore.open(tmp_path)
    store.write_keys("nm", KEY, OLD_KEY)
    store.write_keys("container", KEY, None)
    store.write_attempt_key(ATTEMPT, OLD_KEY)
    store.write_attempt_key(OTHER_ATTEMPT, KEY)
    store = reopened(store, tmp_path)
    assert store.keys("nm") == (KEY, OLD_KEY)
    assert store.keys("container") == (KEY, None)
    assert store.attempt_keys() == {ATTEMPT: OLD_KEY, OTHER_ATTEMPT: KEY}
    store.remove_attempt_keys(APP)
    assert store.attempt_keys() == {OTHER_ATTEMPT: KEY}
    store.close()


def test_an_erased_store_is_gone(tmp_path: Path) -> None:
    store = RecoveryStore.open(tmp_path)
    store.write(WRITES)
    store.erase()
    assert list(tmp_path.iterdir()) == []


def test_two_node_managers_cannot_use_one_store(tmp_path: Path) -> None:
    store = RecoveryStore.open(tmp_path)
    with pytest.raises(YarnException, match="another NodeManager uses it"):
        RecoveryStore.open(tmp_path)
    store.close()


def test_a_changed_record_is_refused(tmp_path: Path) -> None:
    written(tmp_path, *WRITES)
    database = sqlite3.connect(tmp_path / FILE_NAME)
    with database:
        database.execute("UPDATE used_token SET expiry_ms = expiry_ms + 1")
    database.close()
    with pytest.raises(StoreDamaged, match=r"1 records do not match .* to start without its containers"):
        RecoveryStore.open(tmp_path)


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    written(tmp_path, *WRITES)
    database = sqlite3.connect(tmp_path / FILE_NAME)
    database.execute(f"PRAGMA user_version = {FORM.version + 1}")
    database.execute("CREATE TABLE more (x)")
    database.commit()
    database.close()
    with pytest.raises(YarnException, match=f"has version {FORM.version + 1}, this release reads version"):
        RecoveryStore.open(tmp_path)


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(YarnException, match=r"yarn\.nodemanager\.recovery\.dir = .*name a directory"):
        RecoveryStore.open(tmp_path / "file" / "recovery")


def test_progress_without_its_container_is_damage(tmp_path: Path) -> None:
    store = RecoveryStore.open(tmp_path)
    store.write([StoreProgress(container_id(1), PROGRESS)])
    with pytest.raises(StoreDamaged, match="a record cannot be read: StoreProgress without"):
        store.load()
    store.close()
