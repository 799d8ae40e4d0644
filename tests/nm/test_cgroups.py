"""Cgroups in a directory that imitates the kernel's: which files are written and removed, and which
errors are raised.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from nm.core.container_limits import NodeCpu
from nm.launcher.cgroups import CgroupSettings, CgroupsUnusable, CpuCgroups, Mount, find_mount
from tests.nm.nodes import container_id
from tests.nm.waiting import until
from yarn.configuration import Configuration

SETTINGS = CgroupSettings(enabled=True, delete_delay_s=0.001)
CONTAINER = container_id(2)


class Kernel:
    """A mount whose directories can be removed although they have files, as the kernel's can, but not while `busy`."""

    def __init__(self, path: Path, *, version_2: bool = False) -> None:
        self.path = path
        self.mount = Mount(str(path), version_2)
        self.busy = False
        self.tries = 0
        if version_2:
            (path / "cgroup.subtree_control").write_text("cpuset memory")

    def remove(self, path: str) -> None:
        self.tries += 1
        if self.busy:
            raise OSError(errno.EBUSY, "Device or resource busy", path)
        if not os.path.isdir(path):
            raise FileNotFoundError(path)
        shutil.rmtree(path)

    def cgroups(self, node: NodeCpu, settings: CgroupSettings = SETTINGS) -> CpuCgroups:
        return CpuCgroups(settings, node, self.mount, remove=self.remove)

    def read(self, *parts: str) -> dict[str, str]:
        directory = self.path.joinpath("hadoop-yarn", *parts)
        return {file.name: file.read_text() for file in directory.iterdir() if file.is_file()}


