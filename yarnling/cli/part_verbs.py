"""The verbs on the parts of a cluster that is up: nodes that come and go, and what is done to them to see what happens.

Each is an order to the cluster's supervisor (yarnling.cluster.commands), which tells its progress and its end.
"""

from __future__ import annotations

from typing import Annotated

import typer

from yarn.ids import ApplicationId, ContainerId
from yarnling.cli.arguments import DEFAULT_NAME, Application, Json, Name, Node, reading_arguments

PANEL = "Parts of a cluster that is up"


def add_to(app: typer.Typer) -> None:
    """Register them."""
    for name, run in (
        ("add-node", _add_node),
        ("remove-node", _remove_node),
        ("restart-node", _restart_node),
        ("kill-node", _kill_node),
        ("pause-node", _pause_node),
        ("resume-node", _resume_node),
        ("kill-rm", _kill_rm),
        ("restart-rm", _restart_rm),
        ("kill-master", _kill_master),
        ("kill-container", _kill_container),
    ):
        app.command(name, rich_help_panel=PANEL)(run)


def _add_node(
    count: Annotated[int, typer.Argument(help="How many.", min=1)] = 1,
    memory: Annotated[int | None, typer.Option(metavar="MB", help="Memory, if not as the others'.", min=1)] = None,
    vcores: Annotated[int | None, typer.Option(help="Vcores, if not as the others'.", min=1)] = None,
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Start more NodeManagers; they have joined when this returns."""
    _order(name, as_json, command="add-node", count=count, memory_mb=memory, vcores=vcores)


def _remove_node(
    node: Node,
    timeout: Annotated[
        int | None, typer.Option(metavar="S", help="Kill what runs after so many seconds (default: 3600).", min=0)
    ] = None,
    now: Annotated[bool, typer.Option("--now", help="End its containers and leave, whatever runs.")] = False,
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Decommission a node: it takes nothing new, and leaves when its containers and their applications have ended.

    Interrupted, the node stays.
    """
    if now and timeout is not None:
        raise typer.BadParameter("one of --now and --timeout")
    _order(name, as_json, command="remove-node", node=node, timeout_s=timeout, now=now)


def _restart_node(node: Node, name: Name = DEFAULT_NAME, as_json: Json = False) -> None:
    """Start a NodeManager that has ended, on the same host and directories."""
    _order(name, as_json, command="restart-node", node=node)


def _kill_node(
    node: Node,
    containers: Annotated[
        bool,
        typer.Option("--containers/--keep-containers", help="Kill its containers too, as if the machine was gone."),
    ] = True,
    pack: Annotated[
        bool, typer.Option("--pack", help="Of a node that shares its process (`up --pack`), kill the others too.")
    ] = False,
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Kill a NodeManager with SIGKILL; the ResourceManager notices when its heartbeats stay away."""
    _order(name, as_json, command="kill-node", node=node, containers=containers, pack=pack)


def _pause_node(node: Node, name: Name = DEFAULT_NAME, as_json: Json = False) -> None:
    """Let a NodeManager hang, as a machine that swaps does; its containers run on."""
    _order(name, as_json, command="pause-node", node=node)


def _resume_node(node: Node, name: Name = DEFAULT_NAME, as_json: Json = False) -> None:
    """Let a NodeManager that was paused go on."""
    _order(name, as_json, command="resume-node", node=node)


def _kill_rm(name: Name = DEFAULT_NAME, as_json: Json = False) -> None:
    """Kill the ResourceManager with SIGKILL; nodes, masters and containers run on."""
    _order(name, as_json, command="kill-rm")


def _restart_rm(name: Name = DEFAULT_NAME, as_json: Json = False) -> None:
    """Start a ResourceManager that has ended; with `up --recovery` it takes its applications up."""
    _order(name, as_json, command="restart-rm")


def _kill_master(application: Application, name: Name = DEFAULT_NAME, as_json: Json = False) -> None:
    """Kill an application's master with SIGKILL; the ResourceManager starts another, if it may."""
    with reading_arguments():
        ApplicationId.parse(application)
    _order(name, as_json, command="kill-master", application=application)


def _kill_container(
    container: Annotated[str, typer.Argument(metavar="CONTAINER_ID")],
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Kill all processes of a container with SIGKILL: it fails with exit status 137."""
    with reading_arguments():
        ContainerId.parse(container)
    _order(name, as_json, command="kill-container", container=container)


def _order(name: str, as_json: bool, **request: object) -> None:
    from yarnling.cli.orders import give

    give(name, request, as_json=as_json)
