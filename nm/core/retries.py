"""Whether a failed container starts again in its place (SlidingWindowRetryPolicy)."""

from __future__ import annotations

from yarn.containers import ContainerRetryContext
from yarn.states import ContainerExitStatus, ContainerRetryPolicy

RETRY_FOREVER = -1
_NEVER_RETRIED = (ContainerExitStatus.SUCCESS, ContainerExitStatus.FORCE_KILLED, ContainerExitStatus.TERMINATED)


class RetryPolicy:
    """The retries that one container has left.

    With a validity interval only the restarts within it count, so a container that fails rarely never runs out.
    """

    __slots__ = ("_context", "_remaining", "_restarts_ms", "interval_ms")

    def __init__(self, context: ContainerRetryContext, minimum_interval_ms: int) -> None:
        """`minimum_interval_ms`: a shorter interval of the AM is raised to it, so that no loop is tight."""
        self._context = context
        self._remaining = context.max_retries
        self._restarts_ms: list[int] = []
        self.interval_ms = max(context.retry_interval_ms, minimum_interval_ms)

    @property
    def is_set(self) -> bool:
        return self._context.policy is not ContainerRetryPolicy.NEVER_RETRY

    def should_retry(self, exit_code: int, now_ms: int) -> bool:
        """True if a process that ended with `exit_code` is to be started again; TERM and KILL never are."""
        if exit_code in _NEVER_RETRIED or not self._covers(exit_code):
            return False
        return self._context.max_retries == RETRY_FOREVER or self._left(now_ms) > 0

    def count_restart(self, now_ms: int) -> None:
        """Note a restart; it uses up one retry."""
        if self._context.failures_validity_interval_ms > 0:
            self._restarts_ms = [*self._valid_restarts(now_ms), now_ms]
        else:
            self._remaining -= 1

    def _covers(self, exit_code: int) -> bool:
        if self._context.policy is ContainerRetryPolicy.RETRY_ON_SPECIFIC_ERROR_CODES:
            return exit_code in self._context.error_codes
        return self.is_set

    def _left(self, now_ms: int) -> int:
        if self._context.failures_validity_interval_ms > 0:
            return self._context.max_retries - len(self._valid_restarts(now_ms))
        return self._remaining

    def _valid_restarts(self, now_ms: int) -> list[int]:
        oldest_ms = now_ms - self._context.failures_validity_interval_ms
        return [at_ms for at_ms in self._restarts_ms if at_ms >= oldest_ms]
