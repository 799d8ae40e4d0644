"""Fetches in the background, a few at a time (ResourceLocalizationService's public fetchers, ContainerLocalizer)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from nm.core.effects import FetchResource
from nm.core.events import Event, ResourceFetched, ResourceFetchFailed
from nm.launcher.directories import NodeDirectories
from nm.localizer.fetch import FetchFailed, diagnostics, fetch

_logger = logging.getLogger(__name__)


class Localizer:
    """Answers each FetchResource with one event. `width`: how many are copied at once."""

    def __init__(self, directories: NodeDirectories, send: Callable[[Event], None], width: int) -> None:
        self._directories = directories
        self._send = send
        self._room = asyncio.Semaphore(width)
        self._tasks: asyncio.TaskGroup | None = None

    def use(self, tasks: asyncio.TaskGroup) -> None:
        """Fetch in these tasks from now on."""
        self._tasks = tasks

    def fetch(self, request: FetchResource) -> None:
        assert self._tasks is not None, "use() comes first"
        self._tasks.create_task(self._fetch(request))

    async def _fetch(self, request: FetchResource) -> None:
        event: Event
        try:
            async with self._room:
                path, size_bytes = await asyncio.to_thread(fetch, request, self._directories)
            event = ResourceFetched(request.fetch_id, path, size_bytes)
        except FetchFailed as failed:
            event = ResourceFetchFailed(request.fetch_id, diagnostics(failed, request.resource, request.container_id))
        except Exception as bug:
            _logger.exception("fetch failed url=%s", request.resource.url)
            event = ResourceFetchFailed(request.fetch_id, f"{type(bug).__name__}: {bug}")
        self._send(event)
