"""Which disk is chosen, and which modes new directories have."""

from __future__ import annotations

import os
import random
import stat
from collections import Counter
from pathlib import Path

import pytest

from nm.core.disk_health import DirectoryHealth
from nm.launcher import directories as module
from nm.launcher.directories import DisksFailed, NodeDirectories, make_dir
from tests.nm.nodes import APP, container_id


def nodes_of(*local: str, seed: int = 1) -> NodeDirectories:
    return NodeDirectories(local, ["/logs1", "/logs2"], random.Random(seed))


def test_disks_are_chosen_in_proportion_to_their_free_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_free_bytes", {"/big": 900, "/small": 100, "/none": 0}.__getitem__)
    found = nodes_of("/big", "/small", "/none")
    chosen = Counter(found.choose_local() for _ in range(2000))
    assert chosen["/none"] == 0
    assert 1700 < chosen["/big"] < 1900


def test_only_good_disks_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_free_bytes", lambda _: 1)
    found = nodes_of("/a", "/b")
    found.local_health = DirectoryHealth(("/b",), {"/a": "broken"}, {})
    assert {found.choose_local() for _ in range(20)} == {"/b"}
    assert found.for_launch(container_id(1), "alice").application_dirs == (f"/b/usercache/alice/appcache/{APP}",)


def test_choosing_fails_if_all_disks_are_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    found = nodes_of("/a", "/b")
    found.local_health = DirectoryHealth((), {"/a": "broken", "/b": "broken"}, {})
    with pytest.raises(DisksFailed, match="No space available in any of the local directories"):
        found.choose_local()
    monkeypatch.setattr(module, "_free_bytes", lambda _: 0)
    with pytest.raises(DisksFailed, match="No space available in any of the log directories"):
        found.choose_log()


def test_a_directory_has_its_mode_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        make_dir(f"{tmp_path}/a/b", 0o710)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o710
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755


def test_a_directory_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o700)
    make_dir(f"{tmp_path}/a", 0o755)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


def test_the_first_directories_are_made_on_all_good_disks_at_the_first_use(tmp_path: Path) -> None:
    first, second, bad = (tmp_path / name for name in ("a", "b", "bad"))
    found = nodes_of(str(first), str(second), str(bad))
    found.local_health = DirectoryHealth((str(first), str(second)), {str(bad): "broken"}, {})
    assert not first.exists()
    found.make_first()
    for local in (first, second):
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in local.iterdir()}
        assert modes == {"filecache": 0o755, "usercache": 0o755, "nmPrivate": 0o700}
    assert not bad.exists()


def test_a_disk_that_cannot_be_written_yet_gets_its_first_directories_later(tmp_path: Path) -> None:
    local = tmp_path / "a"
    local.write_text("in the way")
    found = nodes_of(str(local))
    found.make_first()
    local.unlink()
    found.make_first()
    assert (local / "usercache").is_dir()


def test_a_directory_that_another_fetch_makes_at_the_same_time_is_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of one container are fetched in parallel, into caches whose parents do not exist at first."""
    make = os.mkdir

    def made_by_another(path: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        make(path, mode, dir_fd=dir_fd)
        make(path, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", made_by_another)
    os.close(module.descend(str(tmp_path), ("usercache", "alice"), 0o700))
    assert (tmp_path / "usercache" / "alice").is_dir()
