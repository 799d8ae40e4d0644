"""Words for the events and effects of cores that are not calls of the ResourceManager."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from am.core.actions import Finish, Launch, ReleaseContainer, RequestContainer
from am.core.events import (
    ContainersAllocated,
    ContainersCompleted,
    ContainerStarted,
    ContainerStartFailed,
    HeartbeatDone,
    PreemptionAsked,
    Registered,
    Resynced,
)
from am.core.reconciliation import QueryNode
from nm.core.effects import LaunchContainer, SendHeartbeat, SendRegistration, SignalProcess
from nm.core.events import (
    ContainerExited,
    ContainerLaunched,
    GetContainerStatuses,
    HealthChecked,
    NodeHeartbeatAnswered,
    NodeHeartbeatFailed,
    NodeRegistered,
    Start,
)
from rm.core.effects import CleanUpAM, LaunchAM, Preempted, SaveApplication, SaveAttempt
from rm.core.events import AMLaunched, AMLaunchFailed, ApplicationSaved, AttemptSaved, HostListsRead, StateLoaded
from yarn.containers import ANY
from yarn.machine import Tick
from yarnling.lessons.names import Names, am, amount, host, node
from yarnling.lessons.wording import Wording, listed

_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")
_UNSPOKEN = frozenset(
    {
        "MonitorContainer",
        "DeleteContainerFiles",
        "DeleteApplicationFiles",
        "DeleteApplicationLogs",
        "ForgetApplicationKeys",
        "AggregateLogs",
        "InitAuxiliaryService",
        "StopAuxiliaryServices",
        "Preempted",
        "ChangeMonitoring",
    }
)
"""Effects that only tidy up, or that another line speaks of."""


def event_words(event: object, effects: Sequence[object], names: Names, words: Wording) -> str:
    """The event that a core handled."""
    match event:
        case Tick():
            sends = any(isinstance(effect, SendHeartbeat) for effect in effects)
            return "it is time for the next heartbeat" if sends else "a timer has expired"
        case Start():
            return "the NodeManager starts"
        case NodeRegistered(response):
            return f"the reply to its registration arrives: {words.node_registration_reply(response)}"
        case NodeHeartbeatAnswered(response):
            return f"the reply to its heartbeat arrives: {words.node_heartbeat_reply(response)}"
        case NodeHeartbeatFailed(problem):
            return f"its heartbeat has failed: {problem}"
        case GetContainerStatuses(_, caller, container_ids):
            asked = listed([names.container(each) for each in container_ids])
            return (
                f"getContainerStatuses from {am(names.application(caller.attempt_id.application_id))} arrives: {asked}"
            )
        case HealthChecked(health):
            return f"the node is {'healthy' if health.healthy else f'unhealthy: {health.report}'}"
        case ContainerLaunched(container_id):
            return f"the process of {names.container(container_id)} has started"
        case ContainerExited(container_id, exit_code=exit_code):
            return f"the process of {names.container(container_id)} has exited with {exit_code}"
        case _:
            return _rm_event(event, names) or _am_event(event, names) or _generic(event, names)


def _rm_event(event: object, names: Names) -> str:
    match event:
        case AMLaunched(attempt_id):
            return f"the NodeManager has started the AM of {names.attempt(attempt_id)}"
        case AMLaunchFailed(attempt_id, diagnostics):
            return f"the AM of {names.attempt(attempt_id)} could not be started: {diagnostics}"
        case ApplicationSaved(application_id):
            return f"the record of {names.application(application_id)} is stored"
        case AttemptSaved(attempt_id):
            return f"the record of {names.attempt(attempt_id)} is stored"
        case StateLoaded():
            return "the ResourceManager starts, and has read its state store"
        case HostListsRead(lists):
            excluded = f", which exclude {len(lists.excluded)}" if lists.excluded else ""
            return f"the ResourceManager starts, and reads its lists of hosts{excluded}"
        case _:
            return ""


def _am_event(event: object, names: Names) -> str:
    match event:
        case Registered(maximum, queue):
            return f"the reply to its registration arrives: queue {queue}, largest container {amount(maximum)}"
        case Resynced():
            return "it has registered again: the ResourceManager has restarted"
        case ContainersAllocated(allocations):
            got = [f"{names.container(each.container.id)} on {node(each.container.node_id)}" for each in allocations]
            return f"it is given {listed(got)}"
        case ContainersCompleted(statuses):
            ended = [f"{names.container(each.container_id)} (exit {each.exit_status})" for each in statuses]
            return f"it learns that {listed(ended)} ended"
        case ContainerStarted(container_id):
            return f"the NodeManager has accepted {names.container(container_id)}"
        case ContainerStartFailed(container_id, diagnostics):
            return f"{names.container(container_id)} could not be started: {diagnostics}"
        case PreemptionAsked(preemption):
            ids = (*preemption.strict, *preemption.negotiable)
            return f"it is asked to give back {listed([names.container(each) for each in ids])}"
        case HeartbeatDone(headroom):
            return f"the reply to its heartbeat is complete: headroom {amount(headroom)}"
        case _:
            return ""


def effect_words(effect: object, names: Names, words: Wording) -> str:
    """The action that a core had its process do; "" for what only tidies up."""
    match effect:
        case SendHeartbeat(request):
            return f"sends nodeHeartbeat: {words.node_heartbeat(request)}"
        case SendRegistration(request):
            return f"sends registerNodeManager: {words.node_registration(request)}"
        case LaunchContainer(container_id=container_id):
            return f"starts the process of {names.container(container_id)}"
        case SignalProcess(container_id, _, signal):
            return f"sends {signal.name} to {names.container(container_id)}"
        case LaunchAM(attempt_id, container):
            return f"starts the AM of {names.attempt(attempt_id)} on {node(container.node_id)}"
        case CleanUpAM(attempt_id, _, node_id):
            return f"has {node(node_id)} stop the AM of {names.attempt(attempt_id)}"
        case SaveApplication(application):
            return f"stores the record of {names.application(application.submission.application_id)}"
        case SaveAttempt(attempt):
            return f"stores the record of {names.attempt(attempt.attempt_id)}"
        case Preempted():
            return ""
        case _:
            return _action(effect, names)


def _action(action: object, names: Names) -> str:
    match action:
        case RequestContainer(request):
            where = "" if not request.nodes else f" on {listed([host(each) for each in request.nodes])}"
            return f"requests {amount(request.capability)}{where or f' anywhere ({ANY})'}"
        case QueryNode(node_id):
            return f"asks {node(node_id)} which of its containers still run"
        case ReleaseContainer(container_id):
            return f"releases {names.container(container_id)}"
        case Launch(container):
            return f"starts {names.container(container.id)} on {node(container.node_id)}"
        case Finish(final_status):
            return f"unregisters with {final_status.name}"
        case _:
            return "" if type(action).__name__ in _UNSPOKEN else _generic(action, names)


def _generic(record: object, names: Names) -> str:
    """The name of the record in words, and the container that it is about."""
    said = _WORDS.sub(" ", type(record).__name__)
    container_id = getattr(record, "container_id", None) if isinstance(record, Struct) else None
    return said if container_id is None else f"{said} {names.container(container_id)}"
