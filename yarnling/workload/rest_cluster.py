"""Reads what a ResourceManager reports of its cluster: the answers to GET /ws/v1/cluster/nodes and .../scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field, model_validator

from yarn.applications import DEFAULT_PARTITION, LABEL_NOT_SET
from yarn.resource import MEMORY_MB, VCORES, Resource
from yarnling.workload.documents import Faults, LenientSection, json_documents
from yarnling.workload.limits import MEMORY_MB_MAX, NODES_MAX, Name, Text
from yarnling.workload.model import WorkloadNode, WorkloadNodes
from yarnling.workload.rest_answers import with_quoted_constants

LEFT_OUT = frozenset({"LOST", "DECOMMISSIONED", "SHUTDOWN", "REBOOTED", "DECOMMISSIONING"})
"""States of nodes that offer nothing, or soon will not. An unhealthy node is expected back."""
_EMPTY = "without memory and vcores"

ReportedAmount = Annotated[int, Field(le=MEMORY_MB_MAX)]


def one_or_list(value: Any) -> Any:
    """The list in an answer: Jersey writes a list of one item as that item, and leaves out an empty list."""
    return [] if value is None else value if isinstance(value, list) else [value]


def label_of(reported: str | None) -> str:
    """The label that a ResourceManager reports; "" for the default partition, and if it reports that there is none."""
    label = (reported or "").strip()
    return "" if label in (LABEL_NOT_SET, DEFAULT_PARTITION) else label


class _Information(LenientSection):
    name: Name
    value: ReportedAmount


class ReportedTypes(LenientSection):
    """Amounts of all resource types."""

    information: Annotated[tuple[_Information, ...], Field(alias="resourceInformation", max_length=100)] = ()

    def extra(self) -> dict[str, int]:
        """{resource type: amount}, without memory and vcores, and without amounts of 0."""
        return {
            each.name: each.value for each in self.information if each.value and each.name not in (MEMORY_MB, VCORES)
        }


class _Total(LenientSection):
    memory: ReportedAmount
    vcores: Annotated[ReportedAmount, Field(alias="vCores")]
    informations: Annotated[ReportedTypes, Field(alias="resourceInformations")] = ReportedTypes()

    def record(self) -> Resource:
        return Resource.of({**self.informations.extra(), "memory-mb": self.memory, "vcores": self.vcores})


class _Node(LenientSection):
    id: Text
    host: Annotated[Name, Field(alias="nodeHostName")]
    rack: Name = "/default-rack"
    state: Text = "RUNNING"
    labels: Annotated[tuple[str, ...], Field(alias="nodeLabels", max_length=100)] = ()
    total: Annotated[_Total | None, Field(alias="totalResource")] = None
    used_mb: Annotated[ReportedAmount, Field(alias="usedMemoryMB")] = 0
    free_mb: Annotated[ReportedAmount, Field(alias="availMemoryMB")] = 0
    used_vcores: Annotated[ReportedAmount, Field(alias="usedVirtualCores")] = 0
    free_vcores: Annotated[ReportedAmount, Field(alias="availableVirtualCores")] = 0

    @property
    def resource(self) -> Resource:
        """The size of the node; Hadoop before 3.3 reports only what is used and what is free."""
        if self.total is not None:
            return self.total.record()
        return Resource(self.used_mb + self.free_mb, self.used_vcores + self.free_vcores)

    @property
    def left_out_as(self) -> str:
        """The reason why the workload lacks the node: its state, or that it has no resources; "" if it has the node."""
        return self.state if self.state in LEFT_OUT else _EMPTY if self.resource.is_none() else ""


class _Nodes(LenientSection):
    node: Annotated[list[_Node], Field(min_length=1, max_length=NODES_MAX)]

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, entry: Any) -> Any:
        return {"node": one_or_list(entry.get("node"))} if isinstance(entry, dict) else entry


class _NodesAnswer(LenientSection):
    nodes: _Nodes


def read_cluster_nodes(text: str, source: str) -> WorkloadNodes:
    """The nodes of an answer that offer something. Raises ConfigurationException with all faults.

    Several NodeManagers of one host, as in a test cluster, are told apart by their ports.
    """
    faults = Faults(source, first=0)
    line, document = next(json_documents(with_quoted_constants(text), source))
    answer = faults.checked(_NodesAnswer, document, "", line)
    reported = answer.nodes.node if answer else []
    nodes = tuple(_records(reported))
    if answer and not nodes:
        faults.add("nodes.node", "has no node that runs", "save the answer while nodes run", line=line)
    faults.refuse()
    return WorkloadNodes(nodes, tuple(_assumptions(reported)))


def _records(nodes: list[_Node]) -> Iterator[WorkloadNode]:
    hosts = Counter(node.host for node in nodes)
    for node in nodes:
        if not node.left_out_as:
            host = node.host if hosts[node.host] == 1 else node.id.replace(":", "-")
            yield WorkloadNode(host, node.resource, node.rack, label_of(node.labels[0] if node.labels else None))


def _assumptions(nodes: list[_Node]) -> Iterator[str]:
    left_out = Counter(node.left_out_as for node in nodes if node.left_out_as)
    if left_out:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(left_out.items()))
        also = " Nodes that are being decommissioned may still run containers." if left_out["DECOMMISSIONING"] else ""
        yield f"{left_out.total()} of {len(nodes)} nodes are left out: {kinds}.{also}"
    if unhealthy := sum(node.state == "UNHEALTHY" and not node.left_out_as for node in nodes):
        yield f"{unhealthy} of {len(nodes)} nodes are UNHEALTHY: they are kept as if they were healthy."
