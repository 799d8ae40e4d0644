"""Measures stepping: how fast the steps of a run are found, and how long it takes to go back.

The scene is that of lesson 8, five minutes of two nodes; the plan is `storm`, with invariants checked when it is first
run. `back`: from the end of the run, seconds of CPU until the cluster 1,000 steps before can be shown.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks.core_driver import cpu_s
from yarnling.cluster.silent_logs import without_logs
from yarnling.stepping.session import Session
from yarnling.stepping.sources import find_source

STEPS = 1000
_END = 1 << 60
_SOURCES = {"scene": ("preemption", None), "plan": ("storm", 1)}


def measure(progress: Callable[[str], None]) -> dict[str, float]:
    """{figure: number}."""
    figures: dict[str, float] = {}
    with without_logs():
        for name, (which, seed) in _SOURCES.items():
            progress(which)
            session = Session(find_source(which, seed))
            spent_s = cpu_s(partial(session.go_to, _END))
            figures[f"{name}_steps"] = len(session.steps)
            figures[f"{name}_steps_per_s"] = round(len(session.steps) / spent_s)
            figures[f"{name}_back_s"] = round(cpu_s(partial(_back, session)), 3)
            session.close()
    return figures


def _back(session: Session) -> None:
    session.back(STEPS)
    session.view()
