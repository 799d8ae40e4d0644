"""What the ResourceManager's core has its shell do. The shell carries effects out in order."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from rm.core.stored_state import ApplicationAttemptStateData, ApplicationStateData, NodeLabelState, Saving
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import Container
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.machine import InvariantsBroken, Refuse, Reply, StateChanged, Warn


class LaunchAM(Struct, frozen=True):
    """Start the attempt's AM in `container` (AMLauncher LAUNCH); answer with AMLaunched or AMLaunchFailed."""

    attempt_id: ApplicationAttemptId
    container: Container
    context: ApplicationSubmissionContext
    user: str
    submit_time_ms: int


class CleanUpAM(Struct, frozen=True):
    """Stop the AM's container on its NM (AMLauncher CLEANUP); best effort, as the node's heartbeat does it too."""

    attempt_id: ApplicationAttemptId
    container_id: ContainerId
    node_id: NodeId


class SaveApplication(Struct, frozen=True):
    """Replace what is stored of the application; answer with ApplicationSaved once it is durable."""

    application: ApplicationStateData
    saving: Saving


class SaveAttempt(Struct, frozen=True):
    """Replace what is stored of the attempt; answer with AttemptSaved once it is durable."""

    attempt: ApplicationAttemptStateData
    saving: Saving


class RemoveApplication(Struct, frozen=True):
    """Delete what is stored of the application and its attempts."""

    application_id: ApplicationId


class SaveNodeLabels(Struct, frozen=True):
    """Replace the stored labels; only the reply to the call waits for it."""

    node_labels: NodeLabelState


class Preempted(Struct, frozen=True):
    """For the log: preemption acts on a container. `step`, `reason` and `serves` are as in PreemptionDecided."""

    container_id: ContainerId
    step: str
    reason: str
    serves: str


StoreEffect: TypeAlias = SaveApplication | SaveAttempt | RemoveApplication | SaveNodeLabels
"""Effects for the state store. Replies of the same step wait until they are durable."""

Effect: TypeAlias = (
    Reply | Refuse | LaunchAM | CleanUpAM | StoreEffect | StateChanged | Warn | Preempted | InvariantsBroken
)
