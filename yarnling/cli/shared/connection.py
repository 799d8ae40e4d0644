"""Connects a command to a running cluster: reads its state file, and makes a client of its ResourceManager."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from wire.files.hadoop_xml import load_configuration
from yarn.errors import YarnException
from yarn.ids import ApplicationId
from yarnling.cli.shared.output import notices
from yarnling.cluster.client import Client
from yarnling.cluster.directory import ClusterDirectory
from yarnling.cluster.state import ClusterState, NoCluster, find_cluster, name_option, read_state

POLL_S = 0.2
"""The interval, in seconds, at which the client checks whether the cluster is still up."""


class CommandClient(Client):
    """A client that gives up when its cluster stops.

    Hadoop's clients retry for a quarter of an hour, because a ResourceManager may come back. A cluster whose supervisor
    has exited does not come back. In that case the task inside the client's context is cancelled, and the context
    raises NoCluster.
    """

    _state: ClusterState
    _task: asyncio.Task[object] | None = None
    _next_check: asyncio.TimerHandle | None = None
    _cluster_is_gone = False
    _reports_waiting = True
    _rm_down_reported = False

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
        self._check_cluster()
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._task is not None, "exited once, after it was entered"
        if self._next_check is not None:
            self._next_check.cancel()
        await super().__aexit__(*exc)
        if self._cluster_is_gone:
            self._task.uncancel()
            raise NoCluster(f"the cluster {self._state.name!r} has stopped in the meantime") from None

    async def kill(self, app_id: ApplicationId | str, diagnostics: str = "") -> None:
        if not self._cluster_is_gone:
            await super().kill(app_id, diagnostics)

    def _check_cluster(self) -> None:
        assert self._task is not None
        if self._state.supervisor.process() is None:
            self._cluster_is_gone = True
            self._task.cancel()
        else:
            self._report_if_rm_is_down()
            self._next_check = asyncio.get_running_loop().call_later(POLL_S, self._check_cluster)

    def _report_if_rm_is_down(self) -> None:
        """Report that the ResourceManager is down, once for each time that it goes down.

        The ResourceManager may be restarted while a command waits; the command then continues.
        """
        if not self._state.rm_is_down:
            self._rm_down_reported = False
            return
        with suppress(NoCluster):
            self._state = read_state(self._state.name)
        if self._state.rm_is_down and self._reports_waiting and not self._rm_down_reported:
            self._rm_down_reported = True
            notices().print(f"{ResourceManagerDown.of(self._state).message}; waiting for it")


class ResourceManagerDown(YarnException):
    """The cluster is up, but its ResourceManager is not."""

    @staticmethod
    def of(state: ClusterState) -> ResourceManagerDown:
        log_file = ClusterDirectory(Path(state.directory), temporary=False).log_file("rm")
        return ResourceManagerDown(
            f"the ResourceManager of the cluster {state.name!r} is down "
            f"(restart it: yarnling restart-rm{name_option(state.name)}; its log: {log_file})"
        )


def connect(name: str, user: str = "", *, report_waiting: bool = True) -> tuple[ClusterState, Client]:
    """Find the cluster called `name`, and make a client that acts as `user` ("" is the user who runs this process).

    If `report_waiting`, a line is printed to standard error when the client waits for a ResourceManager that has gone
    down. Raises NoCluster. Raises ResourceManagerDown at once if the RM is down, where Hadoop's clients would retry for
    a quarter of an hour.
    """
    state = find_cluster(name)
    if state.rm_is_down:
        raise ResourceManagerDown.of(state)
    client = CommandClient.of(state, user)
    client._reports_waiting = report_waiting
    return state, client
