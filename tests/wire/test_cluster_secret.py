"""The cluster's secret: nobody else may know it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from wire.cluster_secret import SECRET_BYTES, read_cluster_secret, write_cluster_secret
from yarn.configuration import Configuration
from yarn.errors import YarnException

KEY = "yarn.yarnling.cluster-secret-file"


def _conf(path: Path) -> Configuration:
    return Configuration.of({KEY: str(path)})


def test_a_secret_is_read_as_written_and_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    write_cluster_secret(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(read_cluster_secret(_conf(path))) == SECRET_BYTES


def test_a_secret_is_never_replaced(tmp_path: Path) -> None:
    write_cluster_secret(tmp_path / "secret")
    with pytest.raises(FileExistsError):
        write_cluster_secret(tmp_path / "secret")


def test_a_daemon_without_a_secret_is_refused() -> None:
    with pytest.raises(YarnException, match=f"{KEY} is not set: without it anybody could register a node"):
        read_cluster_secret(Configuration())


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(YarnException, match=f"{KEY} = .*secret: No such file"):
        read_cluster_secret(_conf(tmp_path / "secret"))


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    write_cluster_secret(path)
    path.chmod(0o644)
    with pytest.raises(YarnException, match=r"mode 0644 lets others read it .chmod 0600"):
        read_cluster_secret(_conf(path))


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    write_cluster_secret(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(YarnException, match="link: Too many levels of symbolic links"):
        read_cluster_secret(_conf(tmp_path / "link"))


@pytest.mark.parametrize("size", [0, 15, 4097])
def test_a_secret_has_a_sound_length(tmp_path: Path, size: int) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"x" * size)
    path.chmod(0o600)
    with pytest.raises(YarnException, match=f"{size if size <= 4096 else 4097} bytes, must be 16 to 4096"):
        read_cluster_secret(_conf(path))
