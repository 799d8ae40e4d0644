"""A cluster's directory: one cluster at a time, and state that is kept until the user discards it."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.processes import running
from yarn.errors import InvalidArgumentException, YarnException
from yarn.settings import resourcemanager, yarnling
from yarnling.cluster import processes
from yarnling.cluster.daemons import ClusterDaemons
from yarnling.cluster.directory import STATE_STORE, ClusterDirectory, DirectoryInUse
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster
from yarnling.cluster.processes import LOCK_FILE

RECOVERY = {resourcemanager.RECOVERY_ENABLED.key: "true"}
HOLDER = """
import sys
from pathlib import Path
from yarnling.cluster.directory import ClusterDirectory
ClusterDirectory.make(Path(sys.argv[1]), "da")
print("held", flush=True)
sys.stdin.read()
"""

Open = Callable[..., ClusterDaemons]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Open a cluster's directory as LocalCluster does, without starting any daemon."""
    clusters: list[ClusterDaemons] = []

    def open_(*, name: str = "", discard_state: bool = False, **settings: str) -> ClusterDaemons:
        given = {key.replace("_", "."): value for key, value in settings.items()}
        daemons = ClusterDaemons(None, RECOVERY | given, {}, nodes=1, racks=1, loopback=True, name=name)
        try:
            daemons.open(tmp_path / "cluster", discard_state=discard_state)
        except YarnException:
            daemons.release_directory()
            raise
        clusters.append(daemons)
        return daemons

    yield open_
    for cluster in clusters:
        cluster.release_directory()


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_a_second_cluster_is_refused_and_changes_nothing(opened: Open, tmp_path: Path) -> None:
    opened(name="da")
    directory = tmp_path / "cluster"
    for name in (STATE_STORE, f"{STATE_STORE}-wal", "conf/yarn-site.xml", "conf/excluded-hosts"):
        (directory / name).write_text(f"of the first, {name}")
    before = contents(directory)
    for discard in (False, True):
        message = rf"{directory}: in use by the cluster 'da', process {os.getpid()} \(end it: yarnling down --name da; "
        with pytest.raises(DirectoryInUse, match=message):
            opened(name="db", discard_state=discard)
    assert contents(directory) == before


def test_the_process_is_named_when_the_cluster_has_no_name(opened: Open) -> None:
    opened()
    with pytest.raises(DirectoryInUse, match=rf"in use by a cluster of process {os.getpid()} \("):
        opened()


def test_a_directory_is_free_when_its_cluster_has_ended(opened: Open, tmp_path: Path) -> None:
    opened(name="da").release_directory()
    opened(name="db")
    assert stat.S_IMODE((tmp_path / "cluster" / LOCK_FILE).stat().st_mode) == 0o600


