"""The effects of the ResourceManager's core: actions for the shell, which carries them out in order."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from rm.core.stored_state import ApplicationAttemptStateData, ApplicationStateData, NodeLabelState, Saving
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import Container
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.machine import InvariantsBroken, Refuse, Reply, StateChanged, Warn


class LaunchAM(Struct, frozen=True):
    """Start the attempt's AM in `container` (AMLauncher LAUNCH); the shell answers AMLaunched or AMLaunchFailed."""

    attempt_id: ApplicationAttemptId
    container: Container
    context: ApplicationSubmissionContext
    user: str
    submit_time_ms: int


class CleanUpAM(Struct, frozen=True):
    """Stop the AM's container on its NM (AMLauncher CLEANUP).

    A failure is ignored: the reply to the node's next heartbeat orders the same.
    """

    attempt_id: ApplicationAttemptId
    container_id: ContainerId
    node_id: NodeId


class SaveApplication(Struct, frozen=True):
    """Store the application's record, replacing an older one.

    The shell answers with ApplicationSaved once it is durable.
    """

    application: ApplicationStateData
    saving: Saving


class SaveAttempt(Struct, frozen=True):
    """Store the attempt's record, replacing an older one. The shell answers with AttemptSaved once it is durable."""

    attempt: ApplicationAttemptStateData
    saving: Saving


class RemoveApplication(Struct, frozen=True):
    """Delete the stored records of the application and its attempts."""

    application_id: ApplicationId


class SaveNodeLabels(Struct, frozen=True):
    """Store the labels, replacing older ones. No event follows; the reply to the call waits until it is durable."""

    node_labels: NodeLabelState


class Preempted(Struct, frozen=True):
    """For the log: a container is preempted. `step`, `reason` and `serves` are as in PreemptionDecided."""

    container_id: ContainerId
    step: str
    reason: str
    serves: str


StoreEffect: TypeAlias = SaveApplication | SaveAttempt | RemoveApplication | SaveNodeLabels
"""Effects for the state store. Replies of the same step wait until they are durable."""

Effect: TypeAlias = (
    Reply | Refuse | LaunchAM | CleanUpAM | StoreEffect | StateChanged | Warn | Preempted | InvariantsBroken
)
