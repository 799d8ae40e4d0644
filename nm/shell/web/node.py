"""Answers about a node, its applications and containers: functions of the core that change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from nm.core import NodeManagerCore
from nm.core.application import NMApplication, NMApplicationState
from nm.core.container import NMContainer
from nm.core.settings import NodeFacts
from wire.web.document import Document, Element, many
from wire.web.errors import bad_request as bad
from wire.web.errors import illegal_argument, not_found
from wire.web.records import application_id, versions
from yarn.errors import InvalidIdException
from yarn.ids import ContainerId, NodeId
from yarn.java.binary32 import f32, truncated

_STATES = "org.apache.hadoop.yarn.server.nodemanager.containermanager.application.ApplicationState"


class ServedNode(Struct, frozen=True):
    """The source of answers. `log_files` lists the names of a container's log files; `started_ms`: the node's."""

    core: NodeManagerCore
    node_id: NodeId
    facts: NodeFacts
    started_ms: int
    checks_virtual_memory: bool
    checks_physical_memory: bool
    log_files: Callable[[NMContainer], list[str]]


def node_info(view: ServedNode) -> Document:
    """The answer to /ws/v1/node/info."""
    facts, health = view.facts, view.core.status.health
    ratio = f32(view.core.context.settings.virtual_memory_ratio)
    types = ["memory-mb (unit=Mi)", "vcores", *(name for name, _ in facts.resource.extra)]
    return Document(
        "nodeInfo",
        Element(
            {
                "healthReport": health.report,
                "totalVmemAllocatedContainersMB": truncated(f32(facts.resource.memory_mb * ratio)),
                "totalPmemAllocatedContainersMB": facts.resource.memory_mb,
                "totalVCoresAllocatedContainers": facts.resource.vcores,
                "vmemCheckEnabled": view.checks_virtual_memory,
                "pmemCheckEnabled": view.checks_physical_memory,
                "lastNodeUpdateTime": health.reported_ms,
                "resourceTypes": ", ".join(types),
                "nodeHealthy": health.healthy,
                **versions("nodeManager", facts.version),
                "id": str(view.node_id),
                "nodeHostName": view.node_id.host,
                "nmStartupTime": view.started_ms,
            }
        ),
    )


def applications(view: ServedNode, state: str | None, user: str | None) -> Iterator[Element]:
    """The applications in this state and of this user; all if those are None. Raises WebException."""
    wanted = None if not state else _state(state)
    if user == "":
        raise bad("Error: You must specify a non-empty string for the user")
    for application in tuple(view.core.applications.values()):
        if wanted not in (None, application.machine.state) or user not in (None, application.user):
            continue
        yield _application(application)


def application(view: ServedNode, text: str) -> Document:
    """An application. Raises WebException."""
    found = view.core.applications.get(application_id(text))
    if found is None:
        raise not_found(f"app with id {text} not found")
    return Document("app", _application(found))


def find_container(view: ServedNode, text: str) -> NMContainer:
    """The container with this id. Raises WebException."""
    found = view.core.containers.get(parse_container_id(text))
    if found is None:
        raise not_found(f"container with id, {text}, not found")
    return found


def parse_container_id(text: str) -> ContainerId:
    """Raises WebException."""
    try:
        return ContainerId.parse(text)
    except InvalidIdException:
        raise bad(f"invalid container id, {text}") from None


def container_element(view: ServedNode, container: NMContainer, base: str) -> Element:
    """A ContainerInfo. `base`: the address of the node's web services."""
    status = container.status()
    return Element(
        {
            "id": str(container.id),
            "state": container.machine.state.name,
            "exitCode": status.exit_status,
            "diagnostics": status.diagnostics,
            "user": container.user,
            "totalMemoryNeededMB": container.token.resource.memory_mb,
            "totalVCoresNeeded": container.token.resource.vcores,
            "executionType": container.token.execution_type.name,
            "containerLogsLink": f"{base}/node/containerlogs/{container.id}/{container.user}",
            "nodeId": str(view.node_id),
            "containerLogFiles": many(view.log_files(container)),
        }
    )


def _application(application: NMApplication) -> Element:
    return Element(
        {
            "id": str(application.id),
            "state": application.machine.state.name,
            "user": application.user,
            "containerids": many(map(str, application.containers)),
        }
    )


def _state(text: str) -> NMApplicationState:
    try:
        return NMApplicationState[text]
    except KeyError:
        raise illegal_argument(f"No enum constant {_STATES}.{text}") from None
