"""The auxiliary service mapreduce_shuffle of one node: its jobs, and the listener that reduces fetch from."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import ClassVar

from msgspec import Struct

from nm.launcher.directories import NodeDirectories
from nm.shuffle.map_outputs import MapOutputMissing, ShuffleReply, find_outputs
from nm.shuffle.requests import ShuffleRefusal, read_request
from wire.address import Address, resolve
from wire.files.shuffle import REPLY_HASH, URL_HASH, is_url_hash, job_id, port_bytes, reply_hash, token_in
from wire.local_peer import is_foreign
from wire.rare_warning import RareWarning
from yarn.configuration import Configuration
from yarn.errors import InvalidArgumentException, YarnException
from yarn.ids import ApplicationId
from yarn.records import SecretRecord
from yarn.settings import shuffle
from yarn.settings.yarnling import LISTEN_BEYOND_LOOPBACK

CONNECTIONS_MAX = 400
"""Connections if the configuration says 0, which is no limit in Hadoop: a process may have 1,024 open files."""
CLOSE_TIMEOUT_S = 60
"""The time a reduce may take to read the end of a reply."""
RETRY_AFTER = {"Retry-After": "1000"}
"""ShuffleHandler.FETCH_RETRY_DELAY, in ms; Hadoop's reduces wait so long and do not count it as a failure."""

_logger = logging.getLogger(f"yarnling.{__name__}")


class ShuffleJob(SecretRecord, frozen=True):
    """A job, whose outputs are sent to callers that know its secret."""

    secret_fields: ClassVar = ("secret",)

    application_id: ApplicationId
    user: str
    secret: bytes


class ShuffleSettings(Struct, frozen=True):
    """Settings of the shuffle service.

    `port` 0: any free one. `keep_alive`: keep every connection, not only those of requests with keepAlive=true.
    """

    port: int = 0
    connections_max: int = CONNECTIONS_MAX
    keep_alive: bool = False
    keep_alive_s: int = 5
    beyond_loopback: bool = False

    @staticmethod
    def read(conf: Configuration) -> ShuffleSettings:
        return ShuffleSettings(
            shuffle.PORT.of(conf),
            shuffle.MAX_CONNECTIONS.of(conf) or CONNECTIONS_MAX,
            shuffle.KEEP_ALIVE_ENABLED.of(conf),
            shuffle.KEEP_ALIVE_TIMEOUT.of(conf),
            LISTEN_BEYOND_LOOPBACK.of(conf),
        )


class ShuffleHandler:
    """Sends the map outputs of one node. It keeps a job from its first container here until the application ends."""

    def __init__(self, directories: NodeDirectories, settings: ShuffleSettings) -> None:
        self.port = 0
        self._directories = directories
        self._settings = settings
        self._jobs: dict[str, ShuffleJob] = {}
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._foreign = RareWarning(_logger, "closed a shuffle connection of another user of this machine peer=%s")

    @property
    def metadata(self) -> bytes:
        """The service's metadata in the reply of startContainers: its port."""
        return port_bytes(self.port)

    async def listen(self, host: str) -> None:
        """Raises YarnException if the address is not available."""
        address = Address(host, self._settings.port, shuffle.PORT.key)
        ip = await resolve(address, beyond_loopback=self._settings.beyond_loopback)
        try:
            self._server = await asyncio.start_server(self._connected, ip, address.port)
        except OSError as error:
            raise YarnException(
                f"cannot listen on {address.said}: {error.strerror} "
                "(stop the process that uses the port, or set another one; 0 takes a free one)"
            ) from None
        self.port = self._server.sockets[0].getsockname()[1]

    def init_application(self, application_id: ApplicationId, user: str, data: bytes) -> None:
        """Accept reduces of an application's job; `data` is the service data of one of its containers."""
        try:
            secret = token_in(data).password
        except InvalidArgumentException as error:
            _logger.error("cannot serve map outputs of application=%s: %s", application_id, error.message)
            return
        self._jobs[job_id(application_id)] = ShuffleJob(application_id, user, secret)

    def stop_application(self, application_id: ApplicationId) -> None:
        """Forget an application's job."""
        self._jobs.pop(job_id(application_id), None)

    async def close(self) -> None:
        """Close the listener and all connections."""
        if self._server is None:
            return
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if is_foreign(writer.get_extra_info("socket")):
            self._foreign.log(writer.get_extra_info("peername"))
            writer.transport.abort()
            return
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Imported with the first connection: most nodes never have one, and h11 takes longer to import than a node to
        # start.
        from nm.shuffle.connection import ShuffleConnection

        connection = ShuffleConnection(reader, writer, self._answer, self._directories)
        try:
            if len(self._connections) > self._settings.connections_max:
                _logger.warning("refused a shuffle connection: %d are open", self._settings.connections_max)
                await connection.refuse(ShuffleRefusal(429, headers=RETRY_AFTER))
            else:
                await connection.serve()
            writer.close()
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await writer.wait_closed()
        except OSError as error:
            _logger.info("closed a shuffle connection: %s", error or type(error).__name__)
        except Exception:
            _logger.exception("closed a shuffle connection: internal error")
        finally:
            writer.transport.abort()

    async def _answer(self, method: str, target: str, headers: Mapping[str, str]) -> ShuffleReply:
        wanted = read_request(method, target, headers)
        job = self._jobs.get(wanted.job)
        if job is None:
            # Hadoop answers 401 with this text; it is not the caller's proof that is wrong.
            raise ShuffleRefusal(404, f"Can't find job token for job {wanted.job} !!")
        proof = headers.get(URL_HASH.lower())
        if proof is None:
            raise ShuffleRefusal(401, "fetcher cannot be authenticated")
        if not is_url_hash(proof, job.secret, self.port, target):
            raise ShuffleRefusal(401, "Verification of the hashReply failed")
        try:
            outputs = await asyncio.to_thread(find_outputs, self._directories, job.user, job.application_id, wanted)
        except MapOutputMissing as error:
            _logger.warning("cannot send map outputs job=%s reduce=%d: %s", wanted.job, wanted.reduce, error)
            raise ShuffleRefusal(500, str(error)) from None
        keep_alive_s = self._settings.keep_alive_s if wanted.keep_alive or self._settings.keep_alive else 0
        return ShuffleReply(outputs, [(REPLY_HASH, reply_hash(job.secret, proof)), *_kept(keep_alive_s)], keep_alive_s)


def _kept(keep_alive_s: int) -> list[tuple[str, str]]:
    if not keep_alive_s:
        return [("Connection", "close")]
    return [("Connection", "Keep-Alive"), ("Keep-Alive", f"timeout={keep_alive_s}")]
