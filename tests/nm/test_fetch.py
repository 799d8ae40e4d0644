"""Fetching a resource into a cache: Hadoop's checks, and read-only copies."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import stat
import zipfile
from pathlib import Path

import pytest

from nm.core.disk_health import DirectoryHealth
from nm.core.effects import FetchResource
from nm.core.events import Event, ResourceFetchFailed
from nm.launcher.directories import NodeDirectories
from nm.localizer.archives import DEFAULT_LIMITS
from nm.localizer.fetch import Localizer, diagnostics, fetch, is_public
from nm.localizer.sources import NO_MOUNTS, DownloadFailed
from tests.nm.nodes import APP, container_id
from yarn.containers import LocalResource
from yarn.resource import INT64_MAX
from yarn.states import LocalResourceType, LocalResourceVisibility

PUBLIC, PRIVATE, APPLICATION = (
    LocalResourceVisibility.PUBLIC,
    LocalResourceVisibility.PRIVATE,
    LocalResourceVisibility.APPLICATION,
)
HOMES = {
    PUBLIC: "filecache",
    PRIVATE: "usercache/alice/filecache",
    APPLICATION: f"usercache/alice/appcache/{APP}/filecache",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "words.txt"
    file.write_text("hello\n")
    return file


def request(resource: LocalResource, number: int = 10) -> FetchResource:
    return FetchResource(1, container_id(1), "alice", APP, number, resource)


def resource(
    file: Path,
    visibility: LocalResourceVisibility = APPLICATION,
    kind: LocalResourceType = LocalResourceType.FILE,
    *,
    late_ms: int = 0,
) -> LocalResource:
    found = file.stat()
    return LocalResource(f"file:{file}", found.st_size, found.st_mtime_ns // 1_000_000 + late_ms, kind, visibility)


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.parametrize(
    ("visibility", "file_mode"), [(PUBLIC, 0o555), (PRIVATE, 0o500), (APPLICATION, 0o500)], ids=str
)
def test_a_copy_is_in_the_cache_of_its_visibility(
    visibility: LocalResourceVisibility,
    file_mode: int,
    directories: NodeDirectories,
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nm.localizer.fetch.is_public", lambda _, root: True)
    path, size_bytes = fetch(request(resource(source, visibility)), directories)
    assert path == f"{directories.local_dirs[0]}/{HOMES[visibility]}/10/words.txt"
    assert (Path(path).read_text(), size_bytes, mode(path)) == ("hello\n", 6, file_mode)


@pytest.mark.parametrize("timestamp_ms", [INT64_MAX, -INT64_MAX - 1])
def test_a_time_stamp_that_is_not_a_date_is_refused_as_any_other(
    directories: NodeDirectories, source: Path, timestamp_ms: int
) -> None:
    local = LocalResource(f"file:{source}", 6, timestamp_ms, LocalResourceType.FILE, APPLICATION)
    with pytest.raises(DownloadFailed, match="changed on src filesystem"):
        fetch(request(local), directories)


def test_a_file_that_changed_is_refused_with_all_three_times(directories: NodeDirectories, source: Path) -> None:
    os.utime(source, ns=(0, 1_234_567_890_123_000_000))
    with pytest.raises(DownloadFailed) as failed:
        fetch(request(resource(source, late_ms=1)), directories)
    assert failed.value.sentence.startswith(
        f"Resource file:{source} changed on src filesystem - expected: "
        '"2009-02-13T23:31:30.124+0000", was: "2009-02-13T23:31:30.123+0000", current time: "'
    )
    assert not list(Path(directories.local_dirs[0]).rglob("words.txt"))


def test_the_given_size_is_not_compared(directories: NodeDirectories, source: Path) -> None:
    """As in Hadoop, only the time counts (golden case "resource with a wrong size")."""
    given = resource(source)
    wrong = LocalResource(given.url, 999, given.timestamp_ms)
    assert fetch(request(wrong), directories)[1] == 6


def test_the_error_for_a_missing_file_names_it(directories: NodeDirectories, tmp_path: Path) -> None:
    missing = LocalResource(f"file://{tmp_path}/nothere.txt", 1, 0)
    with pytest.raises(DownloadFailed) as failed:
        fetch(request(missing), directories)
    sentence = f"File file:{tmp_path}/nothere.txt does not exist"
    assert (
        diagnostics(failed.value, missing, container_id(1))
        == f"{sentence}\njava.io.FileNotFoundException: {sentence}\n"
    )


def test_a_public_file_that_not_all_users_can_read_is_refused(directories: NodeDirectories, source: Path) -> None:
    source.chmod(0o640)
    given = resource(source, PUBLIC)
    with pytest.raises(DownloadFailed) as failed:
        fetch(request(given), directories)
    text = diagnostics(failed.value, given, container_id(1))
    assert text.endswith("is not publicly accessible and as such cannot be part of the public cache.")
    assert text.startswith(
        f"Failed to download resource {{ {{ file:{source}, {given.timestamp_ms}, FILE, null }},pending,"
    )


def test_a_public_file_must_be_readable_and_all_directories_above_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    file = inner / "f"
    file.write_text("x")
    for directory in (inner, inner.parent, *tmp_path.parents, tmp_path):
        if directory.stat().st_uid == os.getuid() and directory != Path("/"):
            directory.chmod(mode(directory) | 0o005)
    file.chmod(0o644)
    assert is_public(str(file))
    inner.parent.chmod(0o750)
    assert not is_public(str(file))


def test_an_archive_is_unpacked_to_a_directory_of_its_name(directories: NodeDirectories, tmp_path: Path) -> None:
    jar = make_jar(tmp_path)
    path, size_bytes = fetch(request(resource(jar, PRIVATE, LocalResourceType.ARCHIVE)), directories)
    assert path.endswith("/10/prog.jar")
    assert (mode(path), mode(f"{path}/lib"), mode(f"{path}/lib/a.txt")) == (0o700, 0o700, 0o500)
    assert size_bytes == 2
    assert not Path(path, "prog.jar").exists()


def test_a_pattern_keeps_the_jar_beside_its_content(directories: NodeDirectories, tmp_path: Path) -> None:
    jar = make_jar(tmp_path)
    path, _ = fetch(request(resource(jar, APPLICATION, LocalResourceType.PATTERN)), directories)
    assert sorted(str(p.relative_to(path)) for p in Path(path).rglob("*")) == ["lib", "lib/a.txt", "prog.jar"]
    assert Path(path, "prog.jar").read_bytes() == jar.read_bytes()


def test_an_archive_of_unknown_type_is_copied(directories: NodeDirectories, source: Path) -> None:
    path, _ = fetch(request(resource(source, APPLICATION, LocalResourceType.ARCHIVE)), directories)
    assert Path(path).read_text() == "hello\n"


def test_a_directory_is_copied_with_its_content(directories: NodeDirectories, tmp_path: Path) -> None:
    (tmp_path / "tree" / "sub").mkdir(parents=True)
    (tmp_path / "tree" / "sub" / "f").write_text("x")
    path, _ = fetch(request(resource(tmp_path / "tree")), directories)
    assert (Path(path) / "sub" / "f").read_text() == "x"
    assert mode(f"{path}/sub/f") == 0o500


def test_anything_but_a_regular_file_is_refused(directories: NodeDirectories, tmp_path: Path) -> None:
    """Devices and sockets are refused, because reading /dev/zero, for example, would never end."""
    zero = Path("/dev/zero")
    with pytest.raises(DownloadFailed, match="is not a regular file"):
        fetch(request(resource(zero)), directories)


def test_a_damaged_archive_leaves_no_files(directories: NodeDirectories, tmp_path: Path) -> None:
    broken = tmp_path / "broken.tgz"
    broken.write_text("this is no tgz\n")
    given = resource(broken, APPLICATION, LocalResourceType.ARCHIVE)
    with pytest.raises(DownloadFailed) as failed:
        fetch(request(given), directories)
    assert "not a readable tar archive" in failed.value.sentence
    assert not list(Path(directories.local_dirs[0]).rglob("10*"))


def test_a_full_disk_is_named(directories: NodeDirectories, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path and what to do, and not the descriptor below which the copy is written."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/proc/self/fd/9/10_tmp/words.txt")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(DownloadFailed) as failed:
        fetch(request(resource(source)), directories)
    home = f"{directories.local_dirs[0]}/{HOMES[APPLICATION]}"
    assert failed.value.sentence.endswith(f"No space left on device (free some space there): '{home}'")


def test_fetching_fails_if_all_disks_are_bad(directories: NodeDirectories, source: Path) -> None:
    directories.local_health = DirectoryHealth((), {directories.local_dirs[0]: "broken"}, {})
    with pytest.raises(DownloadFailed, match="No space available in any of the local directories"):
        fetch(request(resource(source)), directories)


def make_jar(directory: Path) -> Path:
    jar = directory / "prog.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("lib/a.txt", "a\n")
    return jar


def test_a_name_with_a_nul_does_not_exist(tmp_path: Path, directories: NodeDirectories) -> None:
    """The kernel accepts no path with a NUL."""
    with pytest.raises(DownloadFailed) as caught:
        fetch(request(LocalResource(f"file:{tmp_path}/a\0b", 1, 1, LocalResourceType.FILE, APPLICATION)), directories)
    assert caught.value.sentence == f"File file:{tmp_path}/a\0b does not exist"


def test_a_cache_that_has_become_a_link_is_not_filled(
    directories: NodeDirectories, source: Path, tmp_path: Path
) -> None:
    """A container of the application may have replaced the cache by a link."""
    fetch(request(resource(source)), directories)
    outside = tmp_path / "outside"
    outside.mkdir()
    cache = Path(directories.local_dirs[0]) / HOMES[APPLICATION]
    cache.rename(cache.with_name("aside"))
    cache.symlink_to(outside)
    with pytest.raises(DownloadFailed, match="symbolic link"):
        fetch(request(resource(source), 11), directories)
    assert os.listdir(outside) == []


@pytest.mark.parametrize("name", ["pipe", "pipe.zip"])
def test_a_pipe_is_refused_and_does_not_block_other_fetches(
    directories: NodeDirectories, tmp_path: Path, name: str
) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(DownloadFailed, match="is not a regular file"):
        fetch(request(resource(tmp_path / name, kind=LocalResourceType.ARCHIVE)), directories)


async def test_a_public_resource_of_another_file_system_fails_its_container_alone(directories: NodeDirectories) -> None:
    """The NodeManager ended with the exception of the diagnostics, which name the resource."""
    sent: list[Event] = []
    local = LocalResource("nosuch://nn/x", 1, 1, LocalResourceType.FILE, PUBLIC)
    async with asyncio.TaskGroup() as tasks:
        localizer = Localizer(directories, sent.append, 1, DEFAULT_LIMITS, NO_MOUNTS)
        localizer.use(tasks)
        localizer.fetch(request(local))
    (failed,) = sent
    assert isinstance(failed, ResourceFetchFailed)
    assert failed.diagnostics.endswith('No FileSystem for scheme "nosuch"')
