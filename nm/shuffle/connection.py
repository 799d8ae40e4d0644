"""An HTTP connection of a reduce: h11 reads and writes HTTP, the event loop sends files by sendfile.

Every wait has a limit: a reader that stops costs a descriptor for SEND_TIMEOUT_S, and no memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import IO

import h11

from nm.launcher.directories import NodeDirectories
from nm.shuffle.map_outputs import MapOutput, MapOutputMissing, ShuffleReply, opened
from nm.shuffle.requests import TARGET_CHARS_MAX, ShuffleRefusal
from wire.files.shuffle import VERSION_HEADERS

HEAD_BYTES_MAX = TARGET_CHARS_MAX + 8192
"""The first line and the headers of a request, each as long as Netty accepts them."""
BODY_BYTES_MAX = 1 << 16
"""The body of a request, which is ignored (ShuffleChannelInitializer.MAX_CONTENT_LENGTH)."""
REQUEST_TIMEOUT_S = 20
"""The time a new connection may take to send its first request."""
SEND_BYTES = 1 << 20
SEND_TIMEOUT_S = 60
"""The time a reduce may take to read SEND_BYTES."""
LINGER_S = 1
"""The time a refused connection is read on, so that its reply is not lost to a reset."""
READ_BYTES = 16 << 10


Answer = Callable[[str, str, Mapping[str, str]], Awaitable[ShuffleReply]]
"""Answers a request by its method, target and headers {name in lower case: value}; raises ShuffleRefusal."""


class ShuffleConnection:
    """Answers the requests of one connection, until it ends, by `answer`, which raises ShuffleRefusal."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        answer: Answer,
        directories: NodeDirectories,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._answer = answer
        self._directories = directories
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)

    async def serve(self) -> None:
        """Answer requests. Raises OSError if the other side goes away, TimeoutError if it stops."""
        timeout_s: float = REQUEST_TIMEOUT_S
        try:
            while (request := await self._next_request(timeout_s)) is not None:
                reply = await self._answer(*_parts(request))
                await self._send(reply)
                if not reply.keep_alive_s or self._http.our_state is not h11.DONE:
                    return
                timeout_s = reply.keep_alive_s
                self._http.start_next_cycle()
        except ShuffleRefusal as refusal:
            await self.refuse(refusal)
        except h11.RemoteProtocolError:
            await self.refuse(ShuffleRefusal(400))

    async def refuse(self, refusal: ShuffleRefusal) -> None:
        """Send an error, and end the connection, as Hadoop does after each."""
        body = refusal.text.encode()
        headers = [
            ("Content-Type", "text/plain; charset=UTF-8"),
            *VERSION_HEADERS.items(),
            *refusal.headers.items(),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
        ]
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        for event in (self._response(refusal.status, headers), h11.Data(data=body), h11.EndOfMessage()):
            self._writer.write(self._http.send(event) or b"")
        await self._drain()
        self._writer.write_eof()
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                while await self._reader.read(READ_BYTES):
                    pass

    async def _next_request(self, timeout_s: float) -> h11.Request | None:
        """The next request; None if there is none within the limit, or the connection ends."""
        request: h11.Request | None = None
        body_bytes = 0
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    event = self._http.next_event()
                    if event is h11.NEED_DATA:
                        self._http.receive_data(await self._reader.read(READ_BYTES))
                    elif isinstance(event, h11.Request):
                        request = event
                    elif isinstance(event, h11.Data):
                        body_bytes += len(event.data)
                        if body_bytes > BODY_BYTES_MAX:
                            raise ShuffleRefusal(413)
                    elif isinstance(event, h11.EndOfMessage):
                        return request
                    else:
                        return None
        except TimeoutError:
            return None

    async def _send(self, reply: ShuffleReply) -> None:
        parts = [(output, output.header.to_bytes()) for output in reply.outputs]
        length = sum(len(header) + output.header.part_length for output, header in parts)
        headers = [*reply.headers, *VERSION_HEADERS.items(), ("Content-Length", str(length))]
        self._writer.write(self._http.send(self._response(200, headers)) or b"")
        for output, header in parts:
            self._writer.write(self._http.send(h11.Data(data=header)) or b"")
            await self._send_output(output)
        self._writer.write(self._http.send(h11.EndOfMessage()) or b"")
        await self._drain()

    async def _send_output(self, output: MapOutput) -> None:
        length = output.header.part_length
        if not length:
            return
        # h11 counts the bytes, which go from the file to the socket without it.
        self._http.send_with_data_passthrough(h11.Data(data=_Bytes(length)))  # type: ignore[arg-type]
        await self._drain()
        try:
            with opened(self._directories, output) as file:
                await self._send_file(file, output.start, length)
        except MapOutputMissing as error:
            # Part of the reply is sent: only the end of the connection can show the error.
            raise OSError(str(error)) from None

    async def _send_file(self, file: IO[bytes], start: int, length: int) -> None:
        loop, end = asyncio.get_running_loop(), start + length
        while start < end:
            count = min(SEND_BYTES, end - start)
            try:
                async with asyncio.timeout(SEND_TIMEOUT_S):
                    sent = await loop.sendfile(self._writer.transport, file, start, count)
            except TimeoutError:
                raise TimeoutError(f"the reader took nothing for {SEND_TIMEOUT_S} s") from None
            if not sent:
                raise OSError("a map output became shorter while it was sent")
            start += sent

    async def _drain(self) -> None:
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await self._writer.drain()
        except TimeoutError:
            raise TimeoutError(f"the reader took nothing for {SEND_TIMEOUT_S} s") from None

    def _response(self, status: int, headers: Sequence[tuple[str, str]]) -> h11.Response:
        return h11.Response(status_code=status, headers=list(headers), reason=HTTPStatus(status).phrase)


def _parts(request: h11.Request) -> tuple[str, str, dict[str, str]]:
    """The parts of a request's head. Of several headers with one name the first counts, as in Netty."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(list(request.headers))}
    return request.method.decode("latin-1"), request.target.decode("latin-1"), headers


class _Bytes:
    """Stands for bytes that h11 only counts."""

    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length
