"""`yarnling up`: a cluster in the foreground with a live view, or left behind with a supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time

from rich.console import Console
from rich.live import Live

from yarn.errors import YarnException
from yarnling.cli import json_form
from yarnling.cli.key_notices import tell_of_keys
from yarnling.cli.terminal import cell, in_line, notices, terminal
from yarnling.cli.views import ClusterView, cluster_view, look_or_problem
from yarnling.cluster.local_cluster import LocalCluster
from yarnling.cluster.nodes import complaints
from yarnling.cluster.state import find_cluster, name_option
from yarnling.cluster.supervisor import (
    ClusterBroken,
    UpOptions,
    check_free,
    set_by_signals,
    start_detached,
    supervised,
    wait_for_end,
)

__all__ = ["UpOptions", "run_detached", "run_foreground"]

REFRESH_S = 0.5


def run_detached(options: UpOptions, *, as_json: bool) -> None:
    """Start the cluster, leave it to a supervisor and say where it is."""
    check_free(options.name)
    tell_of_keys(options.conf, options.settings)
    with notices().status(_starting(options)):
        told = start_detached(options)
    if "error" in told:
        raise YarnException(str(told["error"]))
    _tell_of_emulation(options)
    for complaint in told["complaints"]:
        notices().print(in_line(complaint))
    state = find_cluster(options.name)
    if as_json:
        sys.stdout.write(json_form.text(state) + "\n")
        return
    named = name_option(options.name)
    console = terminal()
    are_up = f"{_node_managers(len(state.nodes))} {'is' if len(state.nodes) == 1 else 'are'} up"
    console.print(f"{are_up}; {_place(state.conf_dir, state.directory)}", soft_wrap=True)
    console.print(f"See it: yarnling status{named}   End it: yarnling down{named}")


def run_foreground(options: UpOptions, *, as_json: bool) -> None:
    """Keep the cluster until Ctrl-C, and show it; with `as_json` its state on stdout once, all else on stderr."""
    check_free(options.name)
    tell_of_keys(options.conf, options.settings)
    asyncio.run(_run(options, notices() if as_json else terminal(), as_json=as_json))


async def _run(options: UpOptions, console: Console, *, as_json: bool) -> None:
    async with contextlib.AsyncExitStack() as stack:
        with console.status(_starting(options)):
            cluster = await stack.enter_async_context(supervised(options))
        _tell_of_emulation(options)
        stop = set_by_signals()
        if as_json:
            sys.stdout.write(json_form.text(find_cluster(options.name)) + "\n")
            sys.stdout.flush()
        console.print(f"Ready. {_place(str(cluster.directory.conf), str(cluster.directory.path))}", soft_wrap=True)
        console.print("Ctrl-C ends it.")
        async with asyncio.TaskGroup() as tasks:
            showing = tasks.create_task(_show(cluster, options.name, console))
            try:
                broken = await wait_for_end(cluster, stop)
            finally:
                showing.cancel()
        if broken is not None:
            raise ClusterBroken(broken)
        console.print("Ending ...")
    console.print("All processes have ended.")


async def _show(cluster: LocalCluster, name: str, console: Console) -> None:
    """The live view on a terminal; a line for each change elsewhere."""
    if not console.is_terminal:
        await _tell_changes(cluster, name, console)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            looked_s = time.monotonic()
            view = await look_or_problem(cluster.client, name)
            live.update(cell(view, "red") if isinstance(view, str) else cluster_view(view), refresh=True)
            await asyncio.sleep(max(REFRESH_S, time.monotonic() - looked_s))


async def _tell_changes(cluster: LocalCluster, name: str, console: Console) -> None:
    before: frozenset[str] = frozenset()
    while True:
        looked_s = time.monotonic()
        view = await look_or_problem(cluster.client, name)
        lines = [view] if isinstance(view, str) else _lines(view)
        for line in lines:
            if line not in before:
                console.print(in_line(line))
        before = frozenset(lines)
        await asyncio.sleep(max(REFRESH_S, time.monotonic() - looked_s))


def _lines(view: ClusterView) -> list[str]:
    nodes = [f"node {node.node_id} {view.state_of(node)}" for node in view.nodes] + complaints(view.nodes)
    return nodes + [f"{app.application_id} {app.user} {app.queue} {app.state.name}" for app in view.applications]


def _tell_of_emulation(options: UpOptions) -> None:
    """Say that containers are emulated: who waits for the output of a command needs to know that there is none."""
    if options.emulated is not None:
        notices().print(in_line(f"Containers are emulated by the table {options.emulated}: commands do not run."))


def _starting(options: UpOptions) -> str:
    return f"starting {_node_managers(options.nodes)}"


def _node_managers(count: int) -> str:
    return f"{count} NodeManager{'' if count == 1 else 's'}"


def _place(conf_dir: str, directory: str) -> str:
    return in_line(f"HADOOP_CONF_DIR={conf_dir}, files in {directory}")
