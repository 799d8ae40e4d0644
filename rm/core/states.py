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
"""The outcome is stored: nothing changes it any more, and clients see the application as over."""

COMPLETED_APP_STATES = STORED_APP_STATES | {RMAppState.FINAL_SAVING, RMAppState.KILLING}
"""The application is over, or certain to be (RMAppImpl.isAppInCompletedStates)."""

SCHEDULED_APP_STATES = frozenset({RMAppState.ACCEPTED, RMAppState.RUNNING})
"""The scheduler has it: it may be moved, and given another priority (ClientRMService.ACTIVE_APP_STATES)."""

FINAL_ATTEMPT_STATES = frozenset({RMAppAttemptState.FINISHED, RMAppAttemptState.FAILED, RMAppAttemptState.KILLED})
"""Final states of an attempt."""

ENDING_ATTEMPT_STATES = frozenset({RMAppAttemptState.FINAL_SAVING, RMAppAttemptState.FINISHING})
"""States in which the AM's allocate gets an empty answer."""
