"""ApplicationClientProtocol: a client and the RM; the messages that are more than an id or a record."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from yarn.ids import ApplicationId, NodeId
from yarn.resource import Resource
from yarn.states import QueueACL


class GetNewApplicationResponse(Struct, frozen=True):
    """A fresh id, and the largest container there can be now."""

    application_id: ApplicationId
    maximum_capability: Resource


class KillApplicationResponse(Struct, frozen=True):
    """False: the kill is under way, ask again."""

    is_kill_completed: bool


class KillApplicationRequest(Struct, frozen=True):
    """Which application to end; `diagnostics` is the client's reason, empty if it gave none."""

    application_id: ApplicationId
    diagnostics: str = ""


class QueueInfoRequest(Struct, frozen=True):
    """Which queue (name or path), with which of its applications and children; `recursive`: all below."""

    queue: str
    applications: bool = False
    children: bool = False
    recursive: bool = False


class MoveApplicationRequest(Struct, frozen=True):
    """Which application is to go to which queue (a leaf, by name or path)."""

    application_id: ApplicationId
    queue: str


class UpdatePriorityRequest(Struct, frozen=True):
    """The priority that an application is to have from now on."""

    application_id: ApplicationId
    priority: int


class UpdateTimeoutsRequest(Struct, frozen=True):
    """When an application's lifetime is to end, as yarn.times writes it; None: the caller named no timeout."""

    application_id: ApplicationId
    lifetime_ends: str | None


class QueueUserAcls(Struct, frozen=True):
    """What the caller may do in the queue of this path."""

    queue: str
    acls: frozenset[QueueACL]


class ResourceTypeInfo(Struct, frozen=True):
    """A resource type of the cluster; all are counted. `units`: `Mi` for memory-mb, else as configured."""

    name: str
    units: str = ""


NodesToLabels: TypeAlias = tuple[tuple[NodeId, tuple[str, ...]], ...]
"""(node, its labels); port 0 stands for a whole host."""

LabelsToNodes: TypeAlias = tuple[tuple[str, tuple[NodeId, ...]], ...]
"""(label, who has it); port 0 stands for a whole host."""
