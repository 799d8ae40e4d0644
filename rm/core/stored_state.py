"""The records that a ResourceManager's store keeps, for the next ResourceManager.

They are Hadoop's ApplicationStateData, ApplicationAttemptStateData and RMState, and what its FileSystemNodeLabelsStore
keeps. Nodes, resource requests, running containers and the addresses of AMs are not stored: NodeManagers and AMs report
those again.
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
    """Why something is written: it is NEW or its end is FINAL, and its machine waits for that; or it has changed."""

    NEW = "NEW"
    FINAL = "FINAL"
    CHANGE = "CHANGE"


class ApplicationStateData(Struct, frozen=True):
    """An application. Times are wall-clock ms, 0 = not yet.

    `submission` has the current queue and priority; `placed`: where placement rules put it, if any did. `state` is
    None until its end is known, as are `diagnostics` and `finish_ms`.
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
    """An attempt. `state` is None until its end is known, as are the fields after it.

    `*_seconds`: what the containers of its application had used, and lost to preemption, up to its end.
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
    """The cluster's labels in the order they were added, and `given`: nodes and whole hosts (port 0) with the label
    that an administrator gave them, "" for none at all."""

    labels: tuple[NodeLabel, ...] = ()
    given: tuple[tuple[NodeId, str], ...] = ()


class RMState(Struct, frozen=True):
    """All that a store holds. `epoch`: how often a ResourceManager has recovered from it.

    Applications are in the order of their ids.
    """

    epoch: int = 0
    applications: tuple[StoredApplication, ...] = ()
    node_labels: NodeLabelState = NodeLabelState()
