"""ApplicationClientProtocol: its requests and replies, except ids and reports."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from yarn.ids import ApplicationId, NodeId
from yarn.resource import Resource
from yarn.states import QueueACL


class GetNewApplicationResponse(Struct, frozen=True):
    """A new id, and the largest container that can be allocated now."""

    application_id: ApplicationId
    maximum_capability: Resource


class KillApplicationResponse(Struct, frozen=True):
    """The reply to a kill. False: the kill is in progress; call again."""

    is_kill_completed: bool


class KillApplicationRequest(Struct, frozen=True):
    """Kill an application. `diagnostics`: the client's reason; it may be empty."""

    application_id: ApplicationId
    diagnostics: str = ""


class QueueInfoRequest(Struct, frozen=True):
    """Query a queue (name or path), with its applications, its children, or (`recursive`) all queues below."""

    queue: str
    applications: bool = False
    children: bool = False
    recursive: bool = False


class MoveApplicationRequest(Struct, frozen=True):
    """Move an application to another leaf queue (name or path)."""

    application_id: ApplicationId
    queue: str


class UpdatePriorityRequest(Struct, frozen=True):
    """Set the priority of an application."""

    application_id: ApplicationId
    priority: int


class UpdateTimeoutsRequest(Struct, frozen=True):
    """Set the end of an application's lifetime, in the format of yarn.times; None: the request has no timeout."""

    application_id: ApplicationId
    lifetime_ends: str | None


class QueueUserAcls(Struct, frozen=True):
    """The calling user's permissions in the queue with this path."""

    queue: str
    acls: frozenset[QueueACL]


NodesToLabels: TypeAlias = tuple[tuple[NodeId, tuple[str, ...]], ...]
"""Pairs (node, its labels); port 0 stands for a whole host."""

LabelsToNodes: TypeAlias = tuple[tuple[str, tuple[NodeId, ...]], ...]
"""Pairs (label, its nodes); port 0 stands for a whole host."""
