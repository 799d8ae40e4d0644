"""Measures Hadoop's CapacityScheduler and yarnling's scheduler, interpreted and compiled, in turns.

Each round runs a case in three processes, one after the other: Hadoop's scheduler in a new JVM, yarnling's sources, and
yarnling's compiled modules (.venv-compiled). Other work on the machine slows all of them, so the ratios are taken in
each round, and the median of the rounds is reported. Time is CPU time: for Hadoop of the thread that handles the
heartbeats, without the JVM's compiler and garbage collector; for yarnling of the process, with its garbage collector.

The figures of a case, in containers or heartbeats per second:

    hadoop_first            the first pass in a JVM
    hadoop_warm             the median of the later passes
    hadoop_hot              the fastest pass
    hadoop_warm_process     as hadoop_warm, with the CPU time of the whole JVM
    interpreted, compiled   heartbeats go through yarnling's core: the node's state machine, the scheduler, the
                            events for applications
    *_scheduler             heartbeats go to the scheduler only, as in Hadoop's program
    *_to_first, _to_warm, _to_hot   the ratio to Hadoop's figure

`containers` is the number of containers in the end, `containers_elsewhere` how many of them Hadoop has on another node
or not at all.

This benchmark runs only if it is named: it fetches Hadoop's jars with Maven and takes half an hour of CPU. The
variables HADOOP_CORE_CASES="NAME ..." and HADOOP_CORE_ROUNDS=N restrict it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from benchmarks.hadoop.cases import CASES
from benchmarks.hadoop.jvm import Hadoop
from benchmarks.hadoop.yarnling import YarnlingPasses
from benchmarks.sides import COMPILED, INTERPRETED, SideMissing, compiled_python, interpreted_python
from tests.hadoop.toolchain import JavaMissing

ROUNDS = 3
HADOOP = "hadoop"


class Measured(NamedTuple):
    """The measurements of a side in one round: {figure: amount per second}, and (application, container, node)."""

    figures: dict[str, float]
    containers: list[tuple[int, int, int]]


Side = Callable[[str], Measured]
"""Runs a case in a process of its own."""


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{"CASE.FIGURE": value}. Standard error says which side is missing, and why."""
    names = os.environ.get("HADOOP_CORE_CASES", " ".join(CASES)).split()
    round_count = int(os.environ.get("HADOOP_CORE_ROUNDS", ROUNDS))
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as work:
        sides = dict(_sides(Path(work)))
        for name in names:
            rounds = []
            for number in range(round_count):
                progress(f"{name}, round {number + 1} of {round_count}")
                rounds.append(_round({side: partial(run, name) for side, run in sides.items()}, number))
            figures |= {f"{name}.{figure}": value for figure, value in medians(rounds).items()}
    return figures


def table(figures: Mapping[str, float]) -> Table:
    """A row for each case: the speeds, in brackets the ratio to Hadoop's warm speed, and whether placement is equal."""
    shown = Table("per second of CPU")
    for column in ("Hadoop first", "warm", "hot", "core interpreted", "compiled", "scheduler interpreted", "compiled"):
        shown.add_column(column, justify="right")
    shown.add_column("containers")
    for name in dict.fromkeys(figure.partition(".")[0] for figure in figures):
        own = {figure.partition(".")[2]: value for figure, value in figures.items() if figure.startswith(f"{name}.")}
        speeds = [_speed(own, f"{HADOOP}_{kind}") for kind in ("first", "warm", "hot")]
        ways = [f"{side}{way}" for way in ("", "_scheduler") for side in (INTERPRETED, COMPILED)]
        shown.add_row(name, *speeds, *(_speed(own, way) for way in ways), _placement(own))
    return shown


def _speed(figures: Mapping[str, float], figure: str) -> str:
    if figure not in figures:
        return "-"
    ratio = f" ({figures[f'{figure}_to_warm']:.2f})" if f"{figure}_to_warm" in figures else ""
    return f"{figures[figure]:,.0f}{ratio}"


