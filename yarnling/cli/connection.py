"""The way from a command to a cluster that is up: its state file, and a client made after it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from wire.hadoop_xml import load_configuration
from yarn.errors import YarnException
from yarn.ids import ApplicationId
from yarnling.cli.terminal import notices
from yarnling.cluster.client import Client
from yarnling.cluster.directory import ClusterDirectory
from yarnling.cluster.state import ClusterState, NoCluster, find_cluster, name_option, read_state

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
    _tells = True
    _told_of_rm = False

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

    async def kill(self, app_id: ApplicationId | str, diagnostics: str = "") -> None:
        if not self._has_gone:
            await super().kill(app_id, diagnostics)

    def _look_after_cluster(self) -> None:
        assert self._task is not None
        if self._state.supervisor.process() is None:
            self._has_gone = True
            self._task.cancel()
        else:
            self._tell_if_rm_is_down()
            self._look = asyncio.get_running_loop().call_later(LOOK_S, self._look_after_cluster)

    def _tell_if_rm_is_down(self) -> None:
        """It may be killed and started again while a command waits; the client then goes on."""
        if self._state.rm.process() is not None:
            self._told_of_rm = False
            return
        with suppress(NoCluster):
            self._state = read_state(self._state.name)
        if self._state.rm.process() is None and self._tells and not self._told_of_rm:
            self._told_of_rm = True
            notices().print(f"{ResourceManagerDown.of(self._state).message}; this waits for it")


class ResourceManagerDown(YarnException):
    """The cluster is there, and its ResourceManager is not."""

    @staticmethod
    def of(state: ClusterState) -> ResourceManagerDown:
        log_file = ClusterDirectory(Path(state.directory), temporary=False).log_file("rm")
        return ResourceManagerDown(
            f"the ResourceManager of the cluster {state.name!r} is down "
            f"(start it again: yarnling restart-rm{name_option(state.name)}; its log: {log_file})"
        )


def connect(name: str, user: str = "", *, tells: bool = True) -> tuple[ClusterState, Client]:
    """The cluster called `name`, and a client of `user` ("" is who runs this).

    `tells`: on standard error, that it waits for a ResourceManager which has ended meanwhile.

    Raises NoCluster, and ResourceManagerDown: Hadoop's clients would try for a quarter of an hour.
    """
    state = find_cluster(name)
    if state.rm.process() is None:
        raise ResourceManagerDown.of(state)
    client = CommandClient.of(state, user)
    client._tells = tells
    return state, client
