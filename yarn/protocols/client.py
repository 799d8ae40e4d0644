"""ApplicationClientProtocol: a client and the RM; the messages that are more than an id or a record."""

from __future__ import annotations

from dataclasses import dataclass

from yarn.ids import ApplicationId
from yarn.resource import Resource


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