def _placement(figures: Mapping[str, float]) -> str:
    count = f"{figures['containers']:,.0f}"
    if "containers_elsewhere" not in figures:
        return count
    elsewhere = figures["containers_elsewhere"]
    return f"{count}, {elsewhere:,.0f} elsewhere" if elsewhere else f"{count}, same nodes"


def medians(rounds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The median of each figure over the rounds. Ratios keep three decimals, speeds none."""
    return {
        figure: round(statistics.median(each[figure] for each in rounds), 3 if "_to_" in figure else None)
        for figure in rounds[0]
    }


def _round(sides: Mapping[str, Callable[[], Measured]], number: int) -> dict[str, float]:
    """The figures of one round. Each round begins with another side."""
    order = list(sides)
    first = number % len(order) if order else 0
    measured = {side: sides[side]() for side in order[first:] + order[:first]}
    return figures_of({side: measured[side] for side in order})


def figures_of(measured: Mapping[str, Measured]) -> dict[str, float]:
    """The speeds of all sides, the ratios to Hadoop's, and how far the placements agree."""
    figures = {figure: value for side in measured.values() for figure, value in side.figures.items()}
    ours = [side for side in measured if side != HADOOP]
    if HADOOP in measured:
        for figure in [figure for side in ours for figure in measured[side].figures]:
            for kind in ("first", "warm", "hot"):
                figures[f"{figure}_to_{kind}"] = figures[figure] / figures[f"{HADOOP}_{kind}"]
    if measured:
        figures["containers"] = len(next(iter(measured.values())).containers)
    if HADOOP in measured and ours:
        figures["containers_elsewhere"] = max(_elsewhere(measured[HADOOP], measured[side]) for side in ours)
    return figures


def _elsewhere(one: Measured, other: Measured) -> int:
    """The number of containers that are not on the same node on both sides."""
    different = set(one.containers) ^ set(other.containers)
    return len({(application, container) for application, container, _ in different})


def _sides(work: Path) -> Iterator[tuple[str, Side]]:
    """The sides that can be measured here. Names the others on standard error."""
    makers: dict[str, Callable[[], Side]] = {
        HADOOP: lambda: partial(_run_hadoop, _hadoop(work)),
        INTERPRETED: lambda: partial(_run_yarnling, INTERPRETED, interpreted_python()),
        COMPILED: lambda: partial(_run_yarnling, COMPILED, compiled_python()),
    }
    for side, make in makers.items():
        try:
            yield side, make()
        except SideMissing as missing:
            sys.stderr.write(f"hadoop_core: {side} is not measured: {missing}\n")


def _hadoop(work: Path) -> Hadoop:
    try:
        return Hadoop(work)
    except JavaMissing as missing:
        raise SideMissing(missing) from missing


def _run_hadoop(hadoop: Hadoop, name: str) -> Measured:
    passes = hadoop.run(CASES[name])
    first, *later = passes.cpu_s
    seconds = {
        "first": first,
        "warm": statistics.median(later),
        "hot": min(passes.cpu_s),
        "warm_process": statistics.median(passes.process_cpu_s[1:]),
    }
    figures = {f"{HADOOP}_{kind}": CASES[name].work / value for kind, value in seconds.items()}
    return Measured(figures, passes.containers)


def _run_yarnling(side: str, python: Path, name: str) -> Measured:
    command: list[str | Path] = [python, "-P", "-m", "benchmarks.hadoop.yarnling", name]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    passes: YarnlingPasses = json.loads(done.stdout)
    if passes["is_compiled"] != (side == COMPILED):
        raise RuntimeError(f"{python} has not run the {side} scheduler")
    figures = {
        side: CASES[name].work / statistics.median(passes["core_cpu_s"]),
        f"{side}_scheduler": CASES[name].work / statistics.median(passes["scheduler_cpu_s"]),
    }
    return Measured(figures, [(application, container, node) for application, container, node in passes["containers"]])
