"""`yarnling up`: start a cluster, in the foreground with a live view, or detached with a supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Mapping

from rich.console import Console
from rich.live import Live

from yarn.errors import YarnException
from yarn.faults import ConfigurationException
from yarn.nodes import node_groups
from yarn.settings.resourcemanager import WEBAPP_ADDRESS
from yarnling.cli.config import print_key_notices
from yarnling.cli.options.cluster import UpOptions
from yarnling.cli.shared.arguments import reading_arguments
from yarnling.cli.shared.output import notices, print_json, terminal
from yarnling.cli.status import view_or_problem
from yarnling.cli.supervisor import (
    ClusterBroken,
    cluster_of,
    set_by_signals,
    start_detached,
    supervised,
    wait_for_end,
)
from yarnling.cluster.hadoop_clients import java_notice
from yarnling.cluster.local_cluster import LocalCluster
from yarnling.cluster.nodes import complaints
from yarnling.cluster.silent_logs import without_logs
from yarnling.cluster.snapshot import ClusterSnapshot, ClusterSummary, cluster_tables, overview
from yarnling.cluster.state import find_cluster, name_option
from yarnling.report.escapes import in_line
from yarnling.report.listing import cell

REFRESH_S = 0.5


def run(options: UpOptions) -> None:
    """Start the cluster. Raises UsageException for options that are wrong."""
    if options.detach:
        run_detached(options)
    else:
        run_foreground(options)


def run_detached(options: UpOptions) -> None:
    """Start the cluster under a supervisor process, and print where it is."""
    print_key_notices(_cluster(options).composed)
    with notices().status(_starting(options)):
        answer = start_detached(options)
    if "error" in answer:
        raise (ConfigurationException if answer.get("is_refused") else YarnException)(str(answer["error"]))
    _print_emulation(options)
    for complaint in answer["complaints"]:
        notices().print(in_line(complaint))
    state = find_cluster(options.name)
    if options.as_json:
        print_json(state)
        return
    named = name_option(options.name)
    console = terminal()
    are_up = f"{_node_managers(len(state.nodes))} {'is' if len(state.nodes) == 1 else 'are'} up"
    console.print(f"{are_up}; {_place(state.conf_dir, state.directory)}", soft_wrap=True)
    _print_web_address(console, state.addresses)
    _print_hadoop_clients(options, console)
    console.print(f"Show it: yarnling status{named}   Stop it: yarnling down{named}")


def run_foreground(options: UpOptions) -> None:
    """Run the cluster until Ctrl-C and show it; with --json its state is printed, and all else on standard error."""
    cluster = _cluster(options)
    print_key_notices(cluster.composed)
    asyncio.run(_run(options, cluster, notices() if options.as_json else terminal()))


def _cluster(options: UpOptions) -> LocalCluster:
    """The cluster, not started. Raises UsageException for wrong numbers, and options that exclude one another."""
    with reading_arguments(), without_logs():
        return cluster_of(options)


async def _run(options: UpOptions, cluster: LocalCluster, console: Console) -> None:
    async with contextlib.AsyncExitStack() as stack:
        with console.status(_starting(options)):
            state = await stack.enter_async_context(supervised(options, cluster))
        _print_emulation(options)
        stop = set_by_signals()
        if options.as_json:
            print_json(state)
        console.print(f"Ready. {_place(state.conf_dir, state.directory)}", soft_wrap=True)
        _print_web_address(console, state.addresses)
        _print_hadoop_clients(options, console)
        console.print("Press Ctrl-C to stop it.")
        async with asyncio.TaskGroup() as tasks:
            showing = tasks.create_task(_show(cluster, options.name, console))
            try:
                broken = await wait_for_end(cluster, stop)
            finally:
                showing.cancel()
        if broken is not None:
            raise ClusterBroken(broken)
        console.print("Stopping ...")
    console.print("All processes have exited.")


async def _show(cluster: LocalCluster, name: str, console: Console) -> None:
    """Show a live view on a terminal; otherwise print a line for each change."""
    if not console.is_terminal:
        await _print_changes(cluster, name, console)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            started_s = time.monotonic()
            view = await view_or_problem(cluster.client, name, overview)
            live.update(cell(view, "red") if isinstance(view, str) else cluster_tables(view), refresh=True)
            await asyncio.sleep(max(REFRESH_S, time.monotonic() - started_s))


async def _print_changes(cluster: LocalCluster, name: str, console: Console) -> None:
    before: frozenset[str] = frozenset()
    while True:
        started_s = time.monotonic()
        view = await view_or_problem(cluster.client, name, overview)
        lines = [view] if isinstance(view, str) else _lines(view)
        for line in lines:
            if line not in before:
                console.print(in_line(line))
        before = frozenset(lines)
        await asyncio.sleep(max(REFRESH_S, time.monotonic() - started_s))


def _lines(view: ClusterSnapshot | ClusterSummary) -> list[str]:
    if isinstance(view, ClusterSummary):
        nodes = [f"{count} nodes {state}" for state, count in view.counts().items()] + view.exceptions()
    else:
        nodes = [f"node {node.node_id} {view.state_of(node)}" for node in view.nodes]
        nodes += complaints(node_groups(view.nodes))
    return nodes + [f"{app.application_id} {app.user} {app.queue} {app.state.name}" for app in view.applications]


def _print_emulation(options: UpOptions) -> None:
    """Print a notice that containers are emulated: their commands produce no output."""
    if options.emulate is not None:
        notices().print(in_line(f"Containers are emulated by the table {options.emulate}: commands do not run."))


def _print_web_address(console: Console, addresses: Mapping[str, str]) -> None:
    """Print the address of the ResourceManager's web services, if they are on."""
    for key, address in addresses.items():
        if key.partition(WEBAPP_ADDRESS.key)[1] and not address.endswith(":0"):
            whose = key.removeprefix(WEBAPP_ADDRESS.key).replace(".", " of ")
            console.print(f"Web pages, REST API, JMX and metrics{whose}: http://{address}/cluster", soft_wrap=True)


def _print_hadoop_clients(options: UpOptions, console: Console) -> None:
    """Print how Hadoop's own clients find the cluster, and a notice about the Java of containers."""
    if not options.hadoop:
        return
    if notice := java_notice(os.environ):
        notices().print(in_line(notice))
    console.print(f'For Hadoop\'s own clients: eval "$(yarnling env{name_option(options.name)})"', soft_wrap=True)


def _starting(options: UpOptions) -> str:
    return f"starting {_node_managers(options.nodes)}"


def _node_managers(count: int) -> str:
    return f"{count} NodeManager{'' if count == 1 else 's'}"


def _place(conf_dir: str, directory: str) -> str:
    return in_line(f"HADOOP_CONF_DIR={conf_dir}, files in {directory}")
