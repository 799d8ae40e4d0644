"""A damaged state store: every changed, shortened or deleted file is refused, or loads exactly what was written."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from rm.core.effects import SaveApplication, SaveAttempt, SaveNodeLabels
from rm.core.stored_state import NodeLabelState, RMState, Saving
from rm.shell.row_state_store import Keys
from tests.rm.test_sqlite_store import application, attempt, opened, read
from wire.files import store_file
from wire.files.store_file import StoreDamaged, store_files
from yarn.ids import NodeId
from yarn.nodes import NodeLabel
from yarn.protocols.tracker import MasterKey

KEYS = (MasterKey(4, b"four"), MasterKey(2, b"two"))
SAMPLE = 150

Files = Mapping[str, bytes]
Loaded = tuple[RMState, Keys]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    """{name: content} of a small store as a killed process leaves it; the last group changed every table."""
    monkeypatch.setattr(store_file, "PAGE_BYTES", 512)
    directory = tmp_path / "written"
    directory.mkdir()
    store = opened(directory / "store")
    store.raise_epoch()
    store.write_keys("a", KEYS[:1])
    for number in (1, 2):
        store.write([SaveApplication(application(number), Saving.NEW), SaveAttempt(attempt(number), Saving.NEW)])
    store.write_keys("a", KEYS)
    store.raise_epoch()
    labels = NodeLabelState((NodeLabel("x"),), ((NodeId("h", 0), "x"),))
    store.write([SaveApplication(application(1, launch_ms=7), Saving.CHANGE), SaveNodeLabels(labels)])
    content = {path.name: path.read_bytes() for path in directory.iterdir()}
    store.close()
    return content


def load(directory: Path, files: Files) -> Loaded:
    """The content of a store that consists of these files."""
    for path in directory.iterdir():
        if path.name not in files:
            path.unlink()
    for name, content in files.items():
        path = directory / name
        if not path.exists() or path.read_bytes() != content:
            path.touch(0o600)
            path.write_bytes(content)
    with closing(opened(directory / "store")) as store:
        return store.load(), store.keys("a")


def flips(files: Files) -> Iterator[tuple[str, int, int]]:
    """(file, offset, mask) for each byte; the mask is one bit, or all of them, in turn."""
    for name, content in files.items():
        for offset in range(len(content)):
            yield name, offset, (1 << offset % 9) & 0xFF or 0xFF


def flipped(files: Files, name: str, offset: int, mask: int) -> Files:
    content = bytearray(files[name])
    content[offset] ^= mask
    return {**files, name: bytes(content)}


def cuts(files: Files) -> Iterator[tuple[str, int]]:
    """(file, length) for every shortened file."""
    for name, content in files.items():
        for length in range(len(content)):
            yield name, length


def outcomes(files: Files, directory: Path, damaged: Iterable[Files]) -> Counter[str]:
    """The number of times that each kind of damage was refused or had no effect, and every other outcome."""
    directory.mkdir()
    written, counted = load(directory, files), Counter[str]()
    for number, damage in enumerate(damaged):
        try:
            outcome = "equal" if load(directory, damage) == written else f"{number}: other content"
        except StoreDamaged:
            outcome = "refused"
        except Exception as error:
            outcome = f"{number}: {error!r}"
        counted[outcome] += 1
    return counted


def assert_noticed(counted: Counter[str]) -> None:
    assert set(counted) == {"equal", "refused"}


def test_flipped_bits_are_refused_or_change_nothing(files: Files, tmp_path: Path, seed: int) -> None:
    sample = random.Random(seed).sample(list(flips(files)), SAMPLE)
    assert_noticed(outcomes(files, tmp_path / "read", (flipped(files, *flip) for flip in sample)))


@pytest.mark.soak
def test_every_flipped_byte_is_refused_or_changes_nothing(files: Files, tmp_path: Path) -> None:
    assert_noticed(outcomes(files, tmp_path / "read", (flipped(files, *flip) for flip in flips(files))))


def test_shortened_files_are_refused_or_change_nothing(files: Files, tmp_path: Path, seed: int) -> None:
    sample = random.Random(seed).sample(list(cuts(files)), SAMPLE)
    damaged = ({**files, name: files[name][:length]} for name, length in [*sample, ("store", 0), ("store-journal", 0)])
    assert_noticed(outcomes(files, tmp_path / "read", damaged))


def test_a_missing_journal_changes_nothing_because_the_file_has_all_that_was_acknowledged(
    files: Files, tmp_path: Path
) -> None:
    assert outcomes(files, tmp_path / "read", [{"store": files["store"]}]) == {"equal": 1}


@pytest.mark.parametrize("beside", ["-journal", "-wal"])
def test_a_missing_file_whose_journal_is_there_is_refused(path: Path, beside: str) -> None:
    """Also the write-ahead log of an earlier release."""
    journal = Path(f"{path}{beside}")
    journal.write_bytes(b"content")
    with pytest.raises(
        StoreDamaged, match=rf"the file is missing, but its journal state.sqlite{beside} exists \(put the file"
    ):
        opened(path)
    assert (journal.read_bytes(), path.exists()) == (b"content", False)


def test_a_log_of_an_earlier_release_beside_the_file_is_refused(path: Path) -> None:
    """SQLite would read its pages in the place of the file's."""
    opened(path).close()
    Path(f"{path}-wal").touch()
    with pytest.raises(StoreDamaged, match=r"the file is damaged: state.sqlite-wal does not belong to it"):
        opened(path)


def test_a_record_of_an_earlier_transaction_is_noticed(path: Path) -> None:
    """The record matches its own checksum: what notices it is the digest of all records."""
    with closing(opened(path)) as store:
        store.write([SaveApplication(application(), Saving.NEW)])
    with sqlite3.connect(path) as database:
        (earlier,) = database.execute("SELECT * FROM application").fetchall()
    database.close()
    with closing(opened(path)) as store:
        store.write([SaveApplication(application(launch_ms=7), Saving.CHANGE)])
    with sqlite3.connect(path) as database:
        database.execute("INSERT OR REPLACE INTO application VALUES (?, ?, ?, ?, ?)", earlier)
    database.close()
    with pytest.raises(StoreDamaged, match="its records are not all of those that were written last"):
        opened(path)


def test_deleting_all_files_of_a_store_starts_over(path: Path) -> None:
    with closing(opened(path)) as store:
        store.write([SaveApplication(application(), Saving.NEW)])
    Path(f"{path}-new-abandoned").mkdir()
    assert {file for file in store_files(path) if file.exists()} == set(path.parent.iterdir())
    for file in store_files(path):
        if file.is_dir():
            file.rmdir()
        else:
            file.unlink(missing_ok=True)
    assert read(path) == RMState()
