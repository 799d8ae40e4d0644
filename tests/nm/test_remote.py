"""Resources of other file systems, which fsspec downloads; here from a bucket in memory."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from nm.launcher.directories import NodeDirectories
from nm.localizer.fetch import fetch
from nm.localizer.remote import RemoteFile, remote_file
from nm.localizer.sources import UNSUPPORTED, DownloadFailed
from tests.nm.test_fetch import APPLICATION, PUBLIC, make_jar, mode, request
from yarn.containers import LocalResource
from yarn.states import LocalResourceType, LocalResourceVisibility

pytest.importorskip("fsspec")
from fsspec.implementations.memory import MemoryFileSystem


class Bucket(MemoryFileSystem):  # type: ignore[misc]
    """A store whose files have times, unless the scheme is http."""

    store: dict[str, Any] = {}  # noqa: RUF012
    pseudo_dirs = [""]  # noqa: RUF012

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.partition("://")[2] if "://" in path else path.rstrip("/")


class Timeless(Bucket):
    def modified(self, path: str) -> datetime:
        raise NotImplementedError


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    drivers = importlib.import_module("fsspec.registry")._registry
    monkeypatch.setitem(drivers, "s3a", Bucket)
    monkeypatch.setitem(drivers, "http", Timeless)
    yield Bucket()
    Bucket.store.clear()


def resource(
    bucket: Bucket,
    url: str,
    visibility: LocalResourceVisibility = APPLICATION,
    kind: LocalResourceType = LocalResourceType.FILE,
) -> LocalResource:
    path = Bucket._strip_protocol(url)
    modified_ms = int(bucket.modified(path).timestamp() * 1000)
    return LocalResource(url, 1, modified_ms, kind, visibility)


@pytest.mark.parametrize("visibility", [PUBLIC, APPLICATION])
def test_a_file_of_another_file_system_is_copied(
    bucket: Bucket, directories: NodeDirectories, visibility: LocalResourceVisibility
) -> None:
    bucket.pipe("/data/a b.txt", b"hello\n")
    path, size_bytes = fetch(request(resource(bucket, "s3a://data/a b.txt", visibility)), directories)
    assert (Path(path).name, Path(path).read_text(), size_bytes) == ("a b.txt", "hello\n", 6)
    assert not list(Path(directories.local_dirs[0]).rglob("10_*")), "nothing else is left"


def test_an_archive_of_another_file_system_is_unpacked(
    bucket: Bucket, directories: NodeDirectories, tmp_path: Path
) -> None:
    bucket.pipe("/data/prog.jar", make_jar(tmp_path).read_bytes())
    wanted = resource(bucket, "s3a://data/prog.jar", kind=LocalResourceType.ARCHIVE)
    path, _ = fetch(request(wanted), directories)
    assert (Path(path, "lib", "a.txt").read_text(), mode(path)) == ("a\n", 0o700)


def test_a_directory_of_another_file_system_is_copied(bucket: Bucket, directories: NodeDirectories) -> None:
    bucket.pipe("/data/tree/sub/f", b"x")
    path, _ = fetch(request(LocalResource("s3a://data/tree", 1, 0)), directories)
    assert Path(path, "sub", "f").read_text() == "x"


def test_a_file_system_without_times_has_the_time_0(bucket: Bucket, directories: NodeDirectories) -> None:
    """As Hadoop's for http."""
    bucket.pipe("/host/x", b"x")
    path, _ = fetch(request(LocalResource("http://host/x", 1, 0)), directories)
    assert Path(path).read_text() == "x"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s3a://data/gone", "File s3a://data/gone does not exist"),
        ("s3a://data/changed", "Resource s3a://data/changed changed on src filesystem"),
        ("s3a://data/x::file:///etc/passwd", "has `::`, which is not supported"),
    ],
)
def test_a_file_that_cannot_be_fetched_is_named(
    bucket: Bucket, directories: NodeDirectories, url: str, message: str
) -> None:
    bucket.pipe("/data/changed", b"x")
    with pytest.raises(DownloadFailed, match=message):
        fetch(request(LocalResource(url, 1, 1)), directories)
    assert not list(Path(directories.local_dirs[0]).rglob("10*"))


def test_an_error_of_a_driver_fails_the_resource(
    bucket: Bucket, directories: NodeDirectories, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: object, **__: object) -> None:
        raise RuntimeError("403 Forbidden")

    bucket.pipe("/data/x", b"x")
    wanted = resource(bucket, "s3a://data/x")
    monkeypatch.setattr(Bucket, "get", denied)
    with pytest.raises(DownloadFailed, match="s3a://data/x: RuntimeError: 403 Forbidden"):
        fetch(request(wanted), directories)


def test_without_fsspec_a_scheme_is_refused_by_name_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(DownloadFailed) as failed:
        RemoteFile("s3a://data/x")
    assert failed.value.java_class == UNSUPPORTED
    assert failed.value.sentence.startswith("No FileSystem for scheme \"s3a\" (pip install 'yarnling[fsspec]'")


def test_without_a_driver_a_scheme_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ossfs", None)
    with pytest.raises(DownloadFailed, match=r'No FileSystem for scheme "oss": .*ossfs'):
        RemoteFile("oss://data/x")


@pytest.mark.parametrize("url", ["file:/x", "/x", "viewfs://yarnling/x", "nosuch://h/x", "memory://x", "python:x"])
def test_other_schemes_are_not_given_to_fsspec(url: str) -> None:
    assert remote_file(url) is None
