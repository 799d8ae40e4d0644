"""What an NM that was killed has left: processes that still run, directories that nobody will use again.

Hadoop's NM leaves the processes alone and they go on unseen. Here an NM ends them before it registers: the RM takes
a registering node for empty, and would fill it a second time.

Whose they are is told by the tag that a container's processes carry in their environment, CONTAINER_ID together with
HADOOP_TOKEN_FILE_LOCATION below one of this NM's directories: no other NM has it, and a process id that the kernel has
given away meanwhile has it neither. The directories belong to one NM at a time by a lock, so that a second NM, started
over the same directories by mistake, does not end the first one's containers.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from operator import attrgetter
from pathlib import Path

from nm.launcher.directories import FILECACHE, NM_PRIVATE, USERCACHE, is_below
from nm.launcher.processes import ProcessStat, all_processes, environment_of, kill_process
from yarn.errors import YarnException
from yarn.ids import ContainerId

LOCK = ".nm.lock"
_ROUNDS_MAX = 50
"""A process that forks while it is killed is found in the next round; one that outlives all is told."""
_ROUND_S = 0.02


class DirectoriesInUse(YarnException):
    """Another NM runs over one of the directories."""


def lock_directories(local_dirs: Iterable[str]) -> list[int]:
    """Take the directories for this process; the descriptors hold them until they are closed, at its death at last.

    Raises DirectoriesInUse, and takes none, if another process has one of them.
    """
    held: list[int] = []
    for directory in local_dirs:
        try:
            descriptor = os.open(f"{directory}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            # A disk that cannot be written: it is left out anyway.
            continue
        held.append(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            for locked in held:
                os.close(locked)
            raise DirectoriesInUse(
                f"yarn.nodemanager.local-dirs: another NodeManager runs over {directory} "
                "(stop it, or give this one directories of its own)"
            ) from None
    return held


def end_leftovers(local_dirs: Sequence[str]) -> list[ProcessStat]:
    """KILL every process of a container that ran in these directories; those that were found.

    Returns when none is left, or after a second: then some cannot be killed.
    """
    found: dict[tuple[int, int], ProcessStat] = {}
    for _ in range(_ROUNDS_MAX):
        # Parents first: one that saw its child killed would tell its master that the child has failed.
        alive = sorted(_tagged(local_dirs), key=attrgetter("started_ticks", "pid"))
        if not alive:
            break
        for process in alive:
            found[process.pid, process.started_ticks] = process
            kill_process(process)
        time.sleep(_ROUND_S)
    return list(found.values())


def begun_containers(local_dirs: Iterable[str]) -> tuple[ContainerId, ...]:
    """What an earlier NM had begun and not cleaned up, by what it kept of it, in the order of the ids."""
    begun: set[ContainerId] = set()
    for directory in local_dirs:
        for path in Path(directory, NM_PRIVATE).glob("application_*/container_*"):
            with suppress(YarnException):
                begun.add(ContainerId.parse(path.name))
    return tuple(sorted(begun))


def stale_paths(local_dirs: Iterable[str]) -> list[str]:
    """Move the caches and work directories of an earlier NM aside; what is to be deleted.

    (ResourceLocalizationService.cleanUpLocalDirs, ContainerManagerImpl without recovery.) A rename is quick, so the
    NM can register before the files are gone.
    """
    paths = []
    stamp = time.time_ns()
    for directory in local_dirs:
        try:
            names = os.listdir(directory)
        except OSError:
            continue
        for name in names:
            if name in (FILECACHE, USERCACHE, NM_PRIVATE):
                aside = f"{directory}/{name}_DEL_{stamp}"
                try:
                    os.rename(f"{directory}/{name}", aside)
                except OSError:
                    continue
                paths.append(aside)
            elif name.startswith((f"{FILECACHE}_DEL_", f"{USERCACHE}_DEL_", f"{NM_PRIVATE}_DEL_")):
                paths.append(f"{directory}/{name}")
    return paths


def _tagged(local_dirs: Sequence[str]) -> Iterator[ProcessStat]:
    for process in all_processes():
        variables = environment_of(process.pid)
        place = variables.get("HADOOP_TOKEN_FILE_LOCATION", "")
        if variables.get("CONTAINER_ID", "").startswith("container_") and any(
            is_below(place, directory) for directory in local_dirs
        ):
            yield process
