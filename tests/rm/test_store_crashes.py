"""Crashes of the state store's writer: the files after each system call, and with the last call half done, are loaded.

The writer runs under ptrace, which stops it before and after each system call; the test copies the files then. Each
copy must load the state before or after the group that was being written, and after it once the call has returned.
"""

from __future__ import annotations

import ctypes
import os
import random
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.processes import running
from tests.rm.test_sqlite_store import ROOT, application
from tests.rm.test_store_damage import Files, flipped, flips, load
from wire.files.store_file import StoreDamaged

PTRACE_SYSCALL = 24
MAY_NOT_BE_TRACED = 77
SECTOR_BYTES = 512
GROUPS = 3
FLIPS = 4
"""In the files of each crash."""
WRITER = f"""
import ctypes, os, signal, sys
from pathlib import Path
from rm.core.effects import SaveApplication
from rm.core.stored_state import Saving
from tests.rm.test_sqlite_store import application, opened
PTRACE_TRACEME = 0
directory = Path(sys.argv[1])
if ctypes.CDLL(None).ptrace(PTRACE_TRACEME, 0, None, None) != 0:
    os._exit({MAY_NOT_BE_TRACED})
os.kill(os.getpid(), signal.SIGSTOP)
store = opened(directory / "store")
acknowledged = os.open(directory / "acknowledged", os.O_CREAT | os.O_WRONLY)
for group in range(1, {GROUPS} + 1):
    new = [SaveApplication(application(number), Saving.NEW) for number in (2 * group, 2 * group + 1)]
    store.write([SaveApplication(application(1, launch_ms=group), Saving.CHANGE), *new])
    os.write(acknowledged, b".")
os._exit(0)
"""


def crashes(directory: Path) -> list[Files]:
    """The files after each system call of the writer that changed any of them."""
    trace = ctypes.CDLL(None).ptrace
    found: list[Files] = [{}]
    with running(sys.executable, "-c", WRITER, str(directory), cwd=ROOT) as process:
        while not os.WIFEXITED(status := os.waitpid(process.pid, 0)[1]):
            assert os.WIFSTOPPED(status)
            files = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
            if files != found[-1]:
                found.append(files)
            trace(PTRACE_SYSCALL, process.pid, None, None)
        process.returncode = os.WEXITSTATUS(status)
    if process.returncode == MAY_NOT_BE_TRACED:
        pytest.skip("this machine does not let a process trace its child")
    assert process.returncode == 0
    return found


def half_done(before: Files, after: Files, draw: random.Random) -> Files:
    """`after` with some sectors as they were before, as a loss of power during the last call leaves them.

    A new name is there or not: the store's own file is linked when its content is on the disk.
    """
    torn = dict(after)
    for name, content in after.items():
        old = before.get(name, content)
        if len(old) <= len(content):
            old = old.ljust(len(content), b"\0")
            starts = range(0, len(content), SECTOR_BYTES)
            torn[name] = b"".join((old if draw.random() < 0.5 else content)[at : at + SECTOR_BYTES] for at in starts)
    return torn


def groups_loaded(directory: Path, files: Files) -> int:
    """The number of groups that the store holds. They must be whole, and every one of them that was acknowledged."""
    acknowledged = len(files.get("acknowledged", b""))
    state, _ = load(directory, {name: content for name, content in files.items() if name != "acknowledged"})
    groups = max((stored.application.launch_ms for stored in state.applications), default=0)
    numbers = range(1, 2 * groups + 2 if groups else 1)
    expected = [application(number, launch_ms=groups if number == 1 else 0) for number in numbers]
    assert [stored.application for stored in state.applications] == expected
    assert groups in (acknowledged, acknowledged + 1)
    return groups


@pytest.mark.slow
def test_a_crash_at_any_system_call_loses_no_acknowledged_group(tmp_path: Path, seed: int) -> None:
    written, read = tmp_path / "written", tmp_path / "read"
    written.mkdir()
    read.mkdir()
    files = crashes(written)
    assert {groups_loaded(read, one) for one in files} == set(range(GROUPS + 1))
    draw = random.Random(seed)
    for before, after in pairwise(files):
        for _ in range(3):
            groups_loaded(read, half_done(before, after, draw))


@pytest.mark.slow
def test_damage_to_the_files_of_a_crash_never_loads_part_of_a_group(tmp_path: Path, seed: int) -> None:
    """SQLite's journal checks few of its bytes, so that it may undo a group with damaged pages, or in part."""
    written, read = tmp_path / "written", tmp_path / "read"
    written.mkdir()
    read.mkdir()
    draw, refused = random.Random(seed), 0
    for files in (files for files in crashes(written) if "store-journal" in files):
        without_journal = {name: content for name, content in files.items() if name != "store-journal"}
        for damaged in (without_journal, *(flipped(files, *draw.choice(list(flips(files)))) for _ in range(FLIPS))):
            try:
                groups_loaded(read, {**damaged, "acknowledged": files["acknowledged"]})
            except StoreDamaged:
                refused += 1
    assert refused > 0
