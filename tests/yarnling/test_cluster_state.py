"""State files: private, and valid only for the process that wrote them."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from msgspec import structs

from yarn.errors import YarnException
from yarnling.cli.options.cluster import UpOptions
from yarnling.cli.supervisor import cluster_of, supervised
from yarnling.cluster.local_cluster import LocalCluster
from yarnling.cluster.state import (
    ClusterState,
    NoCluster,
    NodeEntry,
    ProcessIdentity,
    UnreadableState,
    check_free,
    find_cluster,
    known_clusters,
    name_held,
    read_state,
    state_directory,
    state_path,
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def state(name: str = "default", supervisor: ProcessIdentity | None = None) -> ClusterState:
    here = ProcessIdentity.of(os.getpid())
    node = NodeEntry(1, "nm-1", "127.0.0.2:4711", here, ("/logs",))
    return ClusterState(
        name, supervisor or here, here, "/cluster", False, "/cluster/conf", {"a": "127.0.0.1:1"}, (node,), 0.05
    )


def test_a_state_file_is_private_and_read_back() -> None:
    state().write()
    assert find_cluster("default") == state()
    assert stat.S_IMODE(state_path("default").stat().st_mode) == 0o600


def test_without_a_runtime_directory_the_file_is_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state_directory() == tmp_path / ".cache" / "yarnling"


def test_a_missing_file_says_how_to_start_a_cluster() -> None:
    with pytest.raises(NoCluster, match=r"no cluster 'mine' is up \(start one: yarnling up --detach --name mine\)"):
        find_cluster("mine")


def test_a_reused_process_id_is_stale() -> None:
    """The start time shows that another process has the id."""
    earlier = structs.replace(ProcessIdentity.of(os.getpid()), started=1.0)
    state(supervisor=earlier).write()
    with pytest.raises(NoCluster, match=r"was killed \(yarnling down cleans up after it\)"):
        find_cluster("default")
    # The files of that cluster can still be found.
    assert read_state("default").supervisor == earlier


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 1}', "\x00", '{"version": 99}'])
def test_an_unreadable_state_file_is_reported(content: str) -> None:
    state().write()
    state_path("default").write_text(content)
    with pytest.raises(NoCluster, match=r"default\.json"):
        read_state("default")
    # Its cluster may be up, so another one must not replace it.
    with pytest.raises(UnreadableState):
        check_free("default")


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 65])
def test_names_must_be_usable_as_file_names(name: str) -> None:
    with pytest.raises(YarnException, match="--name"):
        state_path(name)


def test_a_cluster_removes_only_its_own_file() -> None:
    mine = state()
    state(supervisor=structs.replace(mine.supervisor, pid=1)).write()
    mine.remove()
    assert state_path("default").exists()
    mine.write()
    mine.remove()
    assert not state_path("default").exists()


def test_known_clusters_leave_out_broken_files(home: Path) -> None:
    state("one").write()
    state("two", ProcessIdentity(os.getpid(), 1.0)).write()
    (home / "yarnling" / "three.json").write_text(json.dumps({}))
    assert [found.name for found in known_clusters()] == ["one", "two"]


def test_one_process_at_a_time_can_start_a_cluster_of_a_name(home: Path) -> None:
    with name_held("mine"):
        with pytest.raises(YarnException, match="'mine' is being started"), name_held("mine"):
            pass
        with name_held("other"):
            pass
    with name_held("mine"):
        pass
    assert not list((home / "yarnling").iterdir())


def test_an_unwritable_directory_is_refused_with_a_fitting_remedy(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "yarnling").write_text("a file")
    message = (
        rf"^{home}/yarnling: cannot keep the cluster's state: .* \(XDG_RUNTIME_DIR names it: set it to a directory"
    )
    with pytest.raises(YarnException, match=message), name_held("mine"):
        pass
    with pytest.raises(YarnException, match=message):
        check_free("mine")
    monkeypatch.setenv("HOME", str(home / "yarnling"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "missing"))
    message = (
        rf"^XDG_RUNTIME_DIR = {home}/missing cannot be written to, and {home}/yarnling/.cache/yarnling: cannot keep"
    )
    with pytest.raises(YarnException, match=message):
        check_free("mine")
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    with pytest.raises(YarnException, match=r"\(set XDG_RUNTIME_DIR to a directory that you can write to\)"):
        check_free("mine")


async def test_nothing_starts_if_the_control_socket_cannot_be_bound(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalCluster, "__aenter__", lambda self: pytest.fail("a cluster is started"))
    (home / "yarnling" / "mine.sock").mkdir(parents=True)
    options = UpOptions(name="mine")
    with pytest.raises(YarnException, match="cannot keep the cluster's state: Is a directory"):
        async with supervised(options, cluster_of(options)):
            pass
