"""A node's shuffle service in a thread, for tests whose reduces block."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nm.launcher.directories import NodeDirectories
from nm.shuffle.server import ShuffleHandler, ShuffleSettings
from wire.files.shuffle import service_data
from yarn.ids import ApplicationId

HOST = "127.0.0.1"


@contextmanager
def shuffle_service(local_dirs: list[Path], application_id: ApplicationId, secret: bytes) -> Iterator[ShuffleHandler]:
    """The service of a node with these local directories, which knows a job of alice."""
    started: list[ShuffleHandler] = []
    is_started, loop = threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        directories = NodeDirectories([str(path) for path in local_dirs], [], random.Random(1))
        handler = ShuffleHandler(directories, ShuffleSettings())
        await handler.listen(HOST)
        handler.init_application(application_id, "alice", service_data(application_id, secret))
        started.append(handler)
        is_started.set()
        await stop.wait()
        await handler.close()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert is_started.wait(60)
        yield started[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
