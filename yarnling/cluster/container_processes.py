"""The processes that a container runs, found by the variable that YARN gives each of them."""

from __future__ import annotations

from pathlib import Path

import psutil

from yarn.ids import ContainerId
from yarnling.cluster.processes import descendants


def processes_of(container_id: ContainerId, below: int | None = None) -> list[psutil.Process]:
    """Those of the container, of all there are or of the descendants of process `below` (a cluster's fork server)."""
    wanted = f"CONTAINER_ID={container_id}".encode()
    processes = psutil.process_iter() if below is None else descendants(below)
    return [process for process in processes if wanted in _environment(process)]


def _environment(process: psutil.Process) -> list[bytes]:
    """Its variables as it was started; none if it has gone."""
    try:
        return Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
