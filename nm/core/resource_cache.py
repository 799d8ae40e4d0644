"""The node's copies of files that containers requested: which containers share a copy, and when a copy is deleted.

There is one cache for all users (PUBLIC), one for each user (PRIVATE) and one for each application on the node
(APPLICATION). A copy is identified by the source, time stamp, type and pattern of the file, so a changed file is
another copy. A container holds the copies that it uses. A copy without holders stays until its application ends or the
caches exceed their target size.

The rules are those of ResourceLocalizationService, LocalResourcesTrackerImpl and LocalizedResource.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from nm.core.effects import DeleteResource, Effect, FetchResource
from nm.core.recorder import NodeRecorder
from nm.core.resource_key import CacheKey, ResourceKey
from nm.core.stored_state import RecoveredResource
from yarn.containers import LocalResource
from yarn.ids import ApplicationId, ContainerId
from yarn.machine import Dispatcher
from yarn.states import LocalResourceVisibility

FIRST_NUMBER = 10
"""The first numbered directory of a cache: Hadoop reserves 0-9 for nested directories."""


class ResourceLocalized(Struct, frozen=True):
    """To a container: a copy of one of its files is at `path`.

    `cached` is True if the copy existed before the request.
    """

    container_id: ContainerId
    key: ResourceKey
    path: str
    size_bytes: int
    cached: bool


class ResourceFailed(Struct, frozen=True):
    """To a container: one of its files could not be fetched."""

    container_id: ContainerId
    diagnostics: str


class CachedResource:
    """A copy in a cache. `path` is None while the file is being fetched.

    `number` is that of its directory. `holders` are the containers that use the copy or wait for it. `last_use_ms` is
    the time when the copy was fetched or last released.
    """

    __slots__ = ("holders", "key", "last_use_ms", "number", "path", "size_bytes")

    def __init__(self, key: ResourceKey, number: int) -> None:
        self.key = key
        self.number = number
        self.path: str | None = None
        self.size_bytes = 0
        self.holders: dict[ContainerId, None] = {}
        self.last_use_ms = 0


class ResourceCache:
    """A cache: its copies by key, and the number of the directory for the next copy."""

    __slots__ = ("entries", "next_number")

    def __init__(self) -> None:
        self.entries: dict[ResourceKey, CachedResource] = {}
        self.next_number = FIRST_NUMBER


class _FirstRequest(NamedTuple):
    """The first request for a file: the container, its user and the resource."""

    container_id: ContainerId
    user: str
    resource: LocalResource


class ResourceCaches:
    """All caches of a node.

    A cache exists from its first copy on; an application's cache until the application ends.
    """

    def __init__(self, dispatcher: Dispatcher[Effect], target_bytes: int, recorder: NodeRecorder) -> None:
        self._dispatcher = dispatcher
        self._recorder = recorder
        self._target_bytes = target_bytes
        self._caches: dict[CacheKey, ResourceCache] = {}
        self._fetches: dict[int, tuple[CacheKey, CachedResource]] = {}
        self._held: dict[ContainerId, list[CachedResource]] = {}
        self._fetch_count = 0

    def request(self, container_id: ContainerId, user: str, resource: LocalResource) -> None:
        """Make a copy of `resource` available to a container, which holds the copy from now on.

        The container gets ResourceLocalized or ResourceFailed, at once or after the file has been fetched.
        """
        cache_key = _cache_key(container_id, user, resource.visibility)
        cache = self._caches.setdefault(cache_key, ResourceCache())
        key = ResourceKey.of(resource)
        entry = cache.entries.get(key)
        if entry is None:
            entry = cache.entries[key] = CachedResource(key, cache.next_number)
            cache.next_number += 1
            self._fetch(cache_key, entry, _FirstRequest(container_id, user, resource))
        entry.holders[container_id] = None
        self._held.setdefault(container_id, []).append(entry)
        if entry.path is not None:
            self._send_localized(container_id, entry, entry.path, cached=True)

    def recover(self, resources: Iterable[RecoveredResource]) -> None:
        """Add the copies that an earlier NodeManager has fetched; later ones get higher numbers."""
        for stored in resources:
            cache = self._caches.setdefault(stored.cache, ResourceCache())
            cache.next_number = max(cache.next_number, stored.number + 1)
            entry = cache.entries[stored.key] = CachedResource(stored.key, stored.number)
            entry.path, entry.size_bytes = stored.path, stored.size_bytes
            entry.last_use_ms = self._dispatcher.now_ms

    def held_by(self, container_id: ContainerId) -> int:
        """The number of copies that a container holds."""
        return len(self._held.get(container_id, ()))

    def holders(self) -> Iterable[ContainerId]:
        """The containers that hold at least one copy."""
        return self._held.keys()

    def fetched(self, fetch_id: int, path: str, size_bytes: int) -> None:
        """Record that a file was fetched. If its application has ended meanwhile, the copy is deleted."""
        found = self._fetches.pop(fetch_id, None)
        if found is None:
            self._dispatcher.emit(DeleteResource(path))
            return
        cache_key, entry = found
        entry.path, entry.size_bytes = path, size_bytes
        self._recorder.resource_fetched(RecoveredResource(cache_key, entry.number, entry.key, path, size_bytes))
        entry.last_use_ms = self._dispatcher.now_ms
        for container_id in entry.holders:
            self._send_localized(container_id, entry, path, cached=False)

    def failed(self, fetch_id: int, diagnostics: str) -> None:
        """Fail the containers that wait for a file that could not be fetched; a later request fetches
        the file again.
        """
        found = self._fetches.pop(fetch_id, None)
        if found is None:
            return
        cache_key, entry = found
        self._caches[cache_key].entries.pop(entry.key, None)
        for container_id in entry.holders:
            self._dispatcher.send(ResourceFailed(container_id, diagnostics))

    def release(self, container_id: ContainerId) -> None:
        """Release all copies that the container holds."""
        for entry in self._held.pop(container_id, ()):
            entry.holders.pop(container_id, None)
            entry.last_use_ms = self._dispatcher.now_ms

    def forget_application(self, application_id: ApplicationId) -> None:
        """Drop the cache of an application, whose files are deleted with the application's directory."""
        gone = [key for key in self._caches if key.application_id == application_id]
        for key in gone:
            for entry in self._caches.pop(key).entries.values():
                if entry.path is not None:
                    self._recorder.resource_dropped(entry.path)
        self._fetches = {number: found for number, found in self._fetches.items() if found[0] not in gone}

    def shrink(self) -> None:
        """Delete copies without holders, least recently used first, until the caches are at their target size.

        The size includes all copies in the public cache and the users' caches, also those in use (LocalCacheCleaner).
        """
        entries = self._shared_entries()
        total_bytes = sum(entry.size_bytes for _, entry in entries)
        for cache, entry in sorted(entries, key=lambda pair: pair[1].last_use_ms):
            if total_bytes <= self._target_bytes:
                return
            if not entry.holders and entry.path is not None:
                del cache.entries[entry.key]
                total_bytes -= entry.size_bytes
                self._recorder.resource_dropped(entry.path)
                self._dispatcher.emit(DeleteResource(entry.path))

    @property
    def is_small(self) -> bool:
        """True if `shrink` would delete nothing."""
        return sum(entry.size_bytes for _, entry in self._shared_entries()) <= self._target_bytes

    def _shared_entries(self) -> list[tuple[ResourceCache, CachedResource]]:
        shared = [cache for key, cache in self._caches.items() if key.application_id is None]
        return [(cache, entry) for cache in shared for entry in cache.entries.values() if entry.path is not None]

    def _fetch(self, cache_key: CacheKey, entry: CachedResource, request: _FirstRequest) -> None:
        self._fetch_count += 1
        self._fetches[self._fetch_count] = (cache_key, entry)
        container_id, user, resource = request
        application_id = container_id.application_id
        self._dispatcher.emit(
            FetchResource(self._fetch_count, container_id, user, application_id, entry.number, resource)
        )

    def _send_localized(self, container_id: ContainerId, entry: CachedResource, path: str, *, cached: bool) -> None:
        self._dispatcher.send(ResourceLocalized(container_id, entry.key, path, entry.size_bytes, cached))


def _cache_key(container_id: ContainerId, user: str, visibility: LocalResourceVisibility) -> CacheKey:
    if visibility is LocalResourceVisibility.PUBLIC:
        return CacheKey(None, None)
    if visibility is LocalResourceVisibility.PRIVATE:
        return CacheKey(user, None)
    return CacheKey(user, container_id.application_id)
