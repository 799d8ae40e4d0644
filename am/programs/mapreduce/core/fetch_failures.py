"""When a reduce gives up on a map's output (ShuffleSchedulerImpl, in short).

A node that answers without the output does not have it any more. A node that does not answer may be lost, which the RM
finds out and the AM announces by withdrawing the output: that is not the map's fault, so it is given time.
"""

from __future__ import annotations

from am.programs.mapreduce.core.job import TaskAttemptId

REFUSALS_MAX = 5
"""The number of answers of a node without the output."""
UNREACHABLE_MS_MAX = 10_000
"""The time a node may not answer. It is not longer because a node that was restarted at once is never reported as lost,
but its shuffle service has another port."""
UNREACHABLE_RETRY_MS = 1_000


class FetchFailures:
    """The failed fetches of one reduce. Times are monotonic ms."""

    def __init__(self) -> None:
        self._refusals: dict[TaskAttemptId, int] = {}
        self._unreachable: dict[TaskAttemptId, tuple[int, int]] = {}

    def refused(self, attempt_id: TaskAttemptId) -> None:
        """The node answered, but without the output."""
        self._refusals[attempt_id] = self._refusals.get(attempt_id, 0) + 1

    def unreachable(self, attempt_id: TaskAttemptId, now_ms: int) -> None:
        """The node did not answer."""
        since_ms, _ = self._unreachable.get(attempt_id, (now_ms, 0))
        self._unreachable[attempt_id] = (since_ms, now_ms)

    def fetched(self, attempt_id: TaskAttemptId) -> None:
        self._refusals.pop(attempt_id, None)
        self._unreachable.pop(attempt_id, None)

    def is_due(self, attempt_id: TaskAttemptId, now_ms: int) -> bool:
        """False for a while after the node did not answer."""
        since = self._unreachable.get(attempt_id)
        return since is None or now_ms - since[1] >= UNREACHABLE_RETRY_MS

    def given_up(self) -> tuple[TaskAttemptId, ...]:
        """The attempts whose output is to be reported as gone."""
        return (
            *(attempt_id for attempt_id, count in self._refusals.items() if count >= REFUSALS_MAX),
            *(
                attempt_id
                for attempt_id, (since_ms, last_ms) in self._unreachable.items()
                if last_ms - since_ms >= UNREACHABLE_MS_MAX
            ),
        )
