"""Kills that look at every process of the machine."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace

from yarnling.cluster_daemons import ClusterDaemons
from yarnling.launcher import Daemon


async def test_the_loop_goes_on_while_a_node_is_killed() -> None:
    daemon, seen = Daemon("nm-1", Path("nm-1.log"), pid=7), threading.Event()

    def kill(whom: Daemon, *, descendants: bool) -> None:
        assert (whom, descendants) == (daemon, True)
        assert seen.wait(5), "the loop stands still"
        daemon.exited.set()

    played = SimpleNamespace(node=lambda number: SimpleNamespace(daemon=daemon), launcher=SimpleNamespace(kill=kill))
    asyncio.get_running_loop().call_soon(seen.set)
    await ClusterDaemons.kill_pack(played, 1, containers=True)  # type: ignore[arg-type]
