"""A call whose reply was lost is sent again: the second delivery leaves the state as the first one did (I-27).

Every event that is an RPC has a row here, or a reason among `NOT_REPEATABLE`.
"""

from __future__ import annotations

import contextlib
import typing
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from rm.core import events
from rm.core.events import (
    AddClusterNodeLabels,
    Allocate,
    Event,
    FailApplicationAttempt,
    FinishApplicationMaster,
    GetNewApplication,
    KillApplication,
    MoveApplication,
    NodeHeartbeat,
    PlayedHeartbeat,
    RefreshClusterMaxPriority,
    RefreshNodes,
    RefreshQueues,
    RegisterApplicationMaster,
    RegisterNode,
    RemoveClusterNodeLabels,
    ReplaceLabelsOnNodes,
    SignalContainer,
    SubmitApplication,
    UnregisterNode,
    UpdateApplicationPriority,
    UpdateApplicationTimeouts,
    UpdateNodeResource,
)
from rm.core.host_lists import HostLists
from tests.rm.builders import ONE_QUEUE, RM, START_MS, done, resource_request
from tests.rm.state_digest import digest
from yarn.applications import ApplicationSubmissionContext
from yarn.configuration import Configuration
from yarn.containers import NMContainerStatus
from yarn.errors import YarnException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.nodes import NodeLabel
from yarn.protocols.admin import ResourceOption
from yarn.protocols.master import (
    AllocateRequest,
    FinishApplicationMasterRequest,
    RegisterApplicationMasterRequest,
)
from yarn.protocols.tracker import RegisterNodeManagerRequest
from yarn.resource import Resource
from yarn.states import ContainerState, DecommissionType, FinalApplicationStatus

ROOT = "yarn.scheduler.capacity.root"
QUEUES = {
    f"{ROOT}.queues": "default,b",
    f"{ROOT}.default.capacity": "50",
    f"{ROOT}.b.capacity": "50",
    "yarn.node-labels.enabled": "true",
}

NOT_REPEATABLE = {
    GetNewApplication: "each call draws an id; one that nobody uses costs nothing",
    MoveApplication: "a move into the queue where the application is drops its user's entry there, as in recordings of "
    "Hadoop (I-06); all else stays",
    PlayedHeartbeat: "only played nodes of simulations send it, whose calls are delivered once",
    SignalContainer: "the signal is sent to the container once for each call (ClientRMService.signalToContainer)",
}


SCENE_APP = ApplicationId(START_MS, 1)
ATTEMPT = ApplicationAttemptId(SCENE_APP, 1)
NODE = NodeId("n1", 45454)
LATER_MS = START_MS + 10**9


def scene(*, registered: bool) -> RM:
    """Two nodes; ann's application runs. If its AM has `registered`, it had two containers and one has ended."""
    rm = RM(QUEUES)
    rm.node("n1")
    rm.node("n2")
    rm.send(AddClusterNodeLabels(rm.call(), (NodeLabel("old"),)))
    rm.send(RefreshClusterMaxPriority(rm.call(), 9))
    assert rm.submit() == SCENE_APP
    rm.launch(SCENE_APP)
    if registered:
        rm.register(SCENE_APP)
        rm.beat()
        _, ended = rm.get(SCENE_APP, 2)
        rm.beat(ended=[done(ended.id)])
    return rm


def register_node(rm: RM, call: int) -> Event:
    nm = rm.nodes["n1"]
    running = tuple(
        NMContainerStatus(container_id, ContainerState.RUNNING, resource=Resource(1024, 1), creation_time_ms=rm.now_ms)
        for container_id in nm.running
    )
    request = RegisterNodeManagerRequest(NODE, 8042, nm.resource, containers=running, running_applications=(SCENE_APP,))
    return RegisterNode(call, request, "/default-rack")


