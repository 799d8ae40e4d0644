"""Reads SWIM's traces: one MapReduce job a line, with the bytes that it reads, shuffles and writes, and nothing else.

The counts of tasks follow SWIM's own replay (GenerateReplayScript with its defaults): a map for each 64 MiB of input, a
reduce for each 64 MiB of shuffled and written data, at least one of each. SWIM says nothing of durations, because it
replays on a real cluster; here a task needs a fixed time and then moves its bytes at a fixed rate.
"""

from __future__ import annotations

from yarnling.workload.defaults import Defaults
from yarnling.workload.documents import Faults
from yarnling.workload.limits import CONTAINERS_MAX, TIME_MS_MAX
from yarnling.workload.model import AM_RESOURCE, Workload, WorkloadApplication
from yarnling.workload.start_times import REAL_AM_START
from yarnling.workload.submissions import in_order
from yarnling.workload.tally import WorkloadCount
from yarnling.workload.task_groups import MAP_PRIORITY, REDUCE_PRIORITY, TraceTask, staged

SPLIT_BYTES = 64 << 20
TASK_START_MS = 5_000
BYTES_PER_SECOND = 10 << 20

COLUMNS = ("job", "submit second", "seconds since the last job", "input bytes", "shuffle bytes", "output bytes")


def read_swim(text: str, source: str, defaults: Defaults) -> Workload:
    """The workload of the jobs in a SWIM trace. Raises ConfigurationException with all faults."""
    faults, tally, applications = Faults(source), WorkloadCount(source), list[WorkloadApplication]()
    for line, row in enumerate(text.splitlines(), 1):
        numbers = _numbers(row, line, faults) if row.strip() else None
        if numbers is not None:
            submit_s, _, *sizes = numbers
            stages = _stages(sizes, defaults)
            tally.add(sum(task.count for stage in stages for task in stage), line)
            name = row.split("\t")[0]
            applications.append(
                WorkloadApplication(
                    name,
                    submit_s * 1000,
                    defaults.user,
                    defaults.queue,
                    tuple(staged(*stages)),
                    kind="mapreduce",
                    am_start_ms=REAL_AM_START,
                )
            )
    faults.refuse()
    return Workload(in_order(applications), _assumptions(defaults))


def _numbers(row: str, line: int, faults: Faults) -> list[int] | None:
    """The columns after the job's name, or None after their faults were added."""
    cells = row.split("\t")
    if len(cells) < len(COLUMNS):
        remedy = f"separate {len(COLUMNS)} columns by tabs: {', '.join(COLUMNS)}"
        faults.add("", f"has {len(cells)} columns", remedy, line=line)
        return None
    numbers, bounds = list[int](), (TIME_MS_MAX // 1000, TIME_MS_MAX // 1000, *[SPLIT_BYTES * CONTAINERS_MAX] * 3)
    for column, cell, bound in zip(COLUMNS[1:], cells[1:], bounds, strict=False):
        if cell.strip().isdecimal() and len(cell) < 20 and int(cell) <= bound:
            numbers.append(int(cell))
        else:
            faults.add(column, f"is not a number from 0 to {bound}", "correct the column", value=cell, line=line)
    return numbers if len(numbers) == len(bounds) else None


def _stages(sizes: list[int], defaults: Defaults) -> tuple[list[TraceTask], list[TraceTask]]:
    read, shuffled, written = sizes
    maps = max(1, -(-read // SPLIT_BYTES))
    reduces = max(1, round((shuffled + written) / SPLIT_BYTES))
    map_task = TraceTask(_lasts_ms((read + shuffled) // maps), defaults.container, MAP_PRIORITY, name="map", count=maps)
    reduce_ms = _lasts_ms((shuffled + written) // reduces)
    return [map_task], [TraceTask(reduce_ms, defaults.container, REDUCE_PRIORITY, name="reduce", count=reduces)]


def _lasts_ms(size: int) -> int:
    return min(TASK_START_MS + size * 1000 // BYTES_PER_SECOND, TIME_MS_MAX)


def _assumptions(defaults: Defaults) -> tuple[str, ...]:
    mebibytes = SPLIT_BYTES >> 20
    return (
        f"The trace has bytes, not tasks: a map for each {mebibytes} MiB of input and a reduce for each {mebibytes} "
        "MiB shuffled and written, at least one of each, as SWIM's replay does with its defaults.",
        f"The trace has no durations: a task takes {TASK_START_MS // 1000} s and moves its bytes at "
        f"{BYTES_PER_SECOND >> 20} MiB a second.",
        f"The trace has no sizes: each task gets {defaults.container}, each AM {AM_RESOURCE}.",
        f"The trace has no users and queues: all jobs are user {defaults.user}'s in queue {defaults.queue}.",
        "Reduces are requested when all maps have ended.",
    )
