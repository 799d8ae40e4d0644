"""The cluster's secret: no other user may read it."""

from __future__ import annotations

import getpass
import os
import stat
from pathlib import Path

import pytest

from wire.cluster_secret import SECRET_BYTES, read_client_token, read_cluster_secret, write_cluster_secret
from wire.tokens import ClientTokenSecretManager
from yarn.configuration import Configuration
from yarn.errors import AccessControlException, YarnException

KEY = "yarn.yarnling.cluster-secret-file"
OPEN = "yarn.yarnling.open-to-local-users"


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
    with pytest.raises(
        YarnException, match=f"{KEY} is not set: without a secret any local user could register nodes or run"
    ):
        read_cluster_secret(Configuration())


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(YarnException, match=f"{KEY} = .*secret: No such file"):
        read_cluster_secret(_conf(tmp_path / "secret"))


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    write_cluster_secret(path)
    path.chmod(0o644)
    with pytest.raises(YarnException, match=r"mode 0644 lets other users read it .chmod 0600"):
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


def test_a_client_that_reads_the_secret_has_a_token_of_the_cluster(tmp_path: Path) -> None:
    write_cluster_secret(tmp_path / "secret")
    token = read_client_token(_conf(tmp_path / "secret"))
    ClientTokenSecretManager((tmp_path / "secret").read_bytes()).check(token)
    assert (tmp_path / "secret").read_bytes() not in (token.identifier, token.password) if token else False


def test_a_client_whose_configuration_names_no_secret_has_no_token() -> None:
    assert read_client_token(Configuration()) is None


def test_a_client_of_a_cluster_that_is_gone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(YarnException, match=r"secret: No such file or directory .use the configuration of a running"):
        read_client_token(_conf(tmp_path / "secret"))


def _refuse_to_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)


def test_a_client_of_another_users_cluster_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cluster_secret(tmp_path / "secret")
    _refuse_to_open(monkeypatch)
    with pytest.raises(
        AccessControlException,
        match=f"secret: Permission denied: only the user {getpass.getuser()} and root may use this cluster .*{OPEN}",
    ):
        read_client_token(_conf(tmp_path / "secret"))


def test_a_client_of_another_users_open_cluster_needs_no_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cluster_secret(tmp_path / "secret")
    _refuse_to_open(monkeypatch)
    assert read_client_token(_conf(tmp_path / "secret").overridden({OPEN: "true"})) is None


def test_a_secret_that_is_a_pipe_does_not_hang_the_client(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "secret", 0o600)
    with pytest.raises(YarnException, match="0 bytes, must be 16 to 4096"):
        read_client_token(_conf(tmp_path / "secret"))
