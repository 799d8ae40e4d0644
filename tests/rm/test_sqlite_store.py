"""The state store's file: what is written is read back whole, and a damaged file is refused."""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from rm.core.effects import SaveApplication, SaveAttempt
from rm.core.stored_state import (
    ApplicationAttemptStateData,
    ApplicationStateData,
    RMState,
    Saving,
)
from rm.shell.sqlite_store import FILE_KIND, SCHEMA_VERSION, SQLiteStateStore
from tests.processes import running
from wire.files.store_file import StoreDamaged, StoreUnavailable
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import Container, ContainerLaunchContext
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.resource import Resource

REMEDY = "(restore a copy, or move state.sqlite and state.sqlite-journal away to start without its applications)"
ROOT = Path(__file__).resolve().parents[2]
APP = ApplicationId(1_700_000_000_000, 1)
ATTEMPT = ApplicationAttemptId(APP, 1)
AM_CONTAINER = Container(ContainerId(ATTEMPT, 3 << 40 | 1), NodeId("n1", 45454), "n1:8042", Resource(1024, 1), 0)


def application(number: int = 1, **fields: object) -> ApplicationStateData:
    submission = ApplicationSubmissionContext(
        ApplicationId(APP.cluster_timestamp, number),
        ContainerLaunchContext(("run me",), {"A": "b"}, tokens=b"credentials"),
        Resource(1024, 1),
        queue="default",
        tags=frozenset({"a", "b"}),
        priority=3,
    )
    return ApplicationStateData(submission, "ann", 5, **fields)  # type: ignore[arg-type]


def attempt(number: int = 1, **fields: object) -> ApplicationAttemptStateData:
    return ApplicationAttemptStateData(ApplicationAttemptId(APP, number), AM_CONTAINER, 7, **fields)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStateStore]:
    store = opened(path)
    yield store
    store.close()


def opened(path: Path) -> SQLiteStateStore:
    return SQLiteStateStore.open(path, f"KEY = {path}")


def refusal(path: Path) -> str:
    """The error for a file that is refused; nothing of it changes."""
    before = path.read_bytes()
    with pytest.raises(YarnException) as refused:
        read(path)
    assert path.read_bytes() == before
    return refused.value.message


def execute(store: SQLiteStateStore, statement: str) -> None:
    store._file._database.execute(statement)


def read(path: Path) -> RMState:
    with closing(opened(path)) as store:
        return store.load()


def test_a_new_file_is_empty_and_private_to_its_owner(store: SQLiteStateStore, path: Path) -> None:
    store.write([SaveApplication(application(), Saving.NEW)])
    assert {p.stat().st_mode & 0o777 for p in path.parent.iterdir()} == {0o600}
    assert store.keys("any") == ()


def test_on_a_full_disk_a_write_leaves_nothing_and_works_once_there_is_room(store: SQLiteStateStore) -> None:
    store.write([SaveApplication(application(), Saving.NEW)])
    execute(store, "PRAGMA max_page_count = 1")
    many = [SaveApplication(application(number), Saving.NEW) for number in range(2, 200)]
    with pytest.raises(
        StoreUnavailable, match=r"^KEY = .*: database or disk is full \(free some space, or name a file"
    ):
        store.write(many)
    assert [stored.application for stored in store.load().applications] == [application()]
    execute(store, "PRAGMA max_page_count = 1000000")
    store.write(many)
    assert len(store.load().applications) == 199


