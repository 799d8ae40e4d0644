"""Measures lives of containers for each second of CPU in simulated workloads, interpreted and compiled in turns.

Each round runs a case in a process of its own for each side: the checkout's sources, the compiled modules
(.venv-compiled, where that exists), and, to compare with another checkout, the same of LIVES_BEFORE. Other work on the
machine slows all of them, so only ratios within a round mean much; the median of the rounds is reported. Time is the
CPU time of the process from the start of the simulated cluster to the finished result. A life is a container that was
placed. Each run prints a line with its hash of result.json, without what the run cost: a change that only makes the
simulation faster keeps the hash.

    scripts/bench lives                                   all cases, three rounds: half an hour of CPU
    LIVES_CASES=quick scripts/bench lives                 a short case, one round
    LIVES_BEFORE=DIR LIVES_CASES="full_200" LIVES_ROUNDS=5 scripts/bench lives
                                                          beside the checkout DIR, with its .venv and .venv-compiled

In a full cluster applications want 95 % of its memory at any time, in containers of 4 GB that run for a minute; the AMs
want the rest. It is full after 20 s.
"""

from __future__ import annotations

import gc
import hashlib
import json
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict

import msgspec
from rich.table import Table

from benchmarks.sides import COMPILED, INTERPRETED, ROOT, SideMissing, compiled_python, interpreted_python
from benchmarks.what_if import FURTHER, HOUR_MS, NODE, NODES_IN_RACK, QUEUES, SETTINGS, Shape, drawn_workload
from yarn.configuration import Configuration
from yarn.resource import Resource
from yarnling.cli.version import scheduler_is_compiled
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.result_file import encode_result
from yarnling.whatif.run import DAY_MS, RunOptions, run_what_if, what_if_configuration
from yarnling.workload.formats import read_node_list, read_workload
from yarnling.workload.model import TaskGroup, Workload, WorkloadApplication, WorkloadNode

EXAMPLE = ROOT / "examples" / "what-if" / "day"
ROUNDS = 3
BEFORE = "before"

TASK = Resource(4096, 1)
TASKS_PER_APPLICATION = 200
WANTED_FRACTION = 0.95


class Full(NamedTuple):
    """A cluster that is full for `minutes` from the start. The run ends when all applications have ended."""

    nodes: int
    minutes: float
    container_s: int = 60


class ExampleHours(NamedTuple):
    """The first hours of the example that docs/what-if.md calls a day of 1,000 nodes."""

    hours: float


CASES: dict[str, Full | ExampleHours | Shape] = {
    "full_200": Full(200, 3),
    "full_1000": Full(1000, 1),
    "day_first_hour": ExampleHours(1),
}
CASES_ON_REQUEST: dict[str, Full | ExampleHours | Shape] = {
    "quick": Full(200, 0.25),
    "day_first_20_minutes": ExampleHours(1 / 3),
    "day_of_1000_nodes": FURTHER["day_of_1000_nodes"],
    # As dense as LinkedIn's: 50 starts a second on 1,000 nodes, 4.3 million containers.
    "dense_day_of_1000_nodes": Full(1000, 24 * 60, container_s=310),
}


class Measured(TypedDict):
    """The measurements of one run."""

    cpu_s: float
    lives: int
    events: int
    peak_mb: int
    result: str
    is_compiled: bool


