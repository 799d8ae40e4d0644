"""The web server of stepping: on loopback, for processes of the same user, until Ctrl-C."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from wire.address import Address
from wire.web.access import AccessCheck
from wire.web.application import WebApplication
from wire.web.server import WebServer
from yarn.configuration import Configuration
from yarnling.stepping.controls import Controls
from yarnling.stepping.web.service import StepService

HOST = "127.0.0.1"


def serve(controls: Controls, port: int, say: Callable[[str], object]) -> None:
    """Serve the run at `port`, 0 for a free one; `say` tells the user its address.

    Raises YarnException if the port is taken.
    """
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(controls, port, say))


async def _serve(controls: Controls, port: int, say: Callable[[str], object]) -> None:
    async with serving(controls, port) as address:
        say(f"{controls.source.title}: open {address} in a browser; Ctrl-C ends it")
        await asyncio.Event().wait()


@asynccontextmanager
async def serving(controls: Controls, port: int) -> AsyncIterator[str]:
    """Serve the run meanwhile; the address of its page."""
    server = WebServer(Address(HOST, port), beyond_loopback=False)
    taken = await server.bind()
    await server.start(WebApplication(StepService(controls).rows(), AccessCheck(Configuration.of({}, ""), ())))
    try:
        yield f"http://{HOST}:{taken}/"
    finally:
        await server.stop()
