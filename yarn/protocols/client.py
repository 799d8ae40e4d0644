"""ApplicationClientProtocol: a client and the RM; the messages that are more than an id or a record."""

from __future__ import annotations

from typing import TypeAlias

from yarn.ids import ApplicationId, NodeId
from yarn.records import dataclass
from yarn.resource import Resource
from yarn.states import QueueACL


@dataclass(frozen=True, slots=True)
class GetNewApplicationResponse:
    """A fresh id, and the largest container there can be now."""

    application_id: ApplicationId
    maximum_capability: Resource


@dataclass(frozen=True, slots=True)
class KillApplicationResponse:
    """False: the kill is under way, ask again."""

    is_kill_completed: bool


@dataclass(frozen=True, slots=True)
class KillApplicationRequest:
    """Which application to end; `diagnostics` is the client's reason, empty if it gave none."""

    application_id: ApplicationId
    diagnostics: str = ""


@dataclass(frozen=True, slots=True)
class QueueInfoRequest:
    """Which queue (name or path), with which of its applications and children; `recursive`: all below."""

    queue: str
    applications: bool = False
    children: bool = False
    recursive: bool = False


@dataclass(frozen=True, slots=True)
class MoveApplicationRequest:
    """Which application is to go to which queue (a leaf, by name or path)."""

    application_id: ApplicationId
    queue: str


@dataclass(frozen=True, slots=True)
class UpdatePriorityRequest:
    """The priority that an application is to have from now on."""

    application_id: ApplicationId
    priority: int


@dataclass(frozen=True, slots=True)
class UpdateTimeoutsRequest:
    """When an application's lifetime is to end, as yarn.times writes it; None: the caller named no timeout."""

    application_id: ApplicationId
    lifetime_ends: str | None


@dataclass(frozen=True, slots=True)
class QueueUserAcls:
    """What the caller may do in the queue of this path."""

    queue: str
    acls: frozenset[QueueACL]


@dataclass(frozen=True, slots=True)
class ResourceTypeInfo:
    """A resource type of the cluster; all are counted. `units`: `Mi` for memory-mb, else as configured."""

    name: str
    units: str = ""


NodesToLabels: TypeAlias = tuple[tuple[NodeId, tuple[str, ...]], ...]
"""(node, its labels); port 0 stands for a whole host."""

LabelsToNodes: TypeAlias = tuple[tuple[str, tuple[NodeId, ...]], ...]
"""(label, who has it); port 0 stands for a whole host."""
