"""The records in a ResourceManager's state store, for the next ResourceManager.

They are Hadoop's ApplicationStateData, ApplicationAttemptStateData and RMState, and the content of its
FileSystemNodeLabelsStore. Nodes, resource requests, running containers and the addresses of AMs are not stored:
NodeManagers and AMs report them again.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from rm.core.states import RMAppAttemptState, RMAppState
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import Container
from yarn.ids import ApplicationAttemptId, ApplicationId, NodeId
from yarn.nodes import NodeLabel
from yarn.states import ContainerExitStatus, FinalApplicationStatus


class Saving(Enum):
    """The reason for writing a record. NEW and FINAL: a state machine waits until it is stored; CHANGE: none waits."""

    NEW = "NEW"
    FINAL = "FINAL"
    CHANGE = "CHANGE"


class ApplicationStateData(Struct, frozen=True):
    """An application. Times are wall-clock ms, 0 = not yet.

    `submission` has the current queue and priority. `placed`: the queue that placement rules chose, if any. `state`,
    `diagnostics` and `finish_ms` are set when the application ends; before that `state` is None.
    """

    submission: ApplicationSubmissionContext
    user: str
    submit_ms: int
    placed: str | None = None
    launch_ms: int = 0
    lifetime_ends_ms: int | None = None
    state: RMAppState | None = None
    diagnostics: str = ""
    finish_ms: int = 0

    @property
    def application_id(self) -> ApplicationId:
        return self.submission.application_id


class ApplicationAttemptStateData(Struct, frozen=True):
    """An attempt. `state` is None, and the fields after it have no meaning, until the attempt ends.

    `*_seconds`: the resource-seconds of the application's containers up to the end of the attempt.
    """

    attempt_id: ApplicationAttemptId
    master: Container | None
    start_ms: int
    state: RMAppAttemptState | None = None
    tracking_url: str = ""
    diagnostics: str = ""
    final_status: FinalApplicationStatus | None = None
    exit_status: int = ContainerExitStatus.INVALID
    finish_ms: int = 0
    memory_mb_seconds: int = 0
    vcore_seconds: int = 0
    preempted_memory_mb_seconds: int = 0
    preempted_vcore_seconds: int = 0


class StoredApplication(Struct, frozen=True):
    """An application with its attempts, the first one first."""

    application: ApplicationStateData
    attempts: tuple[ApplicationAttemptStateData, ...] = ()


class NodeLabelState(Struct, frozen=True):
    """The cluster's labels in the order they were added, and the labels of nodes.

    `given`: (node or whole host (port 0), the label that an administrator assigned; "" for none).
    """

    labels: tuple[NodeLabel, ...] = ()
    given: tuple[tuple[NodeId, str], ...] = ()


class RMState(Struct, frozen=True):
    """The whole content of a store. Applications are in the order of their ids.

    `epoch`: how many ResourceManagers have recovered from this store.
    """

    epoch: int = 0
    applications: tuple[StoredApplication, ...] = ()
    node_labels: NodeLabelState = NodeLabelState()
