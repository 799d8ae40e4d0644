"""The options of `yarnling up` and of other commands for a cluster of processes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from yarnling.cli.shared.arguments import (
    DEFAULT_NAME,
    Application,
    Conf,
    Define,
    Json,
    Name,
    Release,
    Strict,
    memory_mb,
    memory_of_node_mb,
    release_settings,
    strict_settings,
)

RMS_MAX = 9
RECOVERY = "yarn.resourcemanager.recovery.enabled=true"
User = Annotated[str, typer.Option(metavar="USER", help="Submit as this user (default: you).")]


class UpOptions(Struct, frozen=True, kw_only=True):
    """The options of a cluster to start; see LocalCluster and ClusterOptions."""

    nodes: Annotated[int, typer.Option(metavar="N", help="Number of NodeManagers.", min=0)] = 1
    memory: Annotated[
        int | None,
        typer.Option(
            metavar="SIZE", help="Memory of each node: 2048, 2GB (-1 and default: 8GB).", parser=memory_of_node_mb
        ),
    ] = None
    vcores: Annotated[
        int | None, typer.Option(metavar="N", help="Vcores of each node (-1 and default: 8).", min=-1)
    ] = None
    conf: Conf = None
    define: Define = []
    fast: Annotated[bool, typer.Option("--fast", help="Run all timers 20 times as fast.")] = False
    racks: Annotated[
        int, typer.Option(metavar="N", help="Number of racks; nodes are assigned to them in turn.", min=1)
    ] = 1
    pack: Annotated[
        int | None, typer.Option(metavar="K", help="Nodes in each process, for clusters of thousands of nodes.", min=1)
    ] = None
    directory: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the cluster's files in this directory.")
    ] = None
    discard_state: Annotated[
        bool,
        typer.Option(
            "--discard-state", help="Delete the applications that an earlier cluster stored in the directory."
        ),
    ] = False
    emulate: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE", help="Emulate containers instead of running them: a YAML file, `default` or `all`."
        ),
    ] = None
    hadoop: Annotated[
        bool, typer.Option("--hadoop", help="Answer Hadoop's own clients: spark-submit, the `yarn` command, MapReduce.")
    ] = False
    hadoop_classpath: Annotated[
        str | None,
        typer.Option(
            metavar="JARS",
            help="Hadoop's jars for containers, if HADOOP_HOME is not set: 'DIR/*', several with colons.",
        ),
    ] = None
    recovery: Annotated[
        bool,
        typer.Option(
            "--recovery",
            help="Keep applications across restarts of the ResourceManager, and resume those that an earlier cluster "
            "stored in the directory.",
        ),
    ] = False
    rms: Annotated[
        int,
        typer.Option(metavar="N", help="Number of ResourceManagers; of several one is active.", min=1, max=RMS_MAX),
    ] = 1
    web: Annotated[
        bool, typer.Option("--web/--no-web", help="Serve web pages, Hadoop's REST API, JMX and metrics.")
    ] = True
    network_faults: Annotated[
        bool,
        typer.Option(
            "--network-faults", help="Connect all processes through proxies, for `partition-node` and `heal-node`."
        ),
    ] = False
    detach: Annotated[bool, typer.Option("--detach", help="Return when the cluster is ready; stop it with `down`.")] = (
        False
    )
    release: Release = None
    strict: Strict = False
    name: Name = DEFAULT_NAME
    as_json: Json = False

    @property
    def settings(self) -> dict[str, str]:
        """{key: value} of the configuration that the options request. Raises YarnException for one without a value."""
        from yarnling.cluster.configuration import definitions

        recovery = [RECOVERY] if self.recovery else []
        return definitions([*recovery, *self.define, *release_settings(self.release), *strict_settings(self.strict)])


class ChaosOptions(Struct, frozen=True, kw_only=True):
    """The options of `yarnling chaos run`. `plan`: "" with `is_random`."""

    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan file, or the name of a ready-made plan.")] = ""
    list_plans: Annotated[bool, typer.Option("--list", help="List the ready-made plans.")] = False
    is_random: Annotated[bool, typer.Option("--random", help="Draw a plan from the seed.")] = False
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of the schedule (default: random).")] = None
    runs: Annotated[int, typer.Option(metavar="N", help="Number of runs, each with the next seed.", min=1)] = 1
    keep: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the files of all runs here (default: only of runs that do not pass)."),
    ] = None
    only_schedule: Annotated[bool, typer.Option("--schedule", help="Print the schedule without running it.")] = False
    as_json: Json = False


class LogsOptions(Struct, frozen=True, kw_only=True):
    """Which logs to print. `every`: the NodeManager's own files too."""

    application: Application
    container: Annotated[str | None, typer.Option(metavar="ID", help="Only the logs of this container.")] = None
    file: Annotated[list[str], typer.Option(metavar="NAME", help="Only files with this name, for example stdout.")] = []
    every: Annotated[
        bool,
        typer.Option("--all", help="Also print the NodeManager's own files: launch_container.sh, directory.info..."),
    ] = False
    name: Name = DEFAULT_NAME
    as_json: Json = False


class CommandOptions(Struct, frozen=True, kw_only=True):
    """The options of `yarnling run`. `timeout`: None for no limit."""

    command: Annotated[
        list[str],
        typer.Argument(help="A single argument is a shell command line; several are a command with its arguments."),
    ]
    containers: Annotated[int, typer.Option("--containers", "-n", metavar="N", help="Number of containers.", min=1)] = 1
    memory: Annotated[
        int, typer.Option(metavar="SIZE", help="Memory of each container: 512, 2GB.", parser=memory_mb)
    ] = 128
    vcores: Annotated[int, typer.Option(metavar="N", help="Vcores of each container.", min=1)] = 1
    queue: Annotated[str, typer.Option(metavar="QUEUE", help="Name or full path of the queue.")] = "default"
    user: User = ""
    timeout: Annotated[float | None, typer.Option(metavar="S", help="Kill it after this many seconds.")] = None
    name: Name = DEFAULT_NAME
    as_json: Json = False
