"""Mission case D3 on real processes: containers limited to their vcores, or a node that reports why it cannot."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from nm.core.container_limits import NodeCpu
from nm.launcher.cgroups import CgroupsUnusable, CpuCgroups
from tests.cluster.applications import shell, wait_tasks
from tests.cluster.conftest import QUICK, Yarnling, eventually
from yarn.configuration import Configuration
from yarn.ids import ContainerId
from yarn.resource import Resource
from yarnling.cluster.blocking import BlockingClient
from yarnling.cluster.containers import processes_of
from yarnling.cluster.local_cluster import LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.case("D3")]

CGROUPS = "yarn.nodemanager.linux-container-executor.cgroups"
HIERARCHY = "yarnling-tests"
HELD = {
    **QUICK,
    # A node on a busy machine is slow, not dead: if it expired, its containers would start again elsewhere.
    "yarn.nm.liveness-monitor.expiry-interval-ms": "600000",
    "yarn.nodemanager.resource.cpu.enabled": "true",
    f"{CGROUPS}.hierarchy": f"/{HIERARCHY}",
    "yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
}
STRICT = {**HELD, f"{CGROUPS}.strict-resource-usage": "true"}

SPIN = """\
import pathlib, sys, time
go, seconds = pathlib.Path(sys.argv[1]), float(sys.argv[2])
while not go.exists():
    time.sleep(0.01)
start, used = time.monotonic(), time.process_time()
while time.monotonic() < start + seconds:
    pass
print((time.process_time() - used) / (time.monotonic() - start))
"""
"""Spins for some seconds once `go` exists, and prints the share of a CPU that it got."""

SPIN_UNTIL = """\
import os, pathlib, sys
stop, cpu = pathlib.Path(sys.argv[1]), int(sys.argv[2])
os.sched_setaffinity(0, {cpu})
while not stop.exists():
    pass
"""
"""Spins on one CPU until `stop` exists."""


@pytest.fixture
def cgroups() -> Iterator[CpuCgroups]:
    """The cgroups, none of which may be left at the end. Skips the test, with the reason, if they cannot be written."""
    try:
        opened = CpuCgroups.open(Configuration.of(STRICT), NodeCpu(8, 2))
    except CgroupsUnusable as refused:
        pytest.skip(f"no cgroup can be written here: {refused}")
    assert opened is not None
    yield opened
    eventually(lambda: not [name for name in os.listdir(opened.directory) if name.startswith("container_")])
    Path(opened.directory).rmdir()


def python(script: str, *arguments: object, folder: Path) -> str:
    """The shell command that runs the Python script in place of the shell."""
    path = folder / "script.py"
    path.write_text(script)
    return f"exec {shlex.join([sys.executable, str(path), *map(str, arguments)])}"


def cgroups_of(container_id: ContainerId) -> set[str]:
    """The cgroups below our hierarchy that contain the container's processes."""
    rows = {
        row for process in processes_of(container_id) for row in Path(f"/proc/{process.pid}/cgroup").read_text().split()
    }
    return {path for row in rows if (path := row.split(":", 2)[2]).startswith(f"/{HIERARCHY}/")}


def kernel_share(cgroups: CpuCgroups, container_id: ContainerId) -> float:
    """The cores that the container may use by the kernel's files; on a busy machine it gets less."""
    directory = Path(cgroups.path_of(container_id))
    if (directory / "cpu.max").exists():
        quota, period = (directory / "cpu.max").read_text().split()
    else:
        quota, period = ((directory / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
    return int(quota) / int(period)


def cpu_seconds(container_id: ContainerId) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes_of(container_id))


def share_of(client: BlockingClient, container_id: ContainerId) -> float:
    logs = client.logs(container_id.application_id)
    (text,) = [log.text() for log in logs if (log.container_id, log.name) == (container_id, "stdout")]
    return float(text)


def test_with_strict_usage_a_container_is_limited_to_its_vcores(cgroups: CpuCgroups, tmp_path: Path) -> None:
    """A vcore of eight is an eighth of the machine's cores, however idle they are."""
    cores = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    spin = python(SPIN, tmp_path / "go", 3, folder=tmp_path)
    with LocalCluster(1, memory_mb=2048, vcores=8, settings=STRICT, fast=True) as cluster:
        client = cluster.client
        report = client.start(shell(spin, 1, resource=Resource(128, 1)))
        (task,) = wait_tasks(client, report, 1)
        eventually(lambda: cgroups_of(task.container_id) == {f"/{HIERARCHY}/{task.container_id}"})
        assert kernel_share(cgroups, task.container_id) == pytest.approx(cores / 8, rel=0.001)
        (tmp_path / "go").touch()
        client.wait(report.application_id, timeout_s=60)
        assert share_of(client, task.container_id) < cores / 8 * 1.4
        eventually(lambda: not Path(cgroups.path_of(task.container_id)).exists())


@pytest.mark.usefixtures("cgroups")
def test_without_strict_usage_vcores_are_weights(tmp_path: Path) -> None:
    """Two containers on the same CPU share it one to four.

    What they got is read while both spin, and until it is enough to tell: other work on the machine takes time
    from both, and the shares stay as they are.
    """
    (cpu, *_) = os.sched_getaffinity(0)
    spin = python(SPIN_UNTIL, tmp_path / "stop", cpu, folder=tmp_path)
    with LocalCluster(1, memory_mb=2048, vcores=8, settings=HELD, fast=True) as cluster:
        client = cluster.client
        both = [client.start(shell(spin, 1, resource=Resource(128, vcores))) for vcores in (1, 4)]
        tasks = [wait_tasks(client, report, 1)[0].container_id for report in both]
        eventually(lambda: all(cpu_seconds(task) > 0.1 for task in tasks))
        before = [cpu_seconds(task) for task in tasks]

        def used() -> list[float]:
            return [cpu_seconds(task) - earlier for task, earlier in zip(tasks, before, strict=True)]

        eventually(lambda: sum(used()) > 2)
        one, four = used()
        (tmp_path / "stop").touch()
        for report in both:
            client.wait(report.application_id, timeout_s=60)
        assert 2.5 < four / one < 6.0


def test_a_node_without_usable_cgroups_reports_the_reason(yarnling: Yarnling, tmp_path: Path) -> None:
    """The reason and a remedy are printed when the cluster starts, in its status, in the node's
    report and in its log.
    """
    nowhere = tmp_path / "cgroup"
    nowhere.mkdir()
    define = ["-D", "yarn.nodemanager.resource.cpu.enabled=true", "-D", f"{CGROUPS}.mount-path={nowhere}"]
    up = yarnling("up", "--nodes", "2", "--fast", "--detach", *define)
    assert up.returncode == 0, up.stderr
    report = (
        f"RUNNING: containers are not limited to their vcores: {nowhere}: no cgroup with the cpu controller "
        "(mount one, or set yarn.nodemanager.resource.cpu.enabled to false)"
    )
    try:
        assert report in up.stderr
        assert up.stderr.count("not limited to their vcores") == 1, "all nodes report the same"
        status = yarnling("status")
        assert report in " ".join(status.stdout.split())
        nodes = json.loads(yarnling("status", "--json").stdout)["nodes"]
        assert [node["health"]["healthy"] for node in nodes] == [True, True]
        assert all(node["health"]["report"] in report for node in nodes)
        ran = yarnling("run", "echo here")
        assert ran.returncode == 0
    finally:
        assert yarnling("down").returncode == 0