class Side(NamedTuple):
    """A Python that runs the cases."""

    python: Path
    is_compiled: bool


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{"CASE.SIDE": lives for a second of CPU, "CASE.results": the number of different results, 1 if all are equal}."""
    names = os.environ.get("LIVES_CASES", " ".join(CASES)).split()
    known = {**CASES, **CASES_ON_REQUEST}
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"LIVES_CASES: unknown case {', '.join(unknown)} (known: {', '.join(known)})")
    round_count = int(os.environ.get("LIVES_ROUNDS", 1 if names == ["quick"] else ROUNDS))
    sides = dict(_sides())
    figures: dict[str, float] = {}
    for name in names:
        rounds = []
        for number in range(round_count):
            progress(f"{name}, round {number + 1} of {round_count}")
            rounds.append({side: _run(side, sides[side], name) for side in _turn(list(sides), number)})
        figures |= {f"{name}.{figure}": value for figure, value in figures_of(list(sides), rounds).items()}
    return figures


def figures_of(sides: Sequence[str], rounds: Sequence[Mapping[str, Measured]]) -> dict[str, float]:
    """The median speed of each side and of its ratio to the first side, peak memory, and the number of results."""
    figures: dict[str, float] = {}
    for side in sides:
        speeds = [_speed(each[side]) for each in rounds]
        ratios = [_speed(each[side]) / _speed(each[sides[0]]) for each in rounds]
        figures[side] = round(statistics.median(speeds))
        figures[f"{side}_ratio"] = round(statistics.median(ratios), 2)
        figures[f"{side}_peak_mb"] = max(each[side]["peak_mb"] for each in rounds)
    figures["results"] = len({measured["result"] for each in rounds for measured in each.values()})
    return figures


def table(figures: Mapping[str, float]) -> Table:
    """A row for each case: lives for a second of CPU, in brackets the ratio to the first side, and peak memory."""
    names = list(dict.fromkeys(figure.partition(".")[0] for figure in figures))
    sides = list(dict.fromkeys(figure.partition(".")[2][:-6] for figure in figures if figure.endswith("_ratio")))
    shown = Table("lives per second of CPU")
    for side in sides:
        shown.add_column(side.replace("_", " "), justify="right")
    shown.add_column("results")
    for name in names:
        own = {figure.partition(".")[2]: value for figure, value in figures.items() if figure.startswith(f"{name}.")}
        cells = [f"{own[side]:,.0f} ({own[f'{side}_ratio']:.2f}) {own[f'{side}_peak_mb']:,.0f} MB" for side in sides]
        shown.add_row(name, *cells, "equal" if own["results"] == 1 else f"{own['results']:.0f} different")
    return shown


def _sides() -> Iterator[tuple[str, Side]]:
    """The sides that can be measured here, first the one to which the others are compared."""
    if before := os.environ.get("LIVES_BEFORE"):
        for suffix, venv in (("", ".venv"), (f"_{COMPILED}", ".venv-compiled")):
            if (python := Path(before, venv, "bin", "python")).exists():
                yield BEFORE + suffix, Side(python, bool(suffix))
    for name, python_of in ((INTERPRETED, interpreted_python), (COMPILED, compiled_python)):
        try:
            yield name, Side(python_of(), name == COMPILED)
        except SideMissing as missing:
            sys.stderr.write(f"lives: {name} is not measured: {missing}\n")


def _turn(sides: list[str], number: int) -> list[str]:
    """The order of the sides in a round. Each round begins with another side."""
    first = number % len(sides) if sides else 0
    return sides[first:] + sides[:first]


def _run(side: str, measured_side: Side, name: str) -> Measured:
    """Run a case on a side. The other checkout runs this file too, so that both measure the same."""
    command: list[str | Path] = [measured_side.python, "-P", __file__, name]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    measured: Measured = json.loads(done.stdout)
    if measured["is_compiled"] != measured_side.is_compiled:
        raise RuntimeError(f"{measured_side.python} has not run the {side} scheduler")
    sys.stderr.write(
        f"{name} {side}: {_speed(measured):,.0f} lives/s, {measured['lives']:,} lives in {measured['cpu_s']:.1f} s,"
        f" {measured['events']:,} events, {measured['peak_mb']:,} MB, result {measured['result']}\n"
    )
    return measured


def _speed(measured: Measured) -> float:
    return measured["lives"] / measured["cpu_s"]


def run(case: Full | ExampleHours | Shape) -> Measured:
    """Run a case in this process."""
    conf, workload, nodes, until_ms = inputs(case)
    gc.collect()
    started_s = time.process_time()
    result = run_what_if(conf, workload, nodes, RunOptions(1, until_ms))
    cpu_s = time.process_time() - started_s
    return Measured(
        cpu_s=round(cpu_s, 3),
        lives=sum(1 for container in result.containers if container.allocated_ms is not None),
        events=result.events,
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        result=_hash(result),
        is_compiled=scheduler_is_compiled(),
    )


def _hash(result: WhatIfResult) -> str:
    """A short hash of result.json without what the run cost."""
    return hashlib.sha256(encode_result(msgspec.structs.replace(result, events=0, wall_s=0.0))).hexdigest()[:12]


def inputs(case: Full | ExampleHours | Shape) -> tuple[Configuration, Workload, list[WorkloadNode], int]:
    """The configuration, the workload, its nodes, and the longest virtual time in ms."""
    if isinstance(case, ExampleHours):
        conf = what_if_configuration(EXAMPLE / BEFORE, {}).conf
        nodes = list(read_node_list(EXAMPLE / "nodes.yaml").nodes)
        return conf, read_workload(EXAMPLE / "workload.yaml"), nodes, int(case.hours * HOUR_MS)
    conf = what_if_configuration(None, SETTINGS).conf
    nodes = [WorkloadNode(f"n{number:05}", NODE, f"/rack-{number // NODES_IN_RACK}") for number in range(case.nodes)]
    if isinstance(case, Shape):
        return conf, drawn_workload(case, seed=1), nodes, case.hours * HOUR_MS
    return conf, full_workload(case), nodes, DAY_MS + int(case.minutes * 60_000)


def full_workload(case: Full) -> Workload:
    """Applications of equal size: at the start as many as fill the cluster, then one after the other, evenly.

    Containers run for half to one and a half times the mean; the first ones for what would be left of that if they had
    started at any time before, so that they end as evenly as the others come.
    """
    draw = random.Random(1)
    filling = case.nodes * (NODE.memory_mb // TASK.memory_mb) * WANTED_FRACTION / TASKS_PER_APPLICATION
    first = max(1, round(filling))
    further = round(filling * case.minutes * 60 / case.container_s)
    applications = []
    for number in range(first + further):
        is_first = number < first
        seconds = (_length_s(draw, case.container_s, is_rest=is_first) for _ in range(TASKS_PER_APPLICATION))
        group = TaskGroup(TASK, tuple(max(1, int(1000 * each)) for each in seconds))
        submit_ms = 0 if is_first else int(case.minutes * 60_000 * (number - first) / further)
        user, queue = f"user-{draw.randrange(20)}", draw.choice(QUEUES)
        applications.append(WorkloadApplication(f"app-{number}", submit_ms, user, queue, (group,)))
    return Workload(tuple(applications))


def _length_s(draw: random.Random, mean_s: float, *, is_rest: bool) -> float:
    if not is_rest:
        return mean_s * draw.uniform(0.5, 1.5)
    # Of the containers that run at a moment, a long one is more likely met than a short one.
    return mean_s * math.sqrt(draw.uniform(0.5**2, 1.5**2)) * draw.random()


if __name__ == "__main__":
    print(json.dumps(run({**CASES, **CASES_ON_REQUEST}[sys.argv[1]])))
