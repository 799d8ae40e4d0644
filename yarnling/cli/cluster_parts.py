"""Verbs for parts of a running cluster: add and remove nodes; kill, pause and restart daemons and containers.

Each verb sends a request to the cluster's supervisor (yarnling.cluster.commands), which reports progress and the
result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from yarn.errors import YarnException
from yarn.ids import ApplicationId, ContainerId
from yarnling.cli.shared.arguments import DEFAULT_NAME, Application, Json, Name, Node, memory_mb, reading_arguments

PANEL = "Parts of a running cluster"


def add_to(app: typer.Typer) -> None:
    """Register the verbs."""
    for name, run in VERBS.items():
        app.command(name)(run)


def _add_node(
    count: Annotated[int, typer.Argument(help="Number of nodes.", min=1)] = 1,
    memory: Annotated[
        int | None, typer.Option(metavar="SIZE", help="Memory: 2048, 2GB (default: as the others).", parser=memory_mb)
    ] = None,
    vcores: Annotated[int | None, typer.Option(metavar="N", help="Vcores (default: as the others).", min=1)] = None,
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Start more NodeManagers and wait until they have registered."""
    _request(name, as_json, command="add-node", count=count, memory_mb=memory, vcores=vcores)


def _remove_node(
    node: Node,
    timeout: Annotated[
        int | None, typer.Option(metavar="S", help="Seconds until what still runs is killed (default: 3600).", min=0)
    ] = None,
    now: Annotated[bool, typer.Option("--now", help="Stop its containers and remove it at once.")] = False,
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Decommission a node: it gets no new containers, and exits when its containers and their applications have ended.

    If interrupted, the node stays.
    """
    if now and timeout is not None:
        raise typer.BadParameter("--now and --timeout cannot be combined")
    _request(name, as_json, command="remove-node", node=node, timeout_s=timeout, now=now)


def _restart_node(node: Node, name: Name = DEFAULT_NAME, as_json: Json = False) -> None:
    """Restart a NodeManager that has exited, with the same host and directories."""
    _request(name, as_json, command="restart-node", node=node)


def _kill_node(
    node: Node,
    containers: Annotated[
        bool,
        typer.Option("--containers/--keep-containers", help="Kill its containers too, as if the machine had failed."),
    ] = True,
    pack: Annotated[
        bool, typer.Option("--pack", help="Kill all nodes that share the process of this one (`up --pack`).")
    ] = False,
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Kill a NodeManager with SIGKILL; the ResourceManager notices when its heartbeats stop."""
    _request(name, as_json, command="kill-node", node=node, containers=containers, pack=pack)


def _pause_node(node: Node, name: Name = DEFAULT_NAME, as_json: Json = False) -> None:
    """Pause a NodeManager with SIGSTOP, as if its machine hung; its containers keep running."""
    _request(name, as_json, command="pause-node", node=node)


def _resume_node(node: Node, name: Name = DEFAULT_NAME, as_json: Json = False) -> None:
    """Resume a paused NodeManager."""
    _request(name, as_json, command="resume-node", node=node)


def _partition_node(node: Node, name: Name = DEFAULT_NAME, as_json: Json = False) -> None:
    """Cut a node off from all other processes, in a cluster of `up --network-faults`; its containers keep running."""
    _request(name, as_json, command="partition-node", node=node)


def _heal_node(node: Node, name: Name = DEFAULT_NAME, as_json: Json = False) -> None:
    """Connect a partitioned node again."""
    _request(name, as_json, command="heal-node", node=node)


RmId = Annotated[str, typer.Option("--id", metavar="ID", help="Which of several (`up --rms`), such as rm1.")]


def _kill_rm(
    rm_id: RmId = "",
    probe: Annotated[
        bool, typer.Option("--probe/--no-probe", help="Measure when the next one allocates, with an application.")
    ] = True,
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Kill the ResourceManager with SIGKILL; nodes, ApplicationMasters and containers keep running.

    Of several (`up --rms`) it kills the active one, and reports when the next one is active and allocates.
    """
    _request(name, as_json, command="kill-rm", id=rm_id, probe=probe)


def _pause_rm(rm_id: RmId = "", name: Name = DEFAULT_NAME, as_json: Json = False) -> None:
    """Pause the ResourceManager with SIGSTOP, as if it hung; of several (`up --rms`) the active one."""
    _request(name, as_json, command="pause-rm", id=rm_id)


def _resume_rm(rm_id: RmId = "", name: Name = DEFAULT_NAME, as_json: Json = False) -> None:
    """Resume a paused ResourceManager."""
    _request(name, as_json, command="resume-rm", id=rm_id)


def _restart_rm(rm_id: RmId = "", name: Name = DEFAULT_NAME, as_json: Json = False) -> None:
    """Restart a ResourceManager that has exited; with `up --recovery` it recovers its applications."""
    _request(name, as_json, command="restart-rm", id=rm_id)


def _kill_master(application: Application, name: Name = DEFAULT_NAME, as_json: Json = False) -> None:
    """Kill an ApplicationMaster with SIGKILL; the ResourceManager starts the next attempt, if one is left."""
    with reading_arguments():
        ApplicationId.parse(application)
    _request(name, as_json, command="kill-master", application=application)


def _kill_container(
    container: Annotated[str, typer.Argument(metavar="CONTAINER_ID")],
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Kill all processes of a container with SIGKILL: it fails with exit status 137."""
    with reading_arguments():
        ContainerId.parse(container)
    _request(name, as_json, command="kill-container", container=container)


def _request(name: str, as_json: bool, **request: object) -> None:
    """Send a request and print its result to standard output.

    Raises YarnException if the supervisor refuses the request or does not answer.
    """
    from yarnling.cli.shared.output import print_json
    from yarnling.cluster.control_socket import NoSupervisor
    from yarnling.cluster.state import find_cluster
    from yarnling.report.escapes import shown

    state = find_cluster(name)
    try:
        answer = _result(request, name)
    except NoSupervisor as error:
        raise YarnException(
            f"the supervisor of the cluster {name!r}, process {state.supervisor.pid}, does not answer: {error.message}"
        ) from None
    if "error" in answer:
        raise YarnException(str(answer["error"]))
    if as_json:
        print_json(answer["facts"])
    else:
        typer.echo(shown(str(answer["text"])))


def _result(request: dict[str, object], name: str) -> dict[str, object]:
    """Send a request and return the last answer.

    Progress is printed to standard error: as one changing line on a terminal, otherwise one line for each step.
    """
    from rich.text import Text

    from yarnling.cli.shared.output import notices
    from yarnling.cluster.control_socket import answers
    from yarnling.cluster.state import control_path
    from yarnling.report.escapes import in_line

    console = notices()
    with console.status(str(request["command"])) as status:
        for answer in answers(control_path(name), request):
            if "progress" not in answer:
                return answer
            text = in_line(str(answer["progress"]))
            if console.is_terminal:
                status.update(Text(text))
            else:
                console.print(text)
    raise AssertionError("the last answer is a result or an error")


VERBS: dict[str, Callable[..., None]] = {
    "add-node": _add_node,
    "remove-node": _remove_node,
    "restart-node": _restart_node,
    "kill-node": _kill_node,
    "pause-node": _pause_node,
    "resume-node": _resume_node,
    "partition-node": _partition_node,
    "heal-node": _heal_node,
    "kill-rm": _kill_rm,
    "restart-rm": _restart_rm,
    "pause-rm": _pause_rm,
    "resume-rm": _resume_rm,
    "kill-master": _kill_master,
    "kill-container": _kill_container,
}
"""{name: function}."""
