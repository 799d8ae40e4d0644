"""`yarnling version` and `yarnling --version`."""

from __future__ import annotations

import typer

import yarnling
from yarn.java.versions import HADOOP_VERSION
from yarnling.cli.output import print_json
from yarnling.compiled import scheduler_is_compiled


def show(*, as_json: bool = False) -> None:
    """Print the version, the release of Hadoop that yarnling follows, and the kind of scheduler."""
    scheduler = "compiled" if scheduler_is_compiled() else "interpreted"
    if as_json:
        print_json({"yarnling": yarnling.__version__, "hadoop": HADOOP_VERSION, "scheduler": scheduler})
    else:
        typer.echo(
            f"yarnling {yarnling.__version__}, compatible with Hadoop {HADOOP_VERSION}; the scheduler is {scheduler}"
        )
