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
