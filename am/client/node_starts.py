"""Starts on one NM, together where they come together: startContainers takes many, and a call costs more than a start.

Those that come in one turn of the loop make one call; those that come while it is under way make the next.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from yarn.errors import InvalidArgumentException, InvalidToken, YarnException
from yarn.ids import ContainerId
from yarn.protocols.container_management import StartContainerRequest, StartContainersResponse

TOGETHER_MAX = 100
"""Starts in one call. Above it a call costs nothing less, and who waits for it waits longer."""

Send = Callable[[tuple[StartContainerRequest, ...]], Awaitable[StartContainersResponse]]
Has = Callable[[ContainerId], Awaitable[bool]]


@dataclass(slots=True, eq=False)
class _Start:
    """`outcome` is done with None, or with the error that the start had."""

    container_id: ContainerId
    request: StartContainerRequest
    outcome: asyncio.Future[YarnException | None]


class NodeStarts:
    """The starts of one NM. `send` is its startContainers, `has` asks whether it has a container."""

    def __init__(self, send: Send, has: Has, tasks: asyncio.TaskGroup) -> None:
        self._send = send
        self._has = has
        self._tasks = tasks
        self._waiting: deque[_Start] = deque()
        self._sender: asyncio.Task[None] | None = None

    async def start(self, container_id: ContainerId, request: StartContainerRequest) -> YarnException | None:
        """None once the container is started, else why it is not, or that this is not known."""
        outcome: asyncio.Future[YarnException | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Start(container_id, request, outcome))
        if self._sender is None:
            self._sender = self._tasks.create_task(self._send_waiting(), name="am-starts")
        return await outcome

    def close(self) -> None:
        """Start nothing more; who still waits is cancelled."""
        if self._sender is not None:
            self._sender.cancel()

    async def _send_waiting(self) -> None:
        starts: list[_Start] = []
        try:
            while self._waiting:
                starts = [self._waiting.popleft() for _ in range(min(TOGETHER_MAX, len(self._waiting)))]
                for start, error in zip(starts, await self._send_together(starts), strict=True):
                    _settle(start, error)
        except BaseException:
            # Whatever it is: nobody may wait for ever.
            for start in (*starts, *self._waiting):
                start.outcome.cancel()
            raise
        finally:
            self._sender = None

    async def _send_together(self, starts: list[_Start]) -> list[YarnException | None]:
        try:
            response = await self._send(tuple(start.request for start in starts))
        except (InvalidToken, InvalidArgumentException) as error:
            # One of them spoils the call for all (a forged token, too many bytes in sum): what is each one's own?
            return [error] if len(starts) == 1 else [await self._send_after(error, start) for start in starts]
        except YarnException as error:
            return [error] * len(starts)
        return [_outcome(start.container_id, response) for start in starts]

    async def _send_after(self, error: YarnException, start: _Start) -> YarnException | None:
        """One by itself, after a call with it was refused: an NM starts those before a forged token all the same."""
        try:
            if await self._has(start.container_id):
                return None
        except YarnException:
            return error
        return (await self._send_together([start]))[0]


def _settle(start: _Start, error: YarnException | None) -> None:
    """Tell the outcome; its caller may have gone."""
    if not start.outcome.done():
        start.outcome.set_result(error)


def _outcome(container_id: ContainerId, response: StartContainersResponse) -> YarnException | None:
    if container_id in response.succeeded:
        return None
    return response.failed.get(container_id) or YarnException(f"the NodeManager says nothing of {container_id}")
