"""The recovery store of a node: its stored state and its keys as rows of a SQLite file (NMLeveldbStateStoreService).

    store = RecoveryStore.open(directory)
    node = store.load()                              what the core is given with Recover
    store.write([StoreContainer(...)])               all of it durable, or an error and none of it

Launch contexts and token identifiers are stored as Hadoop's messages, so that users' credentials are complete; the rest
is JSON. `wire/files/store_file.py` has the file: transactions, the lock, and the checksums that detect damage.

A write returns once the kernel has the data, as in Hadoop, whose store does not sync either: a killed NodeManager has
lost nothing, and a machine that fails takes the containers with it. That makes a write cheap enough (a tenth of a
millisecond) to be made in the event loop, before the other effects of its step.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import assert_never

from nm.core.resource_key import CacheKey, ResourceKey
from nm.core.stored_state import (
    ContainerProgress,
    NodeRecords,
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
from wire.codec.containers import (
    read_container_identifier,
    read_launch_context,
    write_container_identifier,
    write_launch_context,
)
from wire.files.json_records import fields_of, fields_text, from_json, to_json
from wire.files.store_file import StoreFile, StoreForm, StoreTable, Transaction, store_files
from wire.generated.yarn_protos_pb2 import ContainerLaunchContextProto
from yarn.containers import ServiceData
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.protocols.tracker import MasterKey
from yarn.settings.nodemanager import RECOVERY_DIR

FILE_NAME = "yarn-nm-state.sqlite"
_APPLICATION = ("cluster_timestamp INTEGER", "application INTEGER")
_CONTAINER = (*_APPLICATION, "attempt INTEGER", "container INTEGER")
TABLES = {
    "application": StoreTable(_APPLICATION, ("user TEXT", "acls TEXT")),
    "service_data": StoreTable((*_APPLICATION, "service TEXT"), ("data BLOB",)),
    "container": StoreTable(_CONTAINER, ("token BLOB", "launch_context BLOB")),
    "progress": StoreTable(_CONTAINER, ("progress TEXT",)),
    "resource": StoreTable(("path TEXT",), ("resource TEXT",)),
    "used_token": StoreTable(_CONTAINER, ("expiry_ms INTEGER",)),
    "log_deletion": StoreTable(_APPLICATION, ("due_ms INTEGER",)),
    "master_key": StoreTable(("kind TEXT", "place TEXT"), ("key_id INTEGER", "secret BLOB")),
    "attempt_key": StoreTable((*_APPLICATION, "attempt INTEGER"), ("key_id INTEGER", "secret BLOB")),
}
FORM = StoreForm(TABLES, 0x79726E6D, 1, "NodeManager", "containers", synced=False)
CURRENT, PREVIOUS = "current", "previous"
DIRECTORY_MODE = 0o700


class RecoveryStore:
    """An open recovery store."""

    def __init__(self, file: StoreFile, path: Path) -> None:
        self._file = file
        self._path = path

    @classmethod
    def open(cls, directory: Path) -> RecoveryStore:
        """The store in `directory`; both are created if they do not exist.

        Raises StoreDamaged for damage, and YarnException for a directory that cannot be used and for a file that is in
        use, of another program or version, or open to others.
        """
        said = f"{RECOVERY_DIR.key} = {directory}"
        try:
            directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        except OSError as error:
            raise YarnException(f"{said}: {error.strerror} (name a directory that can be written)") from None
        path = directory / FILE_NAME
        return cls(StoreFile.open(path, said, FORM), path)

    def close(self) -> None:
        """Release the file; closing twice is a no-op."""
        self._file.close()

    def erase(self) -> None:
        """Close the store and delete its files: the next NodeManager starts without state."""
        self._file.close()
        for file in store_files(self._path):
            file.unlink(missing_ok=True)

    def load(self) -> RecoveredNode:
        """The stored state of the node. Raises StoreDamaged for a record that cannot be read."""
        records = NodeRecords()
        with self._file.reading():
            for effect in self._effects():
                try:
                    records.apply(effect)
                except KeyError:
                    raise ValueError(f"{type(effect).__name__} without what it belongs to") from None
        return records.state()

    def write(self, effects: Iterable[StoreEffect]) -> None:
        """Write all effects in one transaction.

        After an error nothing was written; StoreUnavailable: try again later.
        """
        with self._file.writing() as group:
            for effect in effects:
                _apply(effect, group)

    def keys(self, kind: str) -> tuple[MasterKey | None, MasterKey | None]:
        """The current and the previous key of one kind of token."""
        found = {
            place: MasterKey(key_id, secret) for _, place, key_id, secret in self._file.rows("master_key", (kind,))
        }
        return found.get(CURRENT), found.get(PREVIOUS)

    def write_keys(self, kind: str, current: MasterKey | None, previous: MasterKey | None) -> None:
        """Replace the keys of this kind."""
        with self._file.writing() as group:
            group.remove("master_key", (kind,))
            for place, key in ((CURRENT, current), (PREVIOUS, previous)):
                if key is not None:
                    group.put("master_key", (kind, place), (key.key_id, key.secret))

    def attempt_keys(self) -> dict[ApplicationAttemptId, MasterKey]:
        """The keys of the NM tokens with which attempts have started containers."""
        return {
            ApplicationAttemptId(ApplicationId(timestamp, number), attempt): MasterKey(key_id, secret)
            for timestamp, number, attempt, key_id, secret in self._file.rows("attempt_key")
        }

    def write_attempt_key(self, attempt_id: ApplicationAttemptId, key: MasterKey) -> None:
        with self._file.writing() as group:
            group.put("attempt_key", (*attempt_id.application_id, attempt_id.attempt), (key.key_id, key.secret))

    def remove_attempt_keys(self, application_id: ApplicationId) -> None:
        with self._file.writing() as group:
            group.remove("attempt_key", application_id)

    def _effects(self) -> Iterable[StoreEffect]:
        """The effects that would write the stored rows, each table's in the order of its keys."""
        rows = self._file.rows
        for timestamp, number, user, acls in rows("application"):
            yield StoreApplication(ApplicationId(timestamp, number), user, from_json(json.loads(acls)))
        for timestamp, number, service, data in rows("service_data"):
            yield StoreServiceData(ApplicationId(timestamp, number), service, ServiceData(data))
        for *_, token, launch_context in rows("container"):
            proto = ContainerLaunchContextProto.FromString(launch_context)
            yield StoreContainer(read_container_identifier(token), read_launch_context(proto))
        for *key, progress in rows("progress"):
            yield StoreProgress(_container_id(*key), ContainerProgress(**fields_of(progress)))
        for path, resource in rows("resource"):
            yield StoreResource(_resource(path, resource))
        for *key, expiry_ms in rows("used_token"):
            yield StoreUsedToken(_container_id(*key), expiry_ms)
        for timestamp, number, due_ms in rows("log_deletion"):
            yield StoreLogDeletion(ApplicationId(timestamp, number), due_ms)


