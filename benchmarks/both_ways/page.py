"""docs/simulation-and-processes.md: how the same work goes in simulation and as processes, with the reasons. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, product
from statistics import mean, median
from typing import NamedTuple

from msgspec import Struct

from benchmarks.both_ways.observed import AM_NUMBER, Key, Observed

NAME = "scripts/both-ways"


class Outcomes(Struct, frozen=True):
    """The runs of one case. `name` and `about` describe it."""

    name: str
    about: str
    simulated: Sequence[Observed]
    processes: Sequence[Observed]


class Time(NamedTuple):
    """A time that is measured many times in a run. `of`: the times of a run, in ms; `why`: why both ways differ."""

    name: str
    of: Callable[[Observed], list[int]]
    why: str


def _between(first: dict[Key, int], then: dict[Key, int], *, of_ams: bool = False) -> list[int]:
    """From one moment in a container's life to another, for those that have both."""
    keys = (key for key in then if key in first and (key.number == AM_NUMBER) is of_ams)
    return [then[key] - first[key] for key in keys]


def _by_key(times: dict[int, int], like: Iterable[Key]) -> dict[Key, int]:
    """The time of its application, for each container."""
    return {key: times[key.application] for key in like if key.application in times}


def _of_applications(first: dict[int, int], then: dict[int, int]) -> list[int]:
    return [then[number] - first[number] for number in then if number in first]


TIMES = (
    Time(
        "an AM's wait: submission to allocation",
        lambda run: _between(_by_key(run.submitted, run.learned), run.learned, of_ams=True),
        "The next heartbeat of a node, 50 ms at most; in a full cluster the tasks of others. In simulation AMs start "
        "sooner, so their tasks may fill the nodes before the next AM is allocated.",
    ),
    Time(
        "an AM's start: allocation to registration",
        lambda run: [
            registered - run.learned[Key(number, AM_NUMBER)]
            for number, registered in run.registered.items()
            if Key(number, AM_NUMBER) in run.learned
        ],
        "A process needs CPU to start Python and to import; in simulation that is a fixed time.",
    ),
    Time(
        "a task's wait: registration of its AM to allocation",
        lambda run: _between(_by_key(run.registered, run.learned), run.learned),
        "Where tasks wait for others to end, the delays of those add up.",
    ),
    Time(
        "a task's start: allocation to the start of its container",
        lambda run: _between(run.learned, run.started),
        "Two calls in both. A NodeManager that forks for another container, or gets no CPU, answers later.",
    ),
    Time(
        "a task's run",
        lambda run: _between(run.started, run.ended),
        "A script needs CPU to start and to exit, an emulated container only a timer.",
    ),
    Time(
        "an application: submission to end",
        lambda run: _of_applications(run.submitted, run.finished),
        "The sum of the above.",
    ),
)


def page(outcomes: Sequence[Outcomes], machine: str) -> str:
    """The whole page. `machine`: on what the processes ran."""
    return "\n".join([_INTRODUCTION.format(machine=machine), *(_section(one) for one in outcomes), _END])


def _section(case: Outcomes) -> str:
    lines = [f"## {case.name}", "", case.about, "", *_order(case), ""]
    lines += ["| ms: median, longest | simulated | processes | why |", "|---|---|---|---|"]
    lines += [
        f"| {one.name} | {_cell(one, case.simulated)} | {_cell(one, case.processes)} | {one.why} |" for one in TIMES
    ]
    return "\n".join([*lines, ""])


def _order(case: Outcomes) -> list[str]:
    """The agreement of runs on the number, the order and the nodes of containers."""
    pairs = {
        "simulated, other seeds": list(combinations(case.simulated, 2)),
        "processes, again": list(combinations(case.processes, 2)),
        "simulated and processes": list(product(case.simulated, case.processes)),
    }
    counts = [sorted({len(run.started) for run in runs}) for runs in (case.simulated, case.processes)]
    same, other = (" or ".join(map(str, count)) for count in counts)
    lines = [f"Containers: {same} simulated, {other} as processes.", ""]
    lines += [
        "| two runs | pairs of containers allocated in the same order | containers on the same node |",
        "|---|---|---|",
    ]
    for name, of in pairs.items():
        if of:
            order, nodes = (mean(share(*pair) for pair in of) for share in (same_order, same_node))
            lines.append(f"| {name} | {order:.0%} | {nodes:.0%} |")
    return lines


def same_order(first: Observed, second: Observed) -> float:
    """The share of pairs of containers of different applications that were allocated in the same order in both."""
    both = [key for key in first.learned if key in second.learned]
    pairs = [(one, two) for one, two in combinations(both, 2) if one.application != two.application]
    if not pairs:
        return 1.0
    alike = (
        (first.learned[one] - first.learned[two]) * (second.learned[one] - second.learned[two]) >= 0
        for one, two in pairs
    )
    return sum(alike) / len(pairs)


def same_node(first: Observed, second: Observed) -> float:
    """The share of containers that ran on the same node in both."""
    both = [key for key in first.nodes if key in second.nodes]
    return sum(first.nodes[key] == second.nodes[key] for key in both) / len(both) if both else 1.0


def _cell(time: Time, runs: Sequence[Observed]) -> str:
    """The median over all runs, and the longest of all."""
    found = [value for run in runs for value in time.of(run)]
    return f"{median(found):,.0f}, {max(found):,}" if found else "-"


_INTRODUCTION = """\
# Simulation and processes

How the same work goes in simulation and as processes: [simulation.md](design/simulation.md) says what is a model,
this page what comes of it. `scripts/both-ways` runs each case several times both ways, reads when each core did what
from the trace of the simulation and from the event logs of the processes, and writes this page. All timers are those
of `--fast`: a node's heartbeat each 50 ms, an AM's too.

The processes ran on {machine}. Other work on the machine delays them, but not the simulation.
"""
_END = """\
## What that means

- *Decisions depend on the order of heartbeats*, which processes do not repeat either: compare "processes, again" with
  the row below it. The scheduler's code is the same; in simulation a seed fixes the order.
- *Waits differ by what code costs.* A simulated heartbeat is handled in no time. A long wait is made of the runs of
  other tasks, which are given, so its median is similar; the longest wait depends on whose AM starts first.
- *The simulation is a machine without load.* Timeouts that a busy machine would miss are never missed there.
"""
