"""The identities of a node's copies of files, and of the caches that they are in."""

from __future__ import annotations

from typing import NamedTuple

from yarn.containers import LocalResource
from yarn.ids import ApplicationId
from yarn.states import LocalResourceType


class ResourceKey(NamedTuple):
    """The identity of a copy: requests with equal keys share one copy (LocalResourceRequest)."""

    url: str
    timestamp_ms: int
    type: LocalResourceType
    pattern: str | None

    @staticmethod
    def of(resource: LocalResource) -> ResourceKey:
        return ResourceKey(resource.url, resource.timestamp_ms, resource.type, resource.pattern)


class CacheKey(NamedTuple):
    """Identifies a cache. `user` is None for the public cache; `application_id` is None for a cache of a user."""

    user: str | None
    application_id: ApplicationId | None
