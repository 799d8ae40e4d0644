"""A daemon that only prints its arguments; `probe.mode` makes it misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable

from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarnling.cluster.processes import thread_count


def open_files() -> list[str]:
    """The kinds or paths of the open files, without the file that was open for listing them."""
    found = []
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/self/fd/{fd}").split(":")[0])
    return found


async def serve(conf: Configuration, ready: Callable[[dict[str, object]], None]) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    mode = conf.get("probe.mode", "")
    sys.stdout.write(f"mode {mode}\n")
    if mode == "refuse":
        raise YarnException("port 80 is not for you (take another)")
    if mode == "die":
        return 3
    if mode == "deaf":
        loop.remove_signal_handler(signal.SIGTERM)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    facts: dict[str, object] = {
        "pid": os.getpid(),
        "session": os.getsid(0),
        "threads": thread_count(),
        "files": open_files(),
        "variable": os.environ.get("PROBE"),
        "memory_mb": conf.get("yarn.nodemanager.resource.memory-mb"),
    }
    if mode == "parent":
        # A process in a session of its own whose parent is this one, with a directory of the cluster: a container.
        given = {**os.environ, "LOG_DIRS": os.environ.get("PROBE", "") + "/container"}
        child = subprocess.Popen(["sleep", "1000"], env=given, start_new_session=True)  # noqa: ASYNC220
        facts["child"] = child.pid
    ready(facts)
    await stop.wait()
    return 0
