"""The supervisor of a cluster of `yarnling up`: starts the cluster, writes its state file, serves commands, and ends
it.

In the foreground, the supervisor is the process of the command. With `--detach` it is a process in the background:

    python -m yarnling.cli.supervisor READY-FD OPTIONS      OPTIONS: a JSON object of UpOptions

This process writes one JSON line: {"ready": true, "complaints": [...]} when the cluster is ready, or {"error": "...",
"is_refused": true if the configuration is} if it could not be started. The complaints are the health reports of nodes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from yarn.errors import YarnException
from yarn.faults import ConfigurationException
from yarn.settings import FAST_TIME_FACTOR, yarnling
from yarnling.cli.options.cluster import UpOptions
from yarnling.cluster.commands import ClusterCommands
from yarnling.cluster.control_socket import bound_socket, serving_commands
from yarnling.cluster.directory import ClusterDirectory
from yarnling.cluster.launcher import LOG_FILE as FORK_SERVER_LOG
from yarnling.cluster.launcher import PROJECT, log_ends
from yarnling.cluster.local_cluster import ClusterOptions, LocalCluster
from yarnling.cluster.nodes import complaints
from yarnling.cluster.processes import ProcessIdentity
from yarnling.cluster.state import (
    ClusterState,
    NodeEntry,
    control_path,
    end_log_path,
    name_taken,
    write_end,
    write_private,
)

WEB_PORT = 8088
"""Hadoop's port of the ResourceManager's web services; the next free one is used if it is taken."""


def cluster_of(options: UpOptions) -> LocalCluster:
    """The cluster, not started. Raises YarnException for wrong numbers, and options that exclude one another."""
    return LocalCluster(
        options.nodes,
        memory_mb=options.memory,
        vcores=options.vcores,
        conf=None if options.conf is None else options.conf.absolute(),
        settings=options.settings,
        fast=options.fast,
        hadoop=options.hadoop,
        options=ClusterOptions(
            racks=options.racks,
            rms=options.rms,
            pack=options.pack,
            directory=None if options.directory is None else options.directory.absolute(),
            discard_state=options.discard_state,
            web=options.web,
            web_port=WEB_PORT,
            control_socket=control_path(options.name),
            name=options.name,
            emulated=False if options.emulate is None else options.emulate,
            hadoop_classpath=options.hadoop_classpath,
            log_warnings=False,
            network_faults=options.network_faults,
            failure_log=end_log_path(options.name),
        ),
    )


class ClusterBroken(YarnException):
    """All processes of the cluster have ended unexpectedly."""


@contextlib.asynccontextmanager
async def supervised(options: UpOptions, cluster: LocalCluster) -> AsyncIterator[ClusterState]:
    """Keep the cluster of the options up, with its state file and control socket, while the context is open."""
    # The socket is bound before anything starts, so that an unusable path is reported at once.
    with name_taken(options.name), bound_socket(control_path(options.name)) as listener:
        async with cluster:
            state = state_of(options, cluster)
            state.write()
            try:
                commands = ClusterCommands(options.name, cluster, lambda: state_of(options, cluster).write())
                async with serving_commands(listener, commands.execute):
                    yield state
            except ClusterBroken as broken:
                logs = _note_end(options.name, cluster.directory, broken.message)
                raise ClusterBroken(f"{broken.message} (its logs: {logs})") from None
            except Exception as error:
                _note_end(options.name, cluster.directory, f"{type(error).__name__}: {error}")
                raise
            finally:
                state.remove()


def set_by_signals() -> asyncio.Event:
    """An event that is set by SIGTERM, SIGINT and SIGHUP from now on."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    # A closed terminal sends SIGHUP; nohup ignores it.
    hangup = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    for number in (signal.SIGTERM, signal.SIGINT, *hangup):
        loop.add_signal_handler(number, stop.set)
    return stop