def test_a_directory_is_free_when_its_process_was_killed_and_children_do_not_hold_it(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    # Popen returns when the child has executed its program: from then on it does not have the lock's descriptor.
    code = HOLDER.replace('print("held"', "import subprocess; subprocess.Popen(['sleep', '600'])\nprint(\"held\"")
    with running(
        sys.executable,
        "-c",
        code,
        str(directory),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(DirectoryInUse, match=f"'da', process {holder.pid} "):
            ClusterDirectory.make(directory, "db")
        os.kill(holder.pid, 9)
        holder.wait()
        ClusterDirectory.make(directory, "db").release()


@pytest.mark.parametrize("content", [b"", b"[]", b"[" * 9000, b'{"pid": "x"}', b'{"pid": 1, "name": "\\u001b[2J"}'])
def test_the_content_of_a_lock_file_is_not_trusted(opened: Open, tmp_path: Path, content: bytes) -> None:
    opened(name="da")
    (tmp_path / "cluster" / LOCK_FILE).write_bytes(content)
    with pytest.raises(DirectoryInUse, match=r"in use by a(nother)? cluster.* \(end it, or name another directory\)"):
        opened()


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / LOCK_FILE).symlink_to(tmp_path / "mine")
    with pytest.raises(YarnException, match="a cluster cannot keep its files there"):
        ClusterDirectory.make(tmp_path / "cluster", "da")
    assert (tmp_path / "mine").read_text() == "precious"


def with_state(opened: Open, tmp_path: Path) -> bytes:
    """Make the state of a cluster with recovery that has ended, and return its secret."""
    opened().release_directory()
    (tmp_path / "cluster" / STATE_STORE).write_text("applications")
    (tmp_path / "cluster" / f"{STATE_STORE}-wal").write_text("more applications")
    (tmp_path / "cluster" / "conf" / "excluded-hosts").write_text("127.0.0.2\n")
    return (tmp_path / "cluster" / "cluster-secret").read_bytes()


def test_recovery_resumes_from_the_store_and_the_secret(opened: Open, tmp_path: Path) -> None:
    secret = with_state(opened, tmp_path)
    opened()
    assert (tmp_path / "cluster" / STATE_STORE).read_text() == "applications"
    assert (tmp_path / "cluster" / f"{STATE_STORE}-wal").read_text() == "more applications"
    assert (tmp_path / "cluster" / "cluster-secret").read_bytes() == secret
    # The new cluster has all its nodes, also those that were decommissioned before.
    assert (tmp_path / "cluster" / "conf" / "excluded-hosts").read_text() == ""


def test_discarding_starts_over(opened: Open, tmp_path: Path) -> None:
    secret = with_state(opened, tmp_path)
    (tmp_path / "cluster" / "queues").mkdir()
    opened(discard_state=True)
    assert not (tmp_path / "cluster" / "queues").exists()
    assert not list((tmp_path / "cluster").glob(f"{STATE_STORE}*"))
    assert (tmp_path / "cluster" / "cluster-secret").read_bytes() != secret


def test_without_recovery_state_of_an_earlier_cluster_is_neither_deleted_nor_ignored(
    opened: Open, tmp_path: Path
) -> None:
    with_state(opened, tmp_path)
    before = contents(tmp_path / "cluster")
    off = {resourcemanager.RECOVERY_ENABLED.key.replace(".", "_"): "false"}
    message = re.escape(
        f"{tmp_path / 'cluster' / STATE_STORE}: has the applications of an earlier cluster (resume them with "
        "--recovery, delete them with --discard-state, or name another directory; in Python: settings "
        "yarn.resourcemanager.recovery.enabled=true, or discard_state=True)"
    )
    with pytest.raises(YarnException, match=message):
        opened(**off)
    assert contents(tmp_path / "cluster") == before
    opened(discard_state=True, **off)


def test_a_store_outside_of_the_directory_is_left_to_the_user(opened: Open, tmp_path: Path) -> None:
    store = tmp_path / "elsewhere.sqlite"
    store.write_text("applications")
    named = {yarnling.STATE_STORE_FILE.key: str(store)}
    daemons = ClusterDaemons(None, RECOVERY | named, {}, nodes=1, racks=1, loopback=True)
    with pytest.raises(YarnException, match=rf"{store}: is outside of the cluster's directory \(delete it yourself"):
        daemons.open(tmp_path / "cluster", discard_state=True)
    daemons.release_directory()
    daemons.open(tmp_path / "cluster")
    daemons.release_directory()
    assert store.read_text() == "applications"


def test_discarding_needs_a_directory() -> None:
    with pytest.raises(InvalidArgumentException, match=r"discard_state = True: .* \(name the directory"):
        LocalCluster(options=ClusterOptions(discard_state=True))


def test_orphans_of_a_dead_cluster_are_ended_first(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old ResourceManager would still write to the store, and its containers would run twice."""
    monkeypatch.setattr(processes, "ORPHAN_GRACE_S", 0.01)
    directory = tmp_path / "cluster"
    opened().release_directory()
    ClusterDirectory.make(directory / "nested").release()
    wait = "import time; time.sleep(600)"
    daemon = (sys.executable, "-c", wait, "-m", "yarnling.cluster.fork_server", "8", str(directory))
    nested = {"LOCAL_DIRS": f"{directory}/nested/nm-1/local/usercache", "PATH": os.environ["PATH"]}
    own = {"LOCAL_DIRS": f"{directory}/nm-1/local/usercache", "PATH": os.environ["PATH"]}
    with (
        running(*daemon) as fork_server,
        running("sleep", "600", env=own) as container,
        running("sleep", "600", env=nested) as of_another_cluster,
    ):
        opened()
        assert (fork_server.wait(), container.wait()) == (-9, -9)
        assert of_another_cluster.poll() is None
