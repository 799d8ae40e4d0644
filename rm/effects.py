"""Everything that the ResourceManager's core wants done. The shell carries effects out in order."""

from __future__ import annotations

from typing import TypeAlias

from rm.events import Call
from rm.stored_state import ApplicationAttemptStateData, ApplicationStateData, NodeLabelState, Saving
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import Container
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.records import dataclass


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer call `call` with `value` (the response record of its protocol, or None)."""

    call: Call
    value: object


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer call `call` with an error; nothing of the call was applied."""

    call: Call
    error: YarnException


@dataclass(frozen=True, slots=True)
class LaunchMaster:
    """Start the attempt's master in `container` (AMLauncher LAUNCH); answer with MasterLaunched or -LaunchFailed."""

    attempt_id: ApplicationAttemptId
    container: Container
    context: ApplicationSubmissionContext
    user: str
    submit_time_ms: int


@dataclass(frozen=True, slots=True)
class CleanUpMaster:
    """Stop the master's container on its NM (AMLauncher CLEANUP); best effort, the node's heartbeat does it too."""

    attempt_id: ApplicationAttemptId
    container_id: ContainerId
    node_id: NodeId


@dataclass(frozen=True, slots=True)
class SaveApplication:
    """Write this in the place of what is stored of the application; answer with ApplicationSaved once it is durable."""

    application: ApplicationStateData
    saving: Saving


@dataclass(frozen=True, slots=True)
class SaveAttempt:
    """Write this in the place of what is stored of the attempt; answer with AttemptSaved once it is durable."""

    attempt: ApplicationAttemptStateData
    saving: Saving


@dataclass(frozen=True, slots=True)
class RemoveApplication:
    """Forget what is stored of the application and its attempts."""

    application_id: ApplicationId


@dataclass(frozen=True, slots=True)
class SaveNodeLabels:
    """Write these in the place of the labels that are stored; nothing waits for it but the call."""

    node_labels: NodeLabelState


@dataclass(frozen=True, slots=True)
class StateChanged:
    """For the log: `kind` (RMApp, RMAppAttempt, RMNode) `subject` went from `source` to `target` on `event`."""

    kind: str
    subject: str
    event: str
    source: str
    target: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Warn:
    """For the log: something an operator should know that is no state change."""

    text: str


@dataclass(frozen=True, slots=True)
class InvariantsBroken:
    """The state is not what it can be: say how, keep the event log, and end. The last effect of its step."""

    violations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Preempted:
    """For the log: preemption acts on a container. `step`: told, ended or killable; `reason` and `serves`: why."""

    container_id: ContainerId
    step: str
    reason: str
    serves: str


StoreEffect: TypeAlias = SaveApplication | SaveAttempt | RemoveApplication | SaveNodeLabels
"""What is for the state store. Answers given in the same step wait until it is durable."""

Effect: TypeAlias = (
    Reply | Refuse | LaunchMaster | CleanUpMaster | StoreEffect | StateChanged | Warn | Preempted | InvariantsBroken
)