def _note_end(name: str, directory: ClusterDirectory, reason: str) -> str:
    """Leave a note for later commands of why the cluster ended. Returns the path of the cluster's logs.

    The end of logs that are deleted with the cluster is kept.
    """
    files = (directory.path / FORK_SERVER_LOG, *sorted(directory.logs.glob("rm*.log")))
    logs = f"{files[0]}, {directory.logs}"
    with contextlib.suppress(OSError):
        if directory.temporary:
            logs = str(end_log_path(name))
            write_private(end_log_path(name), log_ends(files))
        write_end(name, reason, logs)
    return logs


async def wait_for_end(cluster: LocalCluster, stop: asyncio.Event) -> str | None:
    """Wait until `stop` is set or all processes have ended. Returns the reason in the second case, else None.

    The end of a single daemon is ignored, because the daemon can be restarted.
    """
    async with asyncio.TaskGroup() as tasks:
        stopped = tasks.create_task(stop.wait())
        broken = tasks.create_task(cluster.wait_broken())
        await asyncio.wait((stopped, broken), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        broken.cancel()
    return None if stop.is_set() else broken.result()


def state_of(options: UpOptions, cluster: LocalCluster) -> ClusterState:
    """The content of the state file for the cluster."""
    return ClusterState(
        options.name,
        ProcessIdentity.of(os.getpid()),
        ProcessIdentity.of_one_that_may_be_gone(cluster.rm.pid),
        str(cluster.directory.path),
        cluster.directory.temporary,
        str(cluster.directory.conf),
        cluster.addresses,
        _entries(cluster, options),
        FAST_TIME_FACTOR if options.fast else float(options.settings.get(yarnling.TIME_FACTOR.key, "1")),
        tuple(ProcessIdentity.of_one_that_may_be_gone(rm.pid) for rm in cluster.rms if rm is not cluster.rm),
    )


def _entries(cluster: LocalCluster, options: UpOptions) -> tuple[NodeEntry, ...]:
    pids = {node.daemon.pid for node in cluster.nodes}
    processes = {pid: ProcessIdentity.of_one_that_may_be_gone(pid) for pid in pids}
    return tuple(
        NodeEntry(
            node.place.number,
            node.name,
            str(node.id),
            processes[node.daemon.pid],
            tuple(str(path) for path in cluster.log_dirs_of(node)),
            options.network_faults and cluster.has_network_fault(node.place.number),
        )
        for node in cluster.nodes
    )


async def _keep(options: UpOptions, report: Callable[[dict[str, object]], None]) -> None:
    cluster = cluster_of(options)
    async with supervised(options, cluster):
        stop = set_by_signals()
        report({"ready": True, "complaints": complaints(await cluster.client.node_groups())})
        if (reason := await wait_for_end(cluster, stop)) is not None:
            raise ClusterBroken(reason)


def main(arguments: list[str]) -> int:
    ready_fd = int(arguments[0])

    def report(line: dict[str, object]) -> None:
        os.write(ready_fd, json.dumps(line).encode() + b"\n")
        os.close(ready_fd)

    options = msgspec.json.decode(arguments[1], type=UpOptions, dec_hook=lambda kind, text: kind(text))
    try:
        asyncio.run(_keep(options, report))
    except (YarnException, OSError) as error:
        with contextlib.suppress(OSError):
            report({"error": str(error), "is_refused": isinstance(error, ConfigurationException)})
        return 1
    return 0


def start_detached(options: UpOptions) -> dict[str, Any]:
    """Start a supervisor in the background. Returns its JSON line when the cluster is ready or has failed."""
    reader, writer = os.pipe()
    text = msgspec.json.encode(options, enc_hook=str).decode()
    command = [sys.executable, "-P", "-m", "yarnling.cli.supervisor", str(writer), text]
    path = os.pathsep.join(part for part in (str(PROJECT), os.environ.get("PYTHONPATH")) if part)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[writer],
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )
    os.close(writer)
    with os.fdopen(reader) as pipe:
        try:
            line = pipe.readline()
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            raise
    # The supervisor outlives this process. Popen must not warn that nobody waits for it.
    process.returncode = 0
    return dict(json.loads(line)) if line else {"error": "the supervisor ended without reporting an error"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