def test_a_container_has_a_cgroup_of_its_own_with_its_weight(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    cgroups = kernel.cgroups(NodeCpu(8, 4))
    procs = cgroups.enter(CONTAINER, 2)
    assert procs == f"{tmp_path}/hadoop-yarn/{CONTAINER}/cgroup.procs"
    assert kernel.read(str(CONTAINER)) == {"cpu.shares": "2048"}
    assert kernel.read() == {}, "the node may use the whole machine"


def test_the_controller_of_version_2_is_enabled_at_every_level(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path, version_2=True)
    settings = replace(SETTINGS, hierarchy="hadoop-yarn/inner")
    cgroups = kernel.cgroups(NodeCpu(8, 4, 75, strict=True), settings)
    cgroups.enter(CONTAINER, 2)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu"
    assert kernel.read() == {"cgroup.subtree_control": "+cpu"}
    assert kernel.read("inner") == {"cgroup.subtree_control": "+cpu", "cpu.max": "1000000 333333"}
    assert kernel.read("inner", str(CONTAINER)) == {"cpu.weight": "200", "cpu.max": "750000 1000000"}


def test_a_limit_of_an_earlier_node_manager_is_removed(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    kernel.cgroups(NodeCpu(8, 4, 75))
    assert kernel.read() == {"cpu.cfs_period_us": "333333", "cpu.cfs_quota_us": "1000000"}
    kernel.cgroups(NodeCpu(8, 4))
    assert kernel.read()["cpu.cfs_quota_us"] == "-1"


def test_a_container_that_changes_its_size_changes_its_weight(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    cgroups = kernel.cgroups(NodeCpu(8, 4))
    cgroups.enter(CONTAINER, 1)
    cgroups.change(CONTAINER, 3)
    assert kernel.read(str(CONTAINER)) == {"cpu.shares": "3072"}
    cgroups.change(CONTAINER, 3, opportunistic=True)
    assert kernel.read(str(CONTAINER)) == {"cpu.shares": "2"}
    cgroups.change(container_id(3), 3)
    assert not (tmp_path / "hadoop-yarn" / str(container_id(3))).exists()


async def test_a_cgroup_is_removed_once_its_last_process_has_exited(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    cgroups = kernel.cgroups(NodeCpu(8, 4))
    path = Path(cgroups.enter(CONTAINER, 1)).parent
    kernel.busy, kernel.tries = True, 0
    cgroups.leave(CONTAINER)
    assert path.exists()
    await until(lambda: kernel.tries > 2, "it is tried again")
    kernel.busy = False
    await until(lambda: not path.exists(), "the cgroup is removed")


async def test_a_relaunched_container_keeps_its_cgroup(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    cgroups = kernel.cgroups(NodeCpu(8, 4))
    cgroups.enter(CONTAINER, 1)
    kernel.busy = True
    cgroups.leave(CONTAINER)
    cgroups.enter(CONTAINER, 1)
    other = container_id(3)
    cgroups.enter(other, 1)
    kernel.busy = False
    cgroups.leave(other)
    await until(lambda: not Path(cgroups.path_of(other)).exists(), "the other is removed")
    assert kernel.read(str(CONTAINER)) == {"cpu.shares": "1024"}


async def test_the_removal_of_a_cgroup_is_given_up_after_the_timeout(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kernel = Kernel(tmp_path)
    cgroups = kernel.cgroups(NodeCpu(8, 4), replace(SETTINGS, delete_timeout_s=0.0))
    cgroups.enter(CONTAINER, 1)
    kernel.busy = True
    cgroups.leave(CONTAINER)
    await until(lambda: "gave up removing cgroup" in caplog.text, "it is given up")
    assert str(CONTAINER) in caplog.text


def test_the_remaining_cgroups_are_removed_at_the_nodes_end(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    cgroups = kernel.cgroups(NodeCpu(8, 4))
    cgroups.enter(CONTAINER, 1)
    cgroups.close()
    assert list((tmp_path / "hadoop-yarn").iterdir()) == []


def test_cgroups_of_a_killed_node_are_removed_at_the_next_start(tmp_path: Path) -> None:
    """Young cgroups are kept: another node with the same hierarchy may be about to start a process in them."""
    kernel = Kernel(tmp_path)
    old, young = (kernel.path / "hadoop-yarn" / str(container_id(number)) for number in (4, 5))
    other = kernel.path / "hadoop-yarn" / "something-else"
    for path in (old, young, other):
        path.mkdir(parents=True)
    long_ago = time.time() - 3600
    for path in (old, other):
        os.utime(path, (long_ago, long_ago))
    kernel.cgroups(NodeCpu(8, 4))
    assert [path.exists() for path in (old, young, other)] == [False, True, True]


def test_the_error_names_reason_and_remedy_if_cgroups_cannot_be_made(tmp_path: Path) -> None:
    in_the_way = tmp_path / "hadoop-yarn"
    in_the_way.write_text("")
    with pytest.raises(CgroupsUnusable) as refused:
        Kernel(tmp_path).cgroups(NodeCpu(8, 4))
    assert str(refused.value) == (
        f"{in_the_way}: File exists (run as root, or have an administrator make {in_the_way} yours, or set "
        "yarn.nodemanager.linux-container-executor.cgroups.hierarchy to a cgroup that is yours, "
        "or yarn.nodemanager.resource.cpu.enabled to false)"
    )


def test_the_start_finds_out_if_a_process_cannot_enter_a_cgroup(tmp_path: Path) -> None:
    class Closed(CpuCgroups):
        """A directory that can be written, although the cgroup that a process would leave cannot."""

        def _write(self, directory: str, files: dict[str, str]) -> None:  # type: ignore[override]
            super()._write(directory, files)
            Path(directory, "cgroup.procs").mkdir(exist_ok=True)

    kernel = Kernel(tmp_path)
    with pytest.raises(CgroupsUnusable, match=r"probe_\d+: a process cannot enter this cgroup \(run as root"):
        Closed(SETTINGS, NodeCpu(8, 4), kernel.mount, remove=kernel.remove)
    assert not list((tmp_path / "hadoop-yarn").glob("probe_*"))


def test_cgroups_are_found_where_they_are_mounted(tmp_path: Path) -> None:
    unified = tmp_path / "unified"
    unified.mkdir()
    (unified / "cgroup.controllers").write_text("cpuset cpu io\n")
    mounts = tmp_path / "mounts"
    mounts.write_text(f"proc /proc proc rw 0 0\ncgroup2 {unified} cgroup2 rw 0 0\n")
    assert find_mount(SETTINGS, str(mounts)) == Mount(str(unified), version_2=True)
    with mounts.open("a") as file:
        file.write("cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0\n")
    assert find_mount(SETTINGS, str(mounts)) == Mount("/sys/fs/cgroup/cpu,cpuacct", version_2=False)


def test_cgroups_are_found_at_the_configured_path(tmp_path: Path) -> None:
    (tmp_path / "blkio").mkdir()
    (tmp_path / "cpu,cpuacct").mkdir()
    assert find_mount(replace(SETTINGS, mount_path=str(tmp_path))) == Mount(f"{tmp_path}/cpu,cpuacct", version_2=False)


def test_without_the_controller_the_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(CgroupsUnusable) as refused:
        find_mount(replace(SETTINGS, mount_path=str(tmp_path)))
    assert str(refused.value) == (
        f"{tmp_path}: no cgroup with the cpu controller "
        "(mount one, or set yarn.nodemanager.resource.cpu.enabled to false)"
    )
    empty = tmp_path / "mounts"
    empty.write_text("")
    with pytest.raises(CgroupsUnusable, match="yarnling does not mount cgroups"):
        find_mount(replace(SETTINGS, mount_path=str(tmp_path), mount=True), str(empty))


def test_either_of_hadoops_settings_enables_cgroups() -> None:
    def read(**values: str) -> CgroupSettings:
        return CgroupSettings.read(
            Configuration.of({f"yarn.nodemanager.{key}": value for key, value in values.items()})
        )

    assert read() == CgroupSettings()
    assert read(**{"resource.cpu.enabled": "true"}).enabled
    handler = "org.apache.hadoop.yarn.server.nodemanager.util.CgroupsLCEResourcesHandler"
    assert read(**{"linux-container-executor.resources-handler.class": handler}).enabled
    assert read(**{"linux-container-executor.cgroups.hierarchy": "/a/b/"}).hierarchy == "a/b"
