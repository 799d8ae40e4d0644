"""Limits of open files: a cluster raises the soft one, and does not start if the hard one is too low."""

from __future__ import annotations

import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from nm.pack.host import NodePack
from nm.shell.node_host import OneNode
from nm.shell.server import connections_max
from tests.processes import output_at_end, running
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.settings import nodemanager
from yarn.settings.yarnling import CLUSTER_SECRET_FILE, PACK
from yarnling.cluster import open_files
from yarnling.cluster.open_files import check_open_files

HANGS_S = 120
START = """
import sys
from pathlib import Path
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster
nodes, loopback, directory = int(sys.argv[1]), sys.argv[2] == "loopback", Path(sys.argv[3])
with LocalCluster(nodes, fast=True, options=ClusterOptions(loopback=loopback, directory=directory)) as cluster:
    print(len(cluster.wait_nodes(nodes)), "nodes")
"""


def start_with_limits(limits: tuple[int, int], nodes: int, kind: str, directory: Path) -> tuple[int, str, str]:
    """The exit status and the output of a process that starts a cluster with these limits of open files."""
    with running(
        *(sys.executable, "-X", "faulthandler", "-c", START, str(nodes), kind, str(directory)),
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_NOFILE, limits),
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        out, err = output_at_end(process, HANGS_S)
        return process.returncode, out, err


def test_a_cluster_that_may_open_too_few_files_is_refused_at_once(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    status, _, err = start_with_limits((300, 300), 2, "processes", directory)
    assert status == 1
    assert err.splitlines()[-1].endswith(
        "YarnException: a cluster with 2 nodes needs 472 file descriptors, and the limit is 300 (raise it: `ulimit -n "
        "472` as root, or nofile in /etc/security/limits.conf; or start fewer nodes, or more of them in a process: "
        "--pack)"
    )
    assert not directory.exists()


def test_a_cluster_raises_the_soft_limit(tmp_path: Path) -> None:
    status, out, err = start_with_limits((24, 2_000), 6, "loopback", tmp_path / "cluster")
    assert (status, out) == (0, "6 nodes\n"), err


@pytest.mark.parametrize(
    ("nodes", "processes", "in_process", "needed"),
    [
        (1, 1, False, 256 + 12 * 17),
        (200, 200, False, 256 + 12 * 216),
        (5000, 25, False, 256 + 12 * 41),
        (12, 12, True, 256 + 12 * 28 + 64 + 12 * 12),
    ],
)
def test_the_number_needed(
    monkeypatch: pytest.MonkeyPatch,
    nodes: int,
    processes: int,
    in_process: bool,
    needed: int,
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(open_files, "allow_descriptors", lambda number, *_, **__: asked.append(number))
    check_open_files(nodes, processes, in_process=in_process, proxies=False)
    assert asked == [needed]


def test_a_node_manager_needs_some_descriptors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 127))
    with pytest.raises(YarnException, match="a NodeManager needs 128 file descriptors, and the limit is 127"):
        OneNode(Configuration.of({}))
    values = {PACK.key: "200", nodemanager.HOSTNAME.key: "127.0.0.2", CLUSTER_SECRET_FILE.key: str(tmp_path / "s")}
    pack = Configuration.of(values)
    with pytest.raises(YarnException, match=r"with 200 nodes needs 456 file descriptors, .*; or make .*pack smaller\)"):
        NodePack(pack)


@pytest.mark.parametrize(("soft", "most"), [(128, 21), (1024, 170), (20_000, 170), (resource.RLIM_INFINITY, 170)])
def test_the_connections_to_a_node_leave_half_of_the_descriptors(
    monkeypatch: pytest.MonkeyPatch, soft: int, most: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    assert connections_max() == most
