"""The commands of `yarnling lab`, which are implemented in the modules `yarnling.cli.lab_...`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from yarnling.cli.shared.arguments import DEFAULT_NAME, Json, Name

SEEDS = 200
SEEDS_MAX = 10_000
MISTAKE_SEED_MAX = 1_000_000
WORKLOADS = 20


class HadoopPolicy(Enum):
    """Hadoop's own ordering policies (yarnling.labs.policy.HADOOP_POLICIES)."""

    FIFO = "fifo"
    FAIR = "fair"
    FAIR_BY_SIZE = "fair-by-size"


lab_app = typer.Typer(no_args_is_help=True, help="Graded labs: your own code, judged by runs in virtual time.")


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.add_typer(lab_app, name="lab")


@lab_app.callback()
def _lab() -> None:
    """Graded labs: your own code, judged by runs in virtual time."""


@lab_app.command("master", epilog="Example: yarnling lab master master.py --seeds 200 (first: --start master.py)")
def _master(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="Your ApplicationMaster (Python).")] = None,
    start: Annotated[
        Path | None, typer.Option("--start", metavar="FILE", help="Write the file to start with, and stop.")
    ] = None,
    seeds: Annotated[int, typer.Option(metavar="N", help="Judge by the seeds 1 to N.", min=1, max=SEEDS_MAX)] = SEEDS,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Judge by this seed only.", min=1)] = None,
    processes: Annotated[
        bool, typer.Option("--processes", help="Also run once on real processes, if all seeds pass.")
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where to write the first run that fails.")
    ] = Path("lab-master"),
    as_json: Json = False,
) -> None:
    """Lab 1: an ApplicationMaster that finishes its job although nodes, the RM and messages fail.

    Exit status: 0 all seeds pass, 1 some fail, 2 the file is not valid, 3 cannot tell.
    """
    from yarnling.cli import lab_master as verb

    if start is not None:
        verb.write_start(start)
        return
    if file is None:
        raise typer.BadParameter("name your file, or write one to start with: yarnling lab master --start master.py")
    chosen = range(1, seeds + 1) if seed is None else range(seed, seed + 1)
    raise typer.Exit(verb.grade(file, chosen, output, on_processes=processes, as_json=as_json))


@lab_app.command("policy", epilog="Example: yarnling lab policy policy.py (first: --start policy.py)")
def _policy(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="Your ordering policy (Python).")] = None,
    start: Annotated[
        Path | None, typer.Option("--start", metavar="FILE", help="Write the file to start with, and stop.")
    ] = None,
    seeds: Annotated[
        int, typer.Option(metavar="N", help="Judge by the seeds 1 to N.", min=1, max=SEEDS_MAX)
    ] = WORKLOADS,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Judge by this seed only.", min=1)] = None,
    against: Annotated[
        HadoopPolicy, typer.Option(help="The policy of Hadoop's that is drawn beside yours.")
    ] = HadoopPolicy.FIFO,
    as_json: Json = False,
) -> None:
    """Lab 2: an ordering policy, so that applications end sooner and nobody starves.

    Exit status: 0 all seeds pass, 1 some fail, 2 the file is not valid.
    """
    from yarnling.cli import lab_policy as verb

    if start is not None:
        verb.write_start(start)
        return
    if file is None:
        raise typer.BadParameter("name your file, or write one to start with: yarnling lab policy --start policy.py")
    chosen = range(1, seeds + 1) if seed is None else range(seed, seed + 1)
    raise typer.Exit(verb.grade(file, chosen, against.value, as_json=as_json))


@lab_app.command(
    "mistake", epilog="Example: yarnling lab mistake --seed 7, then: yarnling lab mistake mistake-7/answer.yaml"
)
def _mistake(
    answers: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE...", help="An answer to judge, or those of a class for a table."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Write the cluster with this number.", min=1, max=MISTAKE_SEED_MAX)
    ] = None,
    paper: Annotated[
        int | None,
        typer.Option(metavar="N", help="Write so many clusters, each below DIR, from --seed on.", min=1, max=100),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Where to write it (default: mistake-N).")
    ] = None,
    up: Annotated[
        bool, typer.Option("--up", help="Also start it as processes, with web pages, and submit the applications.")
    ] = False,
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Lab 3: find the mistake in the configuration of a cluster, mend it, and show evidence.

    Exit status: 0 all points, 1 fewer, 2 the file is not valid.
    """
    from yarnling.cli import lab_mistake as verb

    if answers:
        if seed is not None or paper is not None or output is not None or up:
            raise typer.BadParameter("name answers to judge, or --seed to write a cluster, not both")
        raise typer.Exit(verb.grade_answers(answers, as_json=as_json))
    if seed is None:
        raise typer.BadParameter("name an answer to judge, or write a cluster: yarnling lab mistake --seed 7")
    if up:
        if paper is not None or as_json:
            raise typer.BadParameter("--up starts one cluster, and prints no JSON (leave out --paper and --json)")
        verb.bring_up(seed, output, name)
    else:
        verb.write_cases(range(seed, seed + (paper or 1)), output, as_json=as_json)
