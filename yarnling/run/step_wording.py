"""Words for steps of cores: events, effects, and of each request and reply the fields that matter to a learner."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from am.core.actions import Finish, Launch, ReleaseContainer, RequestContainer
from am.core.events import (
    ContainersAllocated,
    ContainersCompleted,
    ContainerStarted,
    ContainerStartFailed,
    HeartbeatDone,
    NodesUpdated,
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
from yarn.containers import ANY, Container, ContainerStatus, ResourceRequest
from yarn.ids import ContainerId
from yarn.machine import Tick
from yarn.protocols.client import GetNewApplicationResponse
from yarn.protocols.master import AllocateRequest, AllocateResponse, RegisterApplicationMasterResponse
from yarn.protocols.tracker import (
    NodeHeartbeatRequest,
    NodeHeartbeatResponse,
    RegisterNodeManagerRequest,
    RegisterNodeManagerResponse,
)
from yarn.states import ContainerState, NodeAction
from yarnling.run.names import Names, am, amount, host, node

LISTED_MAX = 3
"""The number of containers that are named in one message; the others are counted."""


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


def listed(names: Sequence[str]) -> str:
    """`a, b, c and 4 more`."""
    more = len(names) - LISTED_MAX
    return ", ".join(names[:LISTED_MAX]) + (f" and {more} more" if more > 0 else "")


class Wording:
    """Words for the messages of one run."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def node_registration(self, request: RegisterNodeManagerRequest) -> str:
        parts = [f"node {node(request.node_id)} with {amount(request.resource)}"]
        if request.containers:
            parts.append(f"still running {self._ids(status.container_id for status in request.containers)}")
        return "; ".join(parts)

    def node_registration_reply(self, reply: RegisterNodeManagerResponse) -> str:
        return reply.action.name + (f": {reply.diagnostics.strip()}" if reply.diagnostics else "")

    def node_heartbeat(self, request: NodeHeartbeatRequest) -> str:
        parts = [f"response id {request.response_id}"]
        for state in ContainerState:
            ids = [status.container_id for status in request.containers if status.state is state]
            if ids:
                parts.append(f"{state.name} {self._ids(ids)}")
        return "; ".join(parts)

    def node_heartbeat_reply(self, reply: NodeHeartbeatResponse) -> str:
        parts = [f"response id {reply.response_id}"]
        if reply.action is not NodeAction.NORMAL:
            parts.append(f"{reply.action.name}: {reply.diagnostics}")
        if reply.containers_to_clean_up:
            parts.append(f"stop {self._ids(reply.containers_to_clean_up)}")
        if reply.applications_to_clean_up:
            ended = listed([self._names.application(each) for each in reply.applications_to_clean_up])
            parts.append(f"clean up application {ended}")
        return "; ".join(parts)

    def am_registration_reply(self, reply: RegisterApplicationMasterResponse) -> str:
        return f"queue {reply.queue}, largest container {amount(reply.maximum_capability)}"

    def allocate(self, request: AllocateRequest) -> str:
        parts = [f"response id {request.response_id}"]
        parts += [self._request(ask) for ask in request.asks]
        if request.releases:
            parts.append(f"releases {self._ids(request.releases)}")
        return "; ".join(parts)

    def allocate_reply(self, reply: AllocateResponse) -> str:
        parts = [f"response id {reply.response_id}", f"headroom {reply.headroom.memory_mb} MB"]
        if reply.allocated:
            parts.append(f"allocated {self._allocated(reply.allocated)}")
        if reply.completed:
            parts.append(f"ended {self._ended(reply.completed)}")
        if reply.preemption is not None:
            parts.append(f"will be preempted: {self._ids((*reply.preemption.strict, *reply.preemption.negotiable))}")
        if reply.containers_from_previous_attempts:
            kept = self._ids(container.id for container in reply.containers_from_previous_attempts)
            parts.append(f"from before {kept}")
        return "; ".join(parts)

    def new_application_reply(self, reply: GetNewApplicationResponse) -> str:
        largest = amount(reply.maximum_capability)
        return f"application {reply.application_id.id}; largest container {largest}"

    def _request(self, ask: ResourceRequest) -> str:
        where = "anywhere (*)" if ask.resource_name == ANY else f"on {host(ask.resource_name)}"
        strict = "" if ask.relax_locality else ", nowhere else"
        return f"requests {ask.count} x {amount(ask.capability)} {where}{strict}"

    def _allocated(self, containers: Iterable[Container]) -> str:
        places = Counter(node(container.node_id) for container in containers)
        if sum(places.values()) <= LISTED_MAX:
            return ", ".join(f"{self._names.container(each.id)} on {node(each.node_id)}" for each in containers)
        return ", ".join(f"{count} on {name}" for name, count in sorted(places.items()))

    def _ended(self, statuses: Sequence[ContainerStatus]) -> str:
        return listed([f"{self._names.container(each.container_id)} (exit {each.exit_status})" for each in statuses])

    def _ids(self, ids: Iterable[ContainerId]) -> str:
        return listed([self._names.container(container_id) for container_id in ids])


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
        case NodesUpdated(reports):
            changed = [f"{node(each.node_id)} {each.state.name}" for each in reports]
            return f"it learns of nodes that have changed: {listed(changed)}"
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
