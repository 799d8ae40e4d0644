"""How a job stands, as plain JSON: tasks by state, who ran where, what was lost and done again.

    {"application": "application_...", "name": "...", "am_attempt": 1, "state": "RUNNING", "progress": 0.5,
     "started_ms": ..., "updated_ms": ..., "output": "/...", "diagnostics": "",
     "maps": {"total": 8, "PENDING": 0, "SCHEDULED": 1, "RUNNING": 2, "SUCCEEDED": 5, "FAILED": 0}, "reduces": {...},
     "recovered_tasks": 0, "lost_outputs": 1,
     "attempts": [{"id": "attempt_...", "task": "task_...", "kind": "MAP", "container": "container_...",
                   "node": "127.0.0.2:4711", "state": "KILLED", "output_lost": true, "why": "...",
                   "started_ms": ..., "finished_ms": ...}, ...]}

`state` is RUNNING, SUCCEEDED or FAILED; times are wall-clock ms, 0 = not yet. The file is replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from am.programs.mapreduce.core.job_master import MapReduce
from am.programs.mapreduce.core.tasks import Attempt, Task, TaskState
from wire.json_records import Json


def counts_of(tasks: Sequence[Task]) -> dict[str, Json]:
    """{"total": n, state: count}."""
    counts: dict[str, Json] = {"total": len(tasks)}
    for state in TaskState:
        counts[state.value] = sum(task.state is state for task in tasks)
    return counts


def attempt_status(attempt: Attempt) -> dict[str, Json]:
    return {
        "id": str(attempt.id),
        "task": str(attempt.id.task_id),
        "kind": attempt.id.task_id.kind.name,
        "container": str(attempt.container_id),
        "node": str(attempt.node_id),
        "state": attempt.state.value,
        "output_lost": attempt.output_lost,
        "why": attempt.why,
        "started_ms": attempt.started_ms,
        "finished_ms": attempt.finished_ms,
    }


def tasks_status(core: MapReduce, earlier: Sequence[Attempt]) -> dict[str, Json]:
    """The part of the status that the core knows; `earlier`: attempts under former AMs that it does not."""
    attempts = [*earlier, *(attempt for task in (*core.maps, *core.reduces) for attempt in task.attempts)]
    attempts.sort(key=lambda attempt: (attempt.started_ms, attempt.id.number))
    return {
        "progress": core.progress(),
        "maps": counts_of(core.maps),
        "reduces": counts_of(core.reduces),
        "recovered_tasks": core.recovered_tasks,
        "lost_outputs": core.lost_outputs,
        "attempts": [attempt_status(attempt) for attempt in attempts],
    }
