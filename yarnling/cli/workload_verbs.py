"""The verbs `yarnling workload import`, `calibrate`, `show`, `queues` and `formats` with their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from yarnling.cli.options import with_options
from yarnling.cli.options.calibrate import CalibrateOptions
from yarnling.cli.options.simulate import Format, ImportOptions, Seed, WorkloadText
from yarnling.cli.shared.arguments import Json

workload_app = typer.Typer(
    no_args_is_help=True,
    help="Turn traces, and what a ResourceManager reports, into workloads to simulate.",
    epilog="Example: yarnling workload import apps.json -o workload.jsonl (yarnling workload show workload.jsonl)",
)


def add_to(app: typer.Typer) -> None:
    """Register the verbs."""
    app.add_typer(workload_app, name="workload")


@workload_app.command("import", epilog="Example: yarnling workload import sls-jobs.json -o workload.jsonl --scale 1.5")
@with_options
def import_command(options: ImportOptions) -> None:
    """Write the workload that a file describes in yarnling's own format, and list what had to be assumed."""
    from yarnling.cli import workload as verb

    verb.import_file(options)


@workload_app.command(
    epilog="Example: yarnling workload calibrate recording -o workload.jsonl --nodes-out nodes.json --conf-out now"
)
@with_options
def calibrate(options: CalibrateOptions) -> None:
    """Write the workload of a recorded run, fitted until its simulation is like that run, and the remaining error."""
    from yarnling.cli import calibrate as verb

    if status := verb.run(options):
        raise typer.Exit(status)


@workload_app.command()
def show(file: WorkloadText, format_name: Format = "", seed: Seed = 0, as_json: Json = False) -> None:
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