@contextmanager
def no_file_longer_than(bytes_max: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.slow
def test_a_write_that_fails_at_any_length_of_the_files_is_undone_and_works_later(path: Path) -> None:
    """Also where undoing it fails at first, because the journal cannot be written either."""
    store, written, failed = opened(path), [], 0
    for bytes_max in range(0, 40_000, 1024):
        new = [application(len(written) + number) for number in (1, 2, 3)]
        effects = [SaveApplication(one, Saving.NEW) for one in new]
        try:
            with no_file_longer_than(bytes_max):
                store.write(effects)
        except StoreUnavailable:
            failed += 1
            assert [stored.application for stored in store.load().applications] == written
            store.write(effects)
        written += new
    store.close()
    assert failed > 10
    assert [stored.application for stored in read(path).applications] == written


def test_other_write_errors_are_not_reported_as_a_full_disk(store: SQLiteStateStore) -> None:
    execute(store, "DROP TABLE attempt")
    with pytest.raises(StoreDamaged, match="no such table: attempt"):
        store.write([SaveAttempt(attempt(), Saving.NEW)])


# Processes that are killed

KILLS = 3
WRITER = """
import os, sys
from pathlib import Path
from rm.core.effects import SaveApplication
from rm.core.stored_state import Saving
from tests.rm.test_sqlite_store import application, opened
store = opened(Path(sys.argv[1]))
for number in range(int(sys.argv[2]), 1_000_000):
    store.write([SaveApplication(application(n), Saving.NEW) for n in (2 * number - 1, 2 * number)])
    os.write(1, b"%d\\n" % (2 * number))
"""


@pytest.mark.slow
def test_durable_transactions_survive_kill_9_as_a_whole(path: Path, seed: int) -> None:
    """The writer prints a number once it is written: all printed applications are there, and the others in pairs."""
    draw, next_number = random.Random(seed), 1
    for _ in range(KILLS):
        words = [sys.executable, "-c", WRITER, str(path), str(next_number)]
        with running(*words, cwd=ROOT, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            said = [process.stdout.readline() for _ in range(20)]
            time.sleep(draw.uniform(0, 0.01))
            process.kill()
            said += process.stdout.readlines()
        store = opened(path)
        numbers = [stored.application.application_id.id for stored in store.load().applications]
        store.close()
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) % 2 == 0
        assert len(numbers) >= int(said[-1])
        next_number = len(numbers) // 2 + 1


# Damaged files


def test_a_file_in_use_is_refused(store: SQLiteStateStore, path: Path) -> None:
    assert "another ResourceManager uses it (stop that one, or name another file)" in refusal(path)


def test_a_damaged_file_is_refused_with_the_remedy(store: SQLiteStateStore, path: Path) -> None:
    store.write([SaveApplication(application(number), Saving.NEW) for number in range(1, 200)])
    store.close()
    data = bytearray(path.read_bytes())
    assert len(data) > 20_000
    data[8192:16384] = os.urandom(8192)
    path.write_bytes(data)
    fault = refusal(path)
    assert fault.startswith(f"KEY = {path}: the file is damaged: ")
    assert fault.endswith(REMEDY)


def test_a_truncated_file_is_refused(store: SQLiteStateStore, path: Path) -> None:
    store.write([SaveApplication(application(number), Saving.NEW) for number in range(1, 200)])
    store.close()
    os.truncate(path, path.stat().st_size // 2)
    assert ": the file is damaged: " in refusal(path)


def test_a_file_that_is_not_a_database_is_refused(path: Path) -> None:
    path.touch(0o600)
    path.write_bytes(b"Dear diary, " * 1000)
    assert "the file is damaged: file is not a database" in refusal(path)


def test_a_record_that_cannot_be_read_is_refused(store: SQLiteStateStore, path: Path) -> None:
    store.write([SaveApplication(application(), Saving.NEW)])
    store.close()
    with sqlite3.connect(path) as database:
        database.execute("""UPDATE application SET state = '{"user": "ann", "colour": 3}'""")
    database.close()
    assert "the file is damaged: 1 records do not match their checksums: application (1700000000000, 1) (" in refusal(
        path
    )


def altered(path: Path, statement: str) -> None:
    path.touch(0o600)
    with sqlite3.connect(path) as database:
        database.execute(statement)
    database.close()


@pytest.mark.parametrize("journal_mode", ["DELETE", "WAL"])
def test_another_programs_database_is_refused(path: Path, journal_mode: str) -> None:
    altered(path, f"PRAGMA journal_mode = {journal_mode}")
    altered(path, "CREATE TABLE cookies (jar TEXT)")
    assert "another program" in refusal(path)


@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_another_version_is_refused(path: Path, version: int) -> None:
    altered(path, f"PRAGMA application_id = {FILE_KIND}")
    altered(path, f"PRAGMA user_version = {version}")
    altered(path, "CREATE TABLE epoch (epoch INTEGER NOT NULL)")
    fault = refusal(path)
    assert f"the file has version {version}, this release reads version {SCHEMA_VERSION}" in fault
    assert "start the release that wrote it, or move state.sqlite and state.sqlite-journal away" in fault


def test_a_store_of_an_earlier_release_is_refused_and_its_log_is_left_alone(path: Path) -> None:
    """Version 2 had a write-ahead log, which SQLite would write into the file."""
    path.touch(0o600)
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE epoch (epoch INTEGER NOT NULL)")
    files = {name.name: name.read_bytes() for name in (path, Path(f"{path}-wal"))}
    database.close()
    for name, content in files.items():
        (path.parent / name).write_bytes(content)
    assert "written by an earlier release or by another program" in refusal(path)
    assert Path(f"{path}-wal").read_bytes() == files["state.sqlite-wal"]


def test_a_header_that_does_not_match_its_tables_is_damage(store: SQLiteStateStore, path: Path) -> None:
    store.close()
    altered(path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    assert "the file is damaged: its header does not match its tables" in refusal(path)


def test_a_file_that_others_may_read_is_refused(path: Path) -> None:
    path.touch(0o600)
    path.chmod(0o644)
    assert "mode 0644 lets other users read it (chmod 0600)" in refusal(path)


def test_a_file_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    with pytest.raises(YarnException, match=r"\(name a file that can be written\)"):
        opened(tmp_path / "no" / "such" / "place")
