"""Limits the CPU of containers with cgroups.

A container's cgroup is made before its process starts; the process then moves itself into the cgroup, which is removed
after the container has ended. yarnling mounts nothing, and only the container's own process moves. So any user who can
write to the cgroup hierarchy can limit containers to their vcores, without being root. When a node starts, it tests
once with a real process whether that works.

The rules are those of CGroupsHandlerImpl, CGroupsCpuResourceHandlerImpl and CGroupsMountConfig.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import time
from collections.abc import Callable, Mapping

from msgspec import Struct

from nm.core.container_limits import (
    ContainerCpu,
    NodeCpu,
    container_cpu,
    files_of_version_1,
    files_of_version_2,
    node_quota,
    quota_files_of_version_1,
    quota_files_of_version_2,
)
from yarn.configuration import Configuration
from yarn.ids import ContainerId
from yarn.settings import nodemanager

MOUNTS = "/proc/mounts"
CONTROLLER = "cpu"
_CONTROLLERS = "cgroup.controllers"
_TEXT_MAX = 64 * 1024
PROCS = "cgroup.procs"
_SUBTREE = "cgroup.subtree_control"
_STALE_S = 60.0
"""The age from which an empty cgroup is taken for one that a killed NM left: a process enters a new
cgroup much sooner."""
_PROBE_S = 10.0

_logger = logging.getLogger(f"yarnling.{__name__}")


class CgroupsUnusable(Exception):
    """Containers cannot be limited to their vcores on this machine. The message names the reason and a remedy."""


class Mount(Struct, frozen=True):
    """The mount of the cpu controller: its path, and whether its files have the format of cgroup version 2."""

    path: str
    version_2: bool


class CgroupSettings(Struct, frozen=True):
    """Settings of cgroups: whether containers are limited to their vcores, and where cgroups are."""

    enabled: bool = False
    hierarchy: str = "hadoop-yarn"
    mount: bool = False
    mount_path: str = ""
    delete_delay_s: float = 0.02
    delete_timeout_s: float = 2.25

    @staticmethod
    def read(conf: Configuration) -> CgroupSettings:
        by_handler = nodemanager.RESOURCES_HANDLER.of(conf).rpartition(".")[2] == "CgroupsLCEResourcesHandler"
        timeout_ms = nodemanager.CGROUPS_DELETE_TIMEOUT.of(conf) + nodemanager.SLEEP_DELAY_BEFORE_SIGKILL.of(conf)
        return CgroupSettings(
            nodemanager.RESOURCE_CPU_ENABLED.of(conf) or by_handler,
            nodemanager.CGROUPS_HIERARCHY.of(conf).strip("/"),
            nodemanager.CGROUPS_MOUNT.of(conf),
            nodemanager.CGROUPS_MOUNT_PATH.maybe_of(conf) or "",
            nodemanager.CGROUPS_DELETE_DELAY.of(conf) / 1000,
            timeout_ms / 1000 + 1.0,
        )


def find_mount(settings: CgroupSettings, mounts_file: str = MOUNTS) -> Mount:
    """Find where the cpu controller is mounted: below the configured path, or in /proc/mounts.

    Raises CgroupsUnusable.
    """
    if settings.mount_path and not settings.mount:
        found = _below(settings.mount_path)
        where = settings.mount_path
    else:
        found = _of_mounts(read_text(mounts_file))
        where = mounts_file
    if found is None:
        hint = "yarnling does not mount cgroups; " if settings.mount else ""
        raise CgroupsUnusable(
            f"{where}: no cgroup with the cpu controller ({hint}mount one, or set "
            f"{nodemanager.RESOURCE_CPU_ENABLED.key} to false)"
        )
    return found


def _below(path: str) -> Mount | None:
    """The mount at `path`, which is a mount of version 2 or a directory with the mounts of version 1;
    None for others.
    """
    if _has_controller(path):
        return Mount(path, version_2=True)
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return None
    found = next((name for name in names if CONTROLLER in name.split(",")), None)
    return None if found is None else Mount(f"{path.rstrip('/')}/{found}", version_2=False)


def _of_mounts(text: str) -> Mount | None:
    """The mount of the cpu controller in a list of mounts, None if there is none.

    Version 1 is looked for first, as in Hadoop. A controller is never mounted in both versions.
    """
    rows = [fields for line in text.splitlines() if len(fields := line.split()) >= 4]
    for _, path, kind, options, *_ in rows:
        if kind == "cgroup" and CONTROLLER in options.split(","):
            return Mount(path, version_2=False)
    for _, path, kind, *_ in rows:
        if kind == "cgroup2" and _has_controller(path):
            return Mount(path, version_2=True)
    return None


def _has_controller(path: str) -> bool:
    return CONTROLLER in read_text(f"{path}/{_CONTROLLERS}").split()


def read_text(path: str) -> str:
    """Read a file; the text is empty if the file cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(_TEXT_MAX)
    except OSError:
        return ""