def register_am(rm: RM, call: int) -> Event:
    return RegisterApplicationMaster(call, ATTEMPT, RegisterApplicationMasterRequest("h", 1))


def allocate(rm: RM, call: int) -> Event:
    asks = (resource_request(2), resource_request(1, 2048, priority=3))
    return Allocate(call, ATTEMPT, AllocateRequest(rm._response_ids[ATTEMPT], asks=asks, blacklist_additions=("n7",)))


def finish(rm: RM, call: int) -> Event:
    return FinishApplicationMaster(call, ATTEMPT, FinishApplicationMasterRequest(FinalApplicationStatus.SUCCEEDED))


def submit(rm: RM, call: int) -> Event:
    context = ApplicationSubmissionContext(ApplicationId(START_MS, 9), queue="b", resource=Resource(1024, 1))
    return SubmitApplication(call, "ann", context)


def heartbeat(rm: RM, call: int) -> Event:
    return NodeHeartbeat(call, rm.nodes["n1"].request([done(ContainerId(ATTEMPT, 2))]))


def refresh_queues(rm: RM, call: int) -> Event:
    return RefreshQueues(call, Configuration.of({**ONE_QUEUE, **QUEUES, f"{ROOT}.b.maximum-capacity": "60"}))


CALLS: dict[type, Callable[[RM, int], Event]] = {
    SubmitApplication: submit,
    KillApplication: lambda rm, call: KillApplication(call, SCENE_APP, "killed", "ann"),
    FailApplicationAttempt: lambda rm, call: FailApplicationAttempt(call, ATTEMPT, "ann"),
    UpdateApplicationPriority: lambda rm, call: UpdateApplicationPriority(call, SCENE_APP, 5, "ann"),
    UpdateApplicationTimeouts: lambda rm, call: UpdateApplicationTimeouts(call, SCENE_APP, LATER_MS, "ann"),
    RegisterApplicationMaster: register_am,
    Allocate: allocate,
    FinishApplicationMaster: finish,
    RegisterNode: register_node,
    NodeHeartbeat: heartbeat,
    UnregisterNode: lambda rm, call: UnregisterNode(call, NODE),
    RefreshQueues: refresh_queues,
    UpdateNodeResource: lambda rm, call: UpdateNodeResource(call, ((NODE, ResourceOption(Resource(16384, 16))),)),
    AddClusterNodeLabels: lambda rm, call: AddClusterNodeLabels(call, (NodeLabel("new"),)),
    RemoveClusterNodeLabels: lambda rm, call: RemoveClusterNodeLabels(call, ("old",)),
    ReplaceLabelsOnNodes: lambda rm, call: ReplaceLabelsOnNodes(call, ((NodeId("n2", 0), ("old",)),)),
    RefreshNodes: lambda rm, call: RefreshNodes(call, HostLists(excluded=(("n2", None),)), DecommissionType.NORMAL, -1),
    RefreshClusterMaxPriority: lambda rm, call: RefreshClusterMaxPriority(call, 3),
}


def test_every_call_has_a_row_or_a_reason() -> None:
    kinds = {kind for kind in typing.get_args(events.Event) if "call" in kind.__annotations__}
    assert kinds == CALLS.keys() | NOT_REPEATABLE.keys()
    assert not CALLS.keys() & NOT_REPEATABLE.keys()


@pytest.mark.parametrize("kind", CALLS, ids=lambda kind: kind.__name__)
def test_a_second_delivery_changes_nothing(kind: type) -> None:
    """The second may be refused, like the removal of a label that is already removed."""
    rm = scene(registered=kind is not RegisterApplicationMaster)
    before = digest(rm.core)
    event: Any = CALLS[kind](rm, rm.call())
    rm.send(event)
    once = digest(rm.core)
    assert once != before, "the first delivery must change something, otherwise the test proves nothing"
    with contextlib.suppress(YarnException):
        rm.send(replace(event, call=rm.call()))
    assert digest(rm.core) == once