def _apply(effect: StoreEffect, group: Transaction) -> None:
    match effect:
        case StoreApplication(application_id, user, acls):
            group.put("application", application_id, (user, _text(to_json(acls))))
        case StoreServiceData(application_id, service, data):
            group.put("service_data", (*application_id, service), (data.data,))
        case RemoveStoredApplication(application_id):
            group.remove("application", application_id)
            group.remove("service_data", application_id)
        case StoreContainer(token, launch_context):
            proto = ContainerLaunchContextProto()
            write_launch_context(launch_context, proto)
            content = (write_container_identifier(token), proto.SerializeToString())
            group.put("container", _key(token.container_id), content)
        case StoreProgress(container_id, progress):
            group.put("progress", _key(container_id), (fields_text(progress),))
        case RemoveStoredContainer(container_id):
            group.remove("container", _key(container_id))
            group.remove("progress", _key(container_id))
        case StoreResource(resource):
            values = {"cache": to_json(resource.cache), "key": to_json(resource.key)}
            numbers = {"number": resource.number, "size_bytes": resource.size_bytes}
            group.put("resource", (resource.path,), (_text(values | numbers),))
        case RemoveStoredResource(path):
            group.remove("resource", (path,))
        case StoreUsedToken(container_id, expiry_ms):
            group.put("used_token", _key(container_id), (expiry_ms,))
        case RemoveUsedToken(container_id):
            group.remove("used_token", _key(container_id))
        case StoreLogDeletion(application_id, due_ms):
            group.put("log_deletion", application_id, (due_ms,))
        case RemoveLogDeletion(application_id):
            group.remove("log_deletion", application_id)
        case _:
            assert_never(effect)


def _key(container_id: ContainerId) -> tuple[int, int, int, int]:
    attempt_id, application_id = container_id.attempt_id, container_id.application_id
    return application_id.cluster_timestamp, application_id.id, attempt_id.attempt, container_id.number


def _container_id(timestamp: int, application: int, attempt: int, container: int) -> ContainerId:
    return ContainerId(ApplicationAttemptId(ApplicationId(timestamp, application), attempt), container)


def _resource(path: str, text: str) -> RecoveredResource:
    values = json.loads(text)
    cache, key = from_json(values["cache"]), from_json(values["key"])
    if not isinstance(cache, CacheKey) or not isinstance(key, ResourceKey):
        raise ValueError(f"the record of the copy {path} is not one")
    return RecoveredResource(cache, values["number"], key, path, values["size_bytes"])


def _text(values: object) -> str:
    return json.dumps(values, separators=(",", ":"))
