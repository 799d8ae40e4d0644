"""Simulates a day of 1,000 nodes as dense as LinkedIn's: 4.3 million containers, 50 starts a second. Once, with a log.

    python -m benchmarks.dense_day LOG [MINUTES]    CPU and wall seconds, containers, memory, each ten virtual minutes

With MINUTES the day is cut after so many real minutes, and its report is of what was reached. It is not among the
benchmarks that scripts/bench runs: it takes half an hour of CPU or more. The log ends with the time and the memory that
the report takes, and those of reading its result again. The workload is benchmarks.lives' full cluster, in which
containers run for 310 s on average.
"""

from __future__ import annotations

import gc
import math
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import TextIO

import psutil

from benchmarks.lives import CASES_ON_REQUEST, Full, inputs
from yarnling.cli.version import scheduler_is_compiled
from yarnling.report.wording import clock
from yarnling.whatif.report import write_report
from yarnling.whatif.result_file import RESULT_JSON, read_result
from yarnling.whatif.run import HowFar, RunOptions, run_what_if

LOGGED_MS = 600_000
MIB = 1 << 20


class Log:
    """Writes a line each ten virtual minutes. `settled`: (bytes in use, containers completed) after an hour."""

    def __init__(self, file: TextIO, minutes_max: float) -> None:
        self._file = file
        self._minutes_max = minutes_max
        self._started_s = time.monotonic()
        self._due_ms = 0
        self._last = (time.process_time(), 0)
        self.settled: tuple[int, int] | None = None

    def note(self, how_far: HowFar) -> bool:
        if how_far.now_ms >= self._due_ms or how_far.fraction == 1:
            self._due_ms = how_far.now_ms // LOGGED_MS * LOGGED_MS + LOGGED_MS
            self._write_progress(how_far)
        return time.monotonic() - self._started_s < 60 * self._minutes_max

    def _write_progress(self, how_far: HowFar) -> None:
        last_s, last_completed = self._last
        self._last = now_s, completed = time.process_time(), how_far.completed
        wall_s = time.monotonic() - self._started_s
        left_s = wall_s * (1 / how_far.fraction - 1) if how_far.fraction else 0
        in_use = psutil.Process().memory_info().rss
        if self.settled is None and how_far.now_ms >= 3_600_000:
            self.settled = in_use, completed
        kept = ""
        if self.settled is not None and completed > self.settled[1]:
            kept = f", {(in_use - self.settled[0]) / (completed - self.settled[1]):.0f} bytes each since the first hour"
        self.write(
            f"{clock(how_far.now_ms)} {100 * how_far.fraction:.1f} %, {completed:,} of {how_far.containers:,} lives,"
            f" {(completed - last_completed) / max(now_s - last_s, 1e-9):,.0f}/CPU s, {in_use // MIB:,} MiB{kept},"
            f" wall {wall_s / 60:.1f} min, {left_s / 60:.1f} min left"
        )

    def write(self, text: str) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        self._file.write(f"{text}; CPU {time.process_time():,.0f} s, peak {peak:,} MiB\n")
        self._file.flush()


def run(case: Full, log: Log) -> None:
    """Simulate the case, write its report, and read the result again."""
    conf, workload, nodes, until_ms = inputs(case)
    log.write(f"pid {os.getpid()}, {'compiled' if scheduler_is_compiled() else 'interpreted'}, the workload is drawn")
    result = run_what_if(conf, workload, nodes, RunOptions(1, until_ms), log.note)
    log.write(f"simulated {len(result.containers):,} containers in {result.events:,} events")
    del workload
    gc.collect()
    with tempfile.TemporaryDirectory() as directory:
        figures = write_report(result, Path(directory))
        size = (Path(directory) / RESULT_JSON).stat().st_size
        log.write(f"wrote the report; result.json has {size // MIB:,} MiB; the p95 wait is {figures.cluster.waits.p95}")
        assert read_result(Path(directory) / RESULT_JSON) == result
        log.write("read the result again, which is equal")


if __name__ == "__main__":
    day = CASES_ON_REQUEST["dense_day_of_1000_nodes"]
    assert isinstance(day, Full)
    minutes_max = float(sys.argv[2]) if len(sys.argv) > 2 else math.inf
    with Path(sys.argv[1]).open("w", encoding="utf-8") as file:
        run(day, Log(file, minutes_max))
