"""Where a machine's cgroups are, and what a configuration says of them (CGroupsHandlerImpl, CGroupsMountConfig)."""

from __future__ import annotations

import os

from msgspec import Struct

from yarn.configuration import Configuration
from yarn.settings import nodemanager

MOUNTS = "/proc/mounts"
CONTROLLER = "cpu"
_CONTROLLERS = "cgroup.controllers"
_TEXT_MAX = 64 * 1024


class CgroupsUnusable(Exception):
    """Containers cannot be held to their vcores here; the text says why, and what would help."""


class Mount(Struct, frozen=True):
    """Where the cpu controller is, and whether its files are those of version 2."""

    path: str
    version_2: bool


class CgroupSettings(Struct, frozen=True):
    """Whether CPU is to be held at all, and where cgroups are."""

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
    """Where the cpu controller is mounted: below the configured path, or as /proc/mounts tells."""
    if settings.mount_path and not settings.mount:
        found = _below(settings.mount_path)
        where = settings.mount_path
    else:
        found = _of_mounts(read_text(mounts_file))
        where = mounts_file
    if found is None:
        asked = "yarnling mounts none itself; " if settings.mount else ""
        raise CgroupsUnusable(
            f"{where}: no cgroup with the cpu controller ({asked}mount one, or set "
            f"{nodemanager.RESOURCE_CPU_ENABLED.key} to false)"
        )
    return found


def _below(path: str) -> Mount | None:
    """A path that holds a directory for each controller of version 1, or is a mount of version 2."""
    if _has_controller(path):
        return Mount(path, version_2=True)
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return None
    found = next((name for name in names if CONTROLLER in name.split(",")), None)
    return None if found is None else Mount(f"{path.rstrip('/')}/{found}", version_2=False)


def _of_mounts(text: str) -> Mount | None:
    """Version 1 first, as Hadoop 3.4.1 knows it: where both are mounted, the controller is in one of them."""
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
    """The file's text; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(_TEXT_MAX)
    except OSError:
        return ""
