"""The states of applications and attempts in the ResourceManager, in Hadoop's spelling (nodes: yarn.states)."""

from __future__ import annotations

from enum import Enum, auto


class RMAppState(Enum):
    """States of an application."""

    NEW = auto()
    NEW_SAVING = auto()
    SUBMITTED = auto()
    ACCEPTED = auto()
    RUNNING = auto()
    FINAL_SAVING = auto()
    FINISHING = auto()
    FINISHED = auto()
    FAILED = auto()
    KILLING = auto()
    KILLED = auto()


class RMAppAttemptState(Enum):
    """States of an attempt."""

    NEW = auto()
    SUBMITTED = auto()
    SCHEDULED = auto()
    ALLOCATED_SAVING = auto()
    ALLOCATED = auto()
    LAUNCHED_UNMANAGED_SAVING = auto()
    LAUNCHED = auto()
    RUNNING = auto()
    FINAL_SAVING = auto()
    FINISHING = auto()
    FINISHED = auto()
    FAILED = auto()
    KILLED = auto()


FINAL_APP_STATES = frozenset({RMAppState.FINISHED, RMAppState.FAILED, RMAppState.KILLED})
"""Final states of an application."""

STORED_APP_STATES = FINAL_APP_STATES | {RMAppState.FINISHING}
"""States in which the outcome is stored and final; clients see the application as over."""

COMPLETED_APP_STATES = STORED_APP_STATES | {RMAppState.FINAL_SAVING, RMAppState.KILLING}
"""States of an application that is over or about to end (RMAppImpl.isAppInCompletedStates)."""

SCHEDULED_APP_STATES = frozenset({RMAppState.ACCEPTED, RMAppState.RUNNING})
"""States in which the application is in the scheduler: it may be moved, and its priority changed
(ACTIVE_APP_STATES)."""

FINAL_ATTEMPT_STATES = frozenset({RMAppAttemptState.FINISHED, RMAppAttemptState.FAILED, RMAppAttemptState.KILLED})
"""Final states of an attempt."""

ENDING_ATTEMPT_STATES = frozenset({RMAppAttemptState.FINAL_SAVING, RMAppAttemptState.FINISHING})
"""States in which an allocate call of the AM gets an empty response."""
