"""The verbs `yarnling workload import`, `show`, `queues` and `formats` with their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from yarnling.cli.shared.arguments import Json

workload_app = typer.Typer(
    no_args_is_help=True,
    help="Turn traces, and what a ResourceManager reports, into workloads to simulate.",
    epilog="Example: yarnling workload import apps.json -o workload.jsonl (yarnling workload show workload.jsonl)",
)

_File = Annotated[Path, typer.Argument(metavar="FILE", help="A trace, an answer of a ResourceManager, or a summary.")]
_Format = Annotated[
    str, typer.Option("--format", metavar="NAME", help="Format of FILE (default: recognised; `formats` lists them).")
]
_Seed = Annotated[int, typer.Option(metavar="N", help="Seed of everything that is drawn.", min=0)]
_Queue = Annotated[str, typer.Option(metavar="QUEUE", help="Queue of applications without one.")]
_User = Annotated[str, typer.Option(metavar="USER", help="User of applications without one.")]
_Memory = Annotated[int, typer.Option("--container-memory", metavar="MB", help="Memory of a container.", min=1)]
_Vcores = Annotated[int, typer.Option("--container-vcores", metavar="N", help="Vcores of a container.", min=1)]
_TaskSeconds = Annotated[
    float, typer.Option("--task-seconds", metavar="S", help="How long a MapReduce or Tez task lasts.", min=0.001)
]
_MinimumAllocation = Annotated[
    int,
    typer.Option(
        metavar="MB", help="yarn.scheduler.minimum-allocation-mb of the ResourceManager that reported.", min=1
    ),
]
_SynthSeconds = Annotated[
    bool,
    typer.Option("--synth-seconds", help="Times of tasks in a SYNTH file are seconds (default: milliseconds, as SLS)."),
]


def add_to(app: typer.Typer) -> None:
    """Register the verbs."""
    app.add_typer(workload_app, name="workload")


@workload_app.command("import", epilog="Example: yarnling workload import sls-jobs.json -o workload.jsonl --scale 1.5")
def import_command(
    file: _File,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The workload to write.")],
    nodes_out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the list of nodes to this file.")
    ] = None,
    nodes: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the nodes are read from (default: the hosts that FILE names)."),
    ] = None,
    format_name: _Format = "",
    scale: Annotated[
        float, typer.Option(metavar="FACTOR", help="Load factor: so many times the applications.", min=0)
    ] = 1.0,
    seed: _Seed = 0,
    queue: _Queue = "default",
    user: _User = "default",
    container_memory: _Memory = 1024,
    container_vcores: _Vcores = 1,
    task_seconds: _TaskSeconds = 60.0,
    minimum_allocation: _MinimumAllocation = 1024,
    synth_seconds: _SynthSeconds = False,
    as_json: Json = False,
) -> None:
    """Write the workload that a file describes in yarnling's own format, and list what had to be assumed."""
    from yarn.resource import Resource
    from yarnling.cli import workload as verb
    from yarnling.workload.defaults import Defaults

    container = Resource(container_memory, container_vcores)
    defaults = Defaults(seed, container, queue, user, round(task_seconds * 1000), synth_seconds, minimum_allocation)
    verb.import_file(verb.ImportOptions(file, out, nodes_out, nodes, format_name, scale, defaults, as_json))


@workload_app.command()
def show(file: _File, format_name: _Format = "", seed: _Seed = 0, as_json: Json = False) -> None:
    """Show what a workload asks for: applications and containers by queue and user, sizes, durations, assumptions."""
    from yarnling.cli import workload as verb
    from yarnling.workload.defaults import Defaults

    verb.show(file, format_name, Defaults(seed=seed), as_json=as_json)


@workload_app.command(epilog="Example: yarnling workload queues scheduler.json -o conf/capacity-scheduler.xml")
def queues(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An answer to GET /ws/v1/cluster/scheduler.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The capacity-scheduler.xml to write.")],
) -> None:
    """Write the queues that a ResourceManager reports as a capacity-scheduler.xml."""
    from yarnling.cli import workload as verb

    verb.write_queues(file, out)


@workload_app.command()
def formats() -> None:
    """List the formats that can be read."""
    from yarnling.cli import workload as verb

    verb.list_formats()
