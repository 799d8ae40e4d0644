"""An asyncio event loop in virtual time: unmodified asyncio code beside simulated daemons, on one clock.

    loop = VirtualLoop(engine)
    loop.run_until_complete(main())       # `asyncio.sleep(3600)` returns at once, an hour later

When nothing is ready, an event loop waits in its selector. This one's selector lets the engine's events happen
instead, until one of them makes something ready, or the loop's next timer is due. So an ApplicationMaster that is
written against am.client runs in a simulated cluster as it is: its calls go through VirtualChannels, over the simulated
network.

There are no threads, sockets or subprocesses in virtual time.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable
from typing import Any, NoReturn

from wire.channel import Channel, Channels
from wire.errors import sent_error
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.master import ApplicationMasterProtocol
from yarn.errors import InternalError, YarnException
from yarnling.simulation.call_observer import CallObserver
from yarnling.simulation.engine import Engine
from yarnling.simulation.network import Attempt, Endpoint, Network
from yarnling.simulation.process import Process
from yarnling.simulation.server import Envelope

_ROWS = {rpc.path: rpc for rpc in (*ApplicationMasterProtocol.rpcs, *ContainerManagementProtocol.rpcs)}

Route = Callable[[str], tuple[str, Endpoint]]
"""The link to a target ("host:port"), and who answers there."""


class _Selector(selectors.DefaultSelector):
    """Lets virtual time pass instead of waiting."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout > 0:
            self.loop.let_time_pass(timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """The event loop whose clock is the engine's."""

    def __init__(self, engine: Engine) -> None:
        selector = _Selector()
        selector.loop = self
        self._engine = engine
        super().__init__(selector)
        # Half a tick of the engine: a timer is due in the millisecond that its time is rounded to.
        self._clock_resolution = 0.0005

    def time(self) -> float:
        return self._engine.now_ms / 1000

    def let_time_pass(self, timeout_s: float | None) -> None:
        """Run the engine's events until a callback of this loop is ready, or the timeout has passed."""
        engine = self._engine
        until_ms = None if timeout_s is None else engine.now_ms + max(1, math.ceil(timeout_s * 1000 - 0.5))
        ready: Any = self._ready  # type: ignore[attr-defined]
        if not engine.advance(until_ms, lambda: bool(ready)):
            raise InternalError("nothing is planned and nothing is ready: all tasks wait for one another")

    def run_in_executor(self, executor: object, func: object, *args: object) -> NoReturn:
        raise InternalError("there are no threads in virtual time")


class VirtualChannels(Channels):
    """The channels of one simulated process: in the place of wire.channel.Channels, for any proxy."""

    def __init__(self, network: Network, process: Process, route: Route) -> None:
        super().__init__()
        assert network.encode, "proxies send bytes"
        self._network = network
        self._process = process
        self._route = route

    def get(self, target: str) -> Channel:
        return _VirtualChannel(target, self._network, self._process, *self._route(target))


class _VirtualChannel(Channel):
    def __init__(self, target: str, network: Network, process: Process, link: str, endpoint: Endpoint) -> None:
        super().__init__(target)
        self._network = network
        self._process = process
        self._link = link
        self._endpoint = endpoint

    async def send(
        self, path: str, request: bytes, *, metadata: tuple[tuple[str, str | bytes], ...], timeout_s: float
    ) -> bytes:
        """The reply's bytes. Raises the server's error, or ServerUnavailable."""
        rpc = _ROWS[path]
        outcome: asyncio.Future[Envelope | YarnException] = asyncio.get_running_loop().create_future()
        observer = self._network.observer
        # Only an observer needs the records; the proxy encodes and decodes its own.
        is_observed = type(observer) is not CallObserver
        request_record = rpc.request.decode(request) if is_observed else None
        number = observer.called(self._process.name, self._link, rpc, request_record)

        def answered(reply: Envelope | YarnException) -> None:
            if is_observed:
                observer.over(number, reply.content(encoded=True) if isinstance(reply, Envelope) else reply)
            if not outcome.done():
                outcome.set_result(reply)

        message = Envelope(rpc, request, metadata)
        where, link = f"{rpc.name} over {self._link}", self._network.link(self._link)
        timeout_ms = round(1000 * timeout_s)
        attempt = Attempt(
            self._network, self._process, link, message, where, answered, number=number, timeout_ms=timeout_ms
        )
        attempt.start(self._endpoint)
        reply = await outcome
        if isinstance(reply, YarnException):
            raise reply
        if isinstance(reply.error, bytes):
            raise sent_error(reply.error)
        assert isinstance(reply.payload, bytes)
        return reply.payload
