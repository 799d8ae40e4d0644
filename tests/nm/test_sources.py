"""The files that the URLs of resources stand for: local ones, and those of a mount table of Hadoop (viewfs)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nm.launcher.directories import NodeDirectories
from nm.localizer.fetch import diagnostics, fetch
from nm.localizer.sources import NO_MOUNTS, DownloadFailed, FileSource, Mounts, shown
from tests.nm.nodes import container_id
from tests.nm.test_fetch import PUBLIC, request
from yarn.configuration import Configuration
from yarn.containers import LocalResource

ROOT = "fs.viewfs.mounttable.yarnling.linkFallback"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the mount table, below a directory that only its owner may enter."""
    made = tmp_path / "private" / "the files"
    made.mkdir(parents=True)
    made.parent.chmod(0o700)
    made.chmod(0o755)
    return made


@pytest.fixture
def mounts(folder: Path) -> Mounts:
    return Mounts.read(Configuration.of({ROOT: folder.as_uri(), "fs.defaultFS": "viewfs://yarnling/"}, "core-site.xml"))


@pytest.mark.parametrize("url", ["nosuch://h/x", "hdfs://nn:8020/x", "http://h/x"])
def test_other_file_systems_are_refused_by_name(url: str) -> None:
    scheme = url.partition(":")[0]
    with pytest.raises(DownloadFailed, match=f'No FileSystem for scheme "{scheme}"') as failed:
        NO_MOUNTS.locate(url)
    assert failed.value.java_class == "org.apache.hadoop.fs.UnsupportedFileSystemException"
    text = diagnostics(failed.value, LocalResource(url, 1, 1, visibility=PUBLIC), container_id(1))
    assert text.startswith(f"Failed to download resource {{ {{ {url}, 1, FILE, null }},pending,")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("/a/b", "/a/b"),
        ("file:/a/../b", "/b"),
        ("file:/a%20b", "/a%20b"),
    ],
)
def test_urls_of_files(url: str, path: str) -> None:
    assert NO_MOUNTS.locate(url) == FileSource(path, "/", f"file:{path}")
    assert shown(url) == f"file:{path}"


@pytest.mark.parametrize(
    ("url", "inner"),
    [
        ("viewfs://yarnling/user/ann/job.jar", "/user/ann/job.jar"),
        ("/user/ann/job.jar", "/user/ann/job.jar"),
        ("viewfs://yarnling/a%20b", "/a%20b"),
        ("viewfs://yarnling/../../etc/passwd", "/etc/passwd"),
        ("viewfs://yarnling//etc/./x/..", "/etc"),
        ("viewfs://yarnling", "/"),
    ],
)
def test_a_path_of_a_mount_table_is_within_its_folder(mounts: Mounts, folder: Path, url: str, inner: str) -> None:
    path = str(folder) + inner.rstrip("/")
    assert mounts.locate(url) == FileSource(path, str(folder), f"viewfs://yarnling{inner}")


@pytest.mark.parametrize(
    ("url", "name"),
    [("viewfs://other/x", "other"), ("viewfs:///x", "default"), ("viewfs://yarnling:80/x", "yarnling:80")],
)
def test_other_mount_tables_are_refused_by_name(mounts: Mounts, url: str, name: str) -> None:
    """With the sentence of Hadoop's InodeTree."""
    with pytest.raises(DownloadFailed) as failed:
        mounts.locate(url)
    assert failed.value.sentence == f"ViewFs: Cannot initialize: Empty Mount table in config for viewfs://{name}/"


def test_a_link_that_leads_out_of_the_folder_is_refused(mounts: Mounts, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").touch()
    (folder / "out").symlink_to(tmp_path / "outside")
    (folder / "inner").mkdir()
    (folder / "link").symlink_to("inner")
    with pytest.raises(
        DownloadFailed, match=r"viewfs://yarnling/out/secret leads out .* \(name it as file:.*/secret\)"
    ):
        mounts.locate("viewfs://yarnling/out/secret")
    assert mounts.locate("viewfs://yarnling/link/x").path == f"{folder}/link/x"


@pytest.mark.parametrize(
    "links",
    [
        {"fs.viewfs.mounttable.a.linkFallback": "hdfs://nn/"},
        {"fs.viewfs.mounttable.a.link./x": "file:/x"},
        {"fs.viewfs.mounttable.a.linkFallback": "file:/x", "fs.viewfs.mounttable.a.link./data": "file:/y"},
    ],
)
def test_only_tables_that_are_a_local_folder_are_known(links: dict[str, str]) -> None:
    assert Mounts.read(Configuration.of({**links, "fs.defaultFS": "hdfs://nn/"}, "core-site.xml")) == NO_MOUNTS


def test_a_missing_file_is_named_as_by_the_file_system_below(
    mounts: Mounts, folder: Path, directories: NodeDirectories
) -> None:
    for name in ("gone", "a\0b"):
        with pytest.raises(DownloadFailed) as failed:
            fetch(request(LocalResource(f"viewfs://yarnling/{name}", 1, 1)), directories, mounts=mounts)
        assert failed.value.sentence == f"File file:{folder}/{name} does not exist"


@pytest.mark.parametrize("scheme", ["viewfs://yarnling", "file:{folder}"])
def test_a_public_resource_must_be_readable_up_to_the_root_of_the_table(
    mounts: Mounts,
    folder: Path,
    directories: NodeDirectories,
    scheme: str,
) -> None:
    """The cluster's own directory, above the root, is its owner's alone. Hadoop's clients ask only below the root."""
    job = folder / "tmp" / "job.jar"
    job.parent.mkdir(mode=0o755)
    job.write_text("x")
    job.chmod(0o644)
    url = f"{scheme.format(folder=folder)}/tmp/job.jar"
    resource = LocalResource(url, 1, os.stat(job).st_mtime_ns // 1_000_000, visibility=PUBLIC)
    path, size_bytes = fetch(request(resource), directories, mounts=mounts)
    assert (Path(path).name, size_bytes) == ("job.jar", 1)
    job.parent.chmod(0o700)
    with pytest.raises(DownloadFailed, match="is not publicly accessible"):
        fetch(request(resource, 11), directories, mounts=mounts)
