"""scripts/bench NAME...: runs benchmarks by name and prints a table, or with --json {name: {figure: value}}."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable
from functools import partial

from rich.console import Console
from rich.table import Table

NAMES = (
    "start",
    "memory",
    "core",
    "reject",
    "explain",
    "history",
    "growth",
    "long_application",
    "many_clients",
    "preemption",
    "recovery",
    "end_to_end",
    "fleet",
    "submit",
    "hadoop_rpc",
    "simulation",
    "what_if",
    "what_if_memory",
    "web",
    "stepping",
)
"""Each is a module of this package with `measure(progress) -> {figure: value}`."""

NAMES_ON_REQUEST = ("hadoop_core", "lives")
"""Run only if named: they need more than one environment, and take long. Each has `table(figures)` as well."""

# Figures of other systems for comparison, measured on two cores of the same kind.
TO_BEAT = {
    "ready_s_4": "0.9 (Dask), 5.4 (MiniYARNCluster)",
    "ready_s_10": "1.64 (Dask), 7.3 (MiniYARNCluster)",
    "private_mb": "63 (Dask)",
    "containers_per_s_500": "7,100 first, 21,000 warm (Hadoop)",
    "containers_per_s_1000": "6,300 first, 22,000 warm (Hadoop)",
    "containers_per_s_5000": "6,400 first, 20,500 warm (Hadoop)",
    "containers_per_s_1000_with_100_applications": "7,500 first, 20,000-34,000 warm (Hadoop)",
    "containers_per_s_1000_with_1000_applications": "3,000 first, 4,800-10,700 warm (Hadoop)",
    "heartbeats_per_s_1_queues": "30,000-34,000 (Hadoop)",
    "heartbeats_per_s_40_queues": "12,000 (Hadoop)",
    "containers_per_s": "1,500 on two cores of its own",
    "true_50_s": "1, 6 to 11 (MiniYARNCluster)",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    known = NAMES + NAMES_ON_REQUEST
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"one of {', '.join(known)} (default: all but {', '.join(NAMES_ON_REQUEST)})",
    )
    parser.add_argument("--json", action="store_true", help="one object {name: {figure: value}} on stdout")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"unknown benchmark {', '.join(unknown)} (known: {', '.join(known)})")
    results = {}
    console = Console(stderr=True)
    for name in arguments.names or NAMES:
        with console.status(name) as status:
            results[name] = _measure(name, partial(_show, status.update, name))
    if arguments.json:
        sys.stdout.write(json.dumps(results) + "\n")
    else:
        _print(results)


def _show(update: Callable[[str], None], name: str, text: str) -> None:
    update(f"{name}: {text}")


def _measure(name: str, progress: Callable[[str], None]) -> dict[str, float]:
    figures: dict[str, float] = importlib.import_module(f"benchmarks.{name}").measure(progress)
    return figures


def _print(results: dict[str, dict[str, float]]) -> None:
    own = {name: figures for name, figures in results.items() if name in NAMES_ON_REQUEST}
    for name, figures in own.items():
        Console().print(importlib.import_module(f"benchmarks.{name}").table(figures))
    if len(own) < len(results):
        _print_together({name: figures for name, figures in results.items() if name not in own})


def _print_together(results: dict[str, dict[str, float]]) -> None:
    table = Table("benchmark")
    table.add_column("figure", overflow="fold")
    table.add_column("value", justify="right")
    table.add_column("to beat")
    for name, figures in results.items():
        for figure, value in figures.items():
            table.add_row(name, figure, f"{value:,}", TO_BEAT.get(figure, ""))
    Console().print(table)


if __name__ == "__main__":
    main()
