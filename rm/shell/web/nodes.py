"""Answers about nodes (NodeInfo): functions of the core's context that change nothing."""

from __future__ import annotations

from collections.abc import Iterator

from rm.core.context import RMContext
from rm.core.rm_node import RMNode
from rm.core.rm_node_lifecycle import INACTIVE
from wire.web.document import Document, Element, JavaDouble, many
from wire.web.errors import illegal_argument, not_found
from wire.web.records import resource_element
from yarn.errors import InvalidIdException
from yarn.ids import NodeId
from yarn.java.binary32 import f32
from yarn.nodes import ResourceUtilization
from yarn.states import NodeState

_UNUSED = ResourceUtilization()


def wanted_states(text: str | None) -> frozenset[NodeState]:
    """The states of a query; all if there is none. Raises WebException."""
    if text is None:
        return frozenset(NodeState)
    return frozenset(map(_state, text.split(",") if text else [""]))


def nodes(context: RMContext, states: frozenset[NodeState]) -> Iterator[Element]:
    """The nodes in these states; nodes may change between two of them."""
    for node in (*context.nodes.values(), *context.inactive_nodes.values()):
        if node.state in states:
            yield node_element(context, node)


def node(context: RMContext, text: str) -> Document:
    """A node. Raises WebException for an unknown one."""
    return Document("node", node_element(context, find_node(context, text)))


def find_node(context: RMContext, text: str) -> RMNode:
    """The node with this id. Raises WebException."""
    try:
        found = context.node(NodeId.parse(text))
    except InvalidIdException:
        raise illegal_argument(f"Invalid NodeId [{text}]. Expected host:port") from None
    if found is None:
        raise not_found(f"nodeId, {text}, is not found")
    return found


def node_element(context: RMContext, node: RMNode) -> Element:
    """A NodeInfo."""
    label = context.scheduler.labels.label_of(node.node_id)
    whole, containers = node.node_utilization or _UNUSED, node.containers_utilization or _UNUSED
    return Element(
        {
            "rack": node.rack,
            "state": node.state.name,
            "id": str(node.node_id),
            "nodeHostName": node.node_id.host,
            "nodeHTTPAddress": "" if node.state in INACTIVE else node.http_address,
            "lastHealthUpdate": node.health.reported_ms,
            "version": node.nm_version,
            "healthReport": node.health.report,
            **_usage(context, node, whole),
            "numRunningOpportContainers": 0,
            "usedMemoryOpportGB": 0,
            "usedVirtualCoresOpport": 0,
            "numQueuedContainers": 0,
            "nodeLabels": many([label] if label else []),
            "allocationTags": Element({}),
            "resourceUtilization": _utilization(whole, containers),
            **_amounts(context, node),
            "nodeAttributesInfo": Element({}),
            "totalResource": resource_element(node.capability),
        }
    )


def _usage(context: RMContext, node: RMNode, whole: ResourceUtilization) -> dict[str, int | float]:
    """The resources in use on the node; all zero for a node that the scheduler does not have."""
    scheduled = context.scheduler.nodes.get(node.node_id)
    if scheduled is None:
        names = ("numContainers", "usedMemoryMB", "availMemoryMB", "usedVirtualCores", "availableVirtualCores")
        return {**dict.fromkeys(names, 0), "memUtilization": 0.0, "cpuUtilization": 0.0}
    used, free = scheduled.allocated, scheduled.unallocated
    memory_mb = node.physical.memory_mb if node.physical is not None else used.memory_mb + free.memory_mb
    cores = node.physical.vcores if node.physical is not None else 1
    return {
        "numContainers": len(scheduled.containers),
        "usedMemoryMB": used.memory_mb,
        "availMemoryMB": free.memory_mb,
        "usedVirtualCores": used.vcores,
        "availableVirtualCores": free.vcores,
        "memUtilization": _percent(whole.physical_memory_mb, memory_mb),
        "cpuUtilization": _percent(whole.cpu, cores),
    }


def _amounts(context: RMContext, node: RMNode) -> dict[str, Element | None]:
    scheduled = context.scheduler.nodes.get(node.node_id)
    return {
        "usedResource": None if scheduled is None else resource_element(scheduled.allocated),
        "availableResource": None if scheduled is None else resource_element(scheduled.unallocated),
    }


def _utilization(whole: ResourceUtilization, containers: ResourceUtilization) -> Element:
    return Element(
        {
            "nodePhysicalMemoryMB": whole.physical_memory_mb,
            "nodeVirtualMemoryMB": whole.virtual_memory_mb,
            "nodeCPUUsage": JavaDouble(f32(whole.cpu)),
            "aggregatedContainersPhysicalMemoryMB": containers.physical_memory_mb,
            "aggregatedContainersVirtualMemoryMB": containers.virtual_memory_mb,
            "containersCPUUsage": JavaDouble(f32(containers.cpu)),
        }
    )


def _percent(part: float, whole: int) -> float:
    return f32(f32(f32(part) * 100) / whole) if whole > 0 else 0.0


def _state(text: str) -> NodeState:
    try:
        return NodeState[text.upper()]
    except KeyError:
        name = text.upper()
        raise illegal_argument(f"No enum constant org.apache.hadoop.yarn.api.records.NodeState.{name}") from None
