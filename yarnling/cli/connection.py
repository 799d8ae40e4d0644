"""The way from a command to a cluster that is up: its state file, and a client made after it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from wire.hadoop_xml import load_configuration
from yarn.ids import ApplicationId
from yarnling.client import Client
from yarnling.cluster_directory import ClusterDirectory
from yarnling.cluster_state import ClusterState, NoCluster, find_cluster

LOOK_S = 0.2
"""Between two looks whether the cluster is still up."""


class CommandClient(Client):
    """A client that gives up with its cluster.

    Hadoop's clients try for a quarter of an hour to reach a ResourceManager, for it may come back. A cluster whose
    supervisor has gone does not: what is done in the client's context is cancelled then, and it raises NoCluster.
    """

    _state: ClusterState
    _task: asyncio.Task[object] | None = None
    _look: asyncio.TimerHandle | None = None
    _has_gone = False

    @staticmethod
    def of(state: ClusterState, user: str = "") -> CommandClient:
        client = CommandClient(
            state.addresses,
            user=user,
            conf=load_configuration(Path(state.conf_dir)),
            log_dirs=[Path(path) for node in state.nodes for path in node.log_dirs],
            staging_root=ClusterDirectory(Path(state.directory), temporary=False).staging,
        )
        client._state = state
        return client

    async def __aenter__(self) -> CommandClient:
        self._task = asyncio.current_task()
        self._look_after_cluster()
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._task is not None, "left once, after it was entered"
        if self._look is not None:
            self._look.cancel()
        await super().__aexit__(*exc)
        if self._has_gone:
            self._task.uncancel()
            raise NoCluster(f"the cluster {self._state.name!r} has ended meanwhile") from None

    async def kill(self, app_id: ApplicationId, diagnostics: str = "") -> None:
        if not self._has_gone:
            await super().kill(app_id, diagnostics)

    def _look_after_cluster(self) -> None:
        assert self._task is not None
        if self._state.supervisor.process() is None:
            self._has_gone = True
            self._task.cancel()
        else:
            self._look = asyncio.get_running_loop().call_later(LOOK_S, self._look_after_cluster)


def connect(name: str, user: str = "") -> tuple[ClusterState, Client]:
    """The cluster called `name`, and a client of `user` ("" is who runs this). Raises NoCluster."""
    state = find_cluster(name)
    return state, CommandClient.of(state, user)
