"""Short builders for the tests of am: containers, statuses and replies for one application on hosts n1, n2, ..."""

from __future__ import annotations

from yarn.containers import Container, ContainerStatus, Token
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarn.nodes import NodeHealth, NodeReport
from yarn.protocols.master import AllocateResponse
from yarn.resource import Resource
from yarn.states import ContainerState, NodeState

APP = ApplicationId(1_700_000_000_000, 1)
ATTEMPT = ApplicationAttemptId(APP, 1)
MB_512 = Resource(512, 1)
GB = Resource(1024, 1)


def container_id(number: int) -> ContainerId:
    return ContainerId(ATTEMPT, number)


def node_id(host: str) -> NodeId:
    return NodeId(host, 45454)


def container(
    number: int, host: str = "n1", *, priority: int = 1, size: Resource = GB, request_id: int = 0
) -> Container:
    token = Token(b"identifier", b"password", "ContainerToken", str(node_id(host)))
    return Container(
        container_id(number), node_id(host), f"{host}:8042", size, priority, token, allocation_request_id=request_id
    )


def ended(number: int, exit_status: int = 0, diagnostics: str = "") -> ContainerStatus:
    return ContainerStatus(container_id(number), ContainerState.COMPLETE, exit_status, diagnostics)


def node_report(host: str, state: NodeState) -> NodeReport:
    return NodeReport(node_id(host), state, f"{host}:8042", "/default-rack", Resource(0, 0), GB, 0, NodeHealth())


def reply(
    response_id: int = 1,
    *,
    allocated: tuple[Container, ...] = (),
    completed: tuple[ContainerStatus, ...] = (),
    headroom: Resource = GB,
) -> AllocateResponse:
    return AllocateResponse(response_id, headroom, cluster_nodes=2, allocated=allocated, completed=completed)
