"""The enums in messages, in Hadoop's spelling. Their values are the numbers on the wire."""

from __future__ import annotations

from enum import Enum, IntEnum


class YarnApplicationState(Enum):
    """The state of an application as clients see it (RMAppState is the state inside the RM)."""

    NEW = 1
    NEW_SAVING = 2
    SUBMITTED = 3
    ACCEPTED = 4
    RUNNING = 5
    FINISHED = 6
    FAILED = 7
    KILLED = 8


FINAL_APPLICATION_STATES = frozenset(
    {YarnApplicationState.FINISHED, YarnApplicationState.FAILED, YarnApplicationState.KILLED}
)


class YarnApplicationAttemptState(Enum):
    """The state of an attempt as clients see it."""

    NEW = 1
    SUBMITTED = 2
    SCHEDULED = 3
    ALLOCATED_SAVING = 4
    ALLOCATED = 5
    LAUNCHED = 6
    FAILED = 7
    RUNNING = 8
    FINISHING = 9
    FINISHED = 10
    KILLED = 11


class FinalApplicationStatus(Enum):
    """The final status that an AM reports for its application."""

    UNDEFINED = 0
    SUCCEEDED = 1
    FAILED = 2
    KILLED = 3
    ENDED = 4


class ContainerState(Enum):
    """The state of a container as its NM reports it.

    RUNNING from the moment that its start was accepted, COMPLETE when it is DONE.
    """

    NEW = 1
    RUNNING = 2
    COMPLETE = 3


class ContainerSubState(Enum):
    """The more detailed state of a container within its ContainerState."""

    SCHEDULED = 1
    RUNNING = 2
    PAUSED = 3
    COMPLETING = 4
    DONE = 5


class NodeState(Enum):
    """The state of a node in the RM."""

    NEW = 1
    RUNNING = 2
    UNHEALTHY = 3
    DECOMMISSIONED = 4
    LOST = 5
    REBOOTED = 6
    DECOMMISSIONING = 7
    SHUTDOWN = 8


class DecommissionType(Enum):
    """The ways to decommission excluded nodes: NORMAL and FORCEFUL at once, GRACEFUL when empty or after a timeout."""

    NORMAL = 1
    GRACEFUL = 2
    FORCEFUL = 3


class NodeAction(Enum):
    """The order to an NM in the RM's reply."""

    NORMAL = 0
    RESYNC = 1
    SHUTDOWN = 2


class NodeUpdateType(Enum):
    """The change of a node's usability, as reported to AMs."""

    USABLE = 0
    UNUSABLE = 1
    DECOMMISSIONING = 2


class QueueState(Enum):
    """The state of a queue. RUNNING: it accepts applications. DRAINING: stopped, but it still has some."""

    STOPPED = 1
    RUNNING = 2
    DRAINING = 3


class LogAggregationStatus(Enum):
    """The progress of an application's log aggregation."""

    DISABLED = 1
    NOT_START = 2
    RUNNING = 3
    SUCCEEDED = 4
    FAILED = 5
    TIME_OUT = 6
    RUNNING_WITH_FAILURE = 7


class ApplicationAccessType(Enum):
    """The operations that an application's own access lists allow."""

    VIEW_APP = 1
    MODIFY_APP = 2


class ApplicationsRequestScope(Enum):
    """Which applications to list: all, those that the caller may view, or the caller's own."""

    ALL = 0
    VIEWABLE = 1
    OWN = 2


class QueueACL(Enum):
    """A user's permission in a queue."""

    SUBMIT_APPLICATIONS = 1
    ADMINISTER_QUEUE = 2


class ExecutionType(Enum):
    """The execution type of a container. GUARANTEED: starts at once. OPPORTUNISTIC: may queue at the NM."""

    GUARANTEED = 1
    OPPORTUNISTIC = 2


class ContainerType(Enum):
    """The kind of a container's program."""

    APPLICATION_MASTER = 1
    TASK = 2


class SchedulerResourceTypes(Enum):
    """The resource types that the scheduler counts when it compares amounts."""

    MEMORY = 0
    CPU = 1


class ContainerUpdateType(Enum):
    """The kind of an AM's update of a running container."""

    INCREASE_RESOURCE = 0
    DECREASE_RESOURCE = 1
    PROMOTE_EXECUTION_TYPE = 2
    DEMOTE_EXECUTION_TYPE = 3


class SignalContainerCommand(Enum):
    """The signals that a client may send to a container: QUIT, TERM and KILL."""

    OUTPUT_THREAD_DUMP = 1
    GRACEFUL_SHUTDOWN = 2
    FORCEFUL_SHUTDOWN = 3


class LocalResourceType(Enum):
    """The type of a local resource: a file, an archive to unpack, or an archive of which a pattern is unpacked."""

    ARCHIVE = 1
    FILE = 2
    PATTERN = 3


class LocalResourceVisibility(Enum):
    """The sharing of a local resource on a NM: by all users, by one user's applications, by one application."""

    PUBLIC = 1
    PRIVATE = 2
    APPLICATION = 3


class HAServiceState(Enum):
    """The state of one of several ResourceManagers (HAServiceProtocol.HAServiceState)."""

    INITIALIZING = 0
    ACTIVE = 1
    STANDBY = 2
    OBSERVER = 3


class RequestSource(Enum):
    """The origin of a request to change the state: an administrator, with or without force, or a controller."""

    REQUEST_BY_USER = 0
    REQUEST_BY_USER_FORCED = 1
    REQUEST_BY_ZKFC = 2


class ContainerRetryPolicy(Enum):
    """The policy by which an NM restarts a failed container."""

    NEVER_RETRY = 0
    RETRY_ON_ALL_ERRORS = 1
    RETRY_ON_SPECIFIC_ERROR_CODES = 2


class ContainerExitStatus(IntEnum):
    """Exit statuses that YARN itself assigns; any other number is that of the process (protocol 2.7)."""

    SUCCESS = 0
    INVALID = -1000
    ABORTED = -100
    DISKS_FAILED = -101
    PREEMPTED = -102
    KILLED_EXCEEDED_VMEM = -103
    KILLED_EXCEEDED_PMEM = -104
    KILLED_BY_APPMASTER = -105
    KILLED_BY_RESOURCEMANAGER = -106
    KILLED_AFTER_APP_COMPLETION = -107
    KILLED_BY_CONTAINER_SCHEDULER = -108
    KILLED_FOR_EXCESS_LOGS = -109
    FORCE_KILLED = 137
    TERMINATED = 143
    LOST = 154