class CpuCgroups:
    """The cgroups of a node's containers, below `directory`.

    Raises CgroupsUnusable if the directory cannot be written.
    """

    def __init__(
        self,
        settings: CgroupSettings,
        node: NodeCpu,
        mount: Mount,
        *,
        remove: Callable[[str], None] = os.rmdir,
        probe: bool = True,
    ) -> None:
        self.directory = os.path.join(mount.path, settings.hierarchy)
        self._settings = settings
        self._node = node
        self._version_2 = mount.version_2
        self._remove = remove
        self._removing: dict[ContainerId, float] = {}
        self._made: set[ContainerId] = set()
        try:
            self._set_up(mount, probe=probe)
        except OSError as error:
            raise CgroupsUnusable(f"{error.filename}: {error.strerror} ({self._remedy()})") from error

    @staticmethod
    def open(conf: Configuration, node: NodeCpu) -> CpuCgroups | None:
        """The cgroups of a node, None if they are not configured.

        Raises CgroupsUnusable if they are configured but do not work.
        """
        settings = CgroupSettings.read(conf)
        if not settings.enabled:
            return None
        return CpuCgroups(settings, node, find_mount(settings))

    def enter(self, container_id: ContainerId, vcores: int, *, opportunistic: bool = False) -> str:
        """Make a container's cgroup.

        Returns the file to which the container's process writes its id to enter the cgroup.
        """
        path = self.path_of(container_id)
        self._removing.pop(container_id, None)
        self._made.add(container_id)
        _make(path)
        self._write(path, self._files(container_cpu(self._node, vcores, opportunistic=opportunistic)))
        return f"{path}/{PROCS}"

    def adopt(self, container_id: ContainerId) -> None:
        """Take over the cgroup that an earlier NM has made for a container, if there is one."""
        if os.path.isdir(self.path_of(container_id)):
            self._made.add(container_id)

    def change(self, container_id: ContainerId, vcores: int, *, opportunistic: bool = False) -> None:
        """Change the CPU share of a container; ignored if the container has no cgroup."""
        if container_id not in self._made:
            return
        try:
            cpu = container_cpu(self._node, vcores, opportunistic=opportunistic)
            self._write(self.path_of(container_id), self._files(cpu))
        except OSError as error:
            _logger.warning("cannot change the cgroup of container=%s: %s", container_id, error)

    def leave(self, container_id: ContainerId) -> None:
        """Remove a container's cgroup once the kernel has removed its last process, which may take a moment."""
        if container_id in self._made:
            self._made.discard(container_id)
            self._removing[container_id] = time.monotonic() + self._settings.delete_timeout_s
            self._try_remove(container_id)

    def close(self) -> None:
        """Remove the remaining cgroups when the node ends. The kernel keeps those that still have processes."""
        for container_id in [*self._made, *self._removing]:
            if not self._removed(self.path_of(container_id)):
                _logger.warning("gave up removing cgroup=%s: it still has processes", self.path_of(container_id))
        self._made.clear()
        self._removing.clear()

    def path_of(self, container_id: ContainerId) -> str:
        return f"{self.directory}/{container_id}"

    def _try_remove(self, container_id: ContainerId) -> None:
        deadline_s = self._removing.get(container_id)
        if deadline_s is None:
            return
        if self._removed(self.path_of(container_id)):
            del self._removing[container_id]
        elif time.monotonic() > deadline_s:
            del self._removing[container_id]
            _logger.warning("gave up removing cgroup=%s: it still has processes", self.path_of(container_id))
        else:
            delay_s = self._settings.delete_delay_s
            asyncio.get_running_loop().call_later(delay_s, self._try_remove, container_id)

    def _removed(self, path: str) -> bool:
        try:
            self._remove(path)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def _set_up(self, mount: Mount, *, probe: bool) -> None:
        _make(self.directory)
        if self._version_2:
            self._enable_controller(mount)
        self._write(self.directory, self._overall_files())
        self._sweep()
        if probe:
            self._probe()

    def _enable_controller(self, mount: Mount) -> None:
        """Enable the cpu controller for the containers' cgroups.

        Each level of the hierarchy must enable the controller for the next level.
        """
        levels = [mount.path]
        for part in self._settings.hierarchy.split("/"):
            levels.append(f"{levels[-1]}/{part}")
        for level in levels:
            if CONTROLLER not in read_text(f"{level}/{_SUBTREE}").split():
                self._write(level, {_SUBTREE: f"+{CONTROLLER}"})

    def _overall_files(self) -> dict[str, str]:
        """The cgroup files with the limit of all containers together, as {name: value}.

        If there is no limit, but an earlier NM left one, the files remove that limit.
        """
        quota = node_quota(self._node)
        if quota is not None:
            _logger.info("containers may use %g of %d cores", self._node.container_cores, self._node.cores)
            return quota_files_of_version_2(quota) if self._version_2 else quota_files_of_version_1(quota)
        name, none = ("cpu.max", "max") if self._version_2 else ("cpu.cfs_quota_us", "-1")
        before = read_text(f"{self.directory}/{name}").split()
        return {} if not before or before[0] == none else {name: none}

    def _sweep(self) -> None:
        """Remove cgroups that killed NMs left. The kernel does not remove cgroups that have processes."""
        for name in os.listdir(self.directory):
            path = f"{self.directory}/{name}"
            try:
                stale = name.startswith("container_") and time.time() - os.stat(path).st_mtime > _STALE_S
            except OSError:
                continue
            if stale:
                self._removed(path)

    def _probe(self) -> None:
        """Let a process enter a cgroup, as the process of a container does: file permissions do not
        prove that it can.
        """
        path = f"{self.directory}/probe_{os.getpid()}"
        _make(path)
        try:
            self._write(path, self._files(container_cpu(self._node, self._node.vcores)))
            command = ["/bin/bash", "-c", f'echo $$ > "{path}/{PROCS}"']
            tried = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_S, check=False)
            if tried.returncode != 0:
                raise PermissionError(0, "a process cannot enter this cgroup", path)
        finally:
            self._remove(path)

    def _files(self, cpu: ContainerCpu) -> dict[str, str]:
        return files_of_version_2(cpu) if self._version_2 else files_of_version_1(cpu)

    def _write(self, directory: str, files: Mapping[str, str]) -> None:
        for name, value in files.items():
            _write(f"{directory}/{name}", value)

    def _remedy(self) -> str:
        return (
            f"run as root, or have an administrator make {self.directory} yours, or set "
            f"{nodemanager.CGROUPS_HIERARCHY.key} to a cgroup that is yours, or "
            f"{nodemanager.RESOURCE_CPU_ENABLED.key} to false"
        )


def _make(path: str) -> None:
    """Create a cgroup and its missing parents."""
    os.makedirs(path, mode=0o755, exist_ok=True)


def _write(path: str, value: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, value.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    finally:
        os.close(descriptor)
