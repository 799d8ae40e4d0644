"""`yarnling version` and `yarnling --version`, which also name the kind of core (design/compiled-core.md)."""

from __future__ import annotations

import importlib.util

import typer

from yarn.java.versions import HADOOP_VERSION
from yarnling.cli.shared.output import print_json
from yarnling.cluster.own_packages import version


def show(*, as_json: bool = False) -> None:
    """Print the version, the release of Hadoop that yarnling follows, and the kind of core."""
    core = "compiled" if scheduler_is_compiled() else "interpreted"
    if as_json:
        print_json({"yarnling": version(), "hadoop": HADOOP_VERSION, "core": core})
    else:
        typer.echo(f"yarnling {version()}, compatible with Hadoop {HADOOP_VERSION}; the core is {core}")


def scheduler_is_compiled() -> bool:
    """True if the core comes from extension modules that mypyc made. Nothing is imported to find out."""
    found = importlib.util.find_spec("rm.scheduler.capacity_scheduler")
    return found is not None and not (found.origin or "").endswith(".py")
