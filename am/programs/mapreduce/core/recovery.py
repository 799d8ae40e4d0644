"""What a second attempt of the AM takes over from the first: the journal, checked against what is really there.

A map counts as done if its journal says so and its output can still be read; a reduce if its output is committed.
Anything in doubt is done again: that is always right, only slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from am.programs.mapreduce.core.orders import Recovered
from am.programs.mapreduce.core.tasks import Attempt, AttemptState

OVER = frozenset({AttemptState.SUCCEEDED, AttemptState.FAILED, AttemptState.KILLED})


class Recovery(Struct, frozen=True):
    """`tasks` need not run again; `attempts` are all others that ever ran, for the record."""

    tasks: tuple[Recovered, ...]
    attempts: tuple[Attempt, ...]


def recover(records: Iterable[object], is_output_there: Callable[[Attempt], bool], now_ms: int) -> Recovery:
    """Read the journal's records: the last one of an attempt counts.

    Attempts that ran when the AM ended were killed with it. Records that are no attempts are passed over.
    """
    last = {record.id: record for record in records if isinstance(record, Attempt)}
    attempts = [_closed(attempt, now_ms) for attempt in last.values()]
    done = {
        attempt.id.task_id
        for attempt in attempts
        if attempt.state is AttemptState.SUCCEEDED and is_output_there(attempt)
    }
    tasks = []
    for task_id in sorted(done, key=lambda task_id: (task_id.kind.value, task_id.number)):
        own = [attempt for attempt in attempts if attempt.id.task_id == task_id]
        own.sort(key=lambda attempt: attempt.state is AttemptState.SUCCEEDED)
        tasks.append(Recovered(task_id, tuple(own)))
    return Recovery(tuple(tasks), tuple(attempt for attempt in attempts if attempt.id.task_id not in done))


def _closed(attempt: Attempt, now_ms: int) -> Attempt:
    if attempt.state in OVER:
        return attempt
    return replace(attempt, state=AttemptState.KILLED, finished_ms=now_ms, why="its master ended")
