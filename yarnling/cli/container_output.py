"""What containers write, printed while they write it."""

from __future__ import annotations

import sys

from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarnling.cluster.client import Client
from yarnling.cluster.containers import ContainerLog

STREAMS = ("stdout", "stderr")


class GrowingOutput:
    """Prints containers' lines to the stream they were written to, each after its container's id.

    Masters are left out. Which containers they are the ResourceManager tells: after a restart their ids are like any.
    """

    def __init__(self, client: Client, app_id: ApplicationId) -> None:
        self._client = client
        self._app_id = app_id
        self._read: dict[tuple[ContainerId, str], int] = {}
        self._masters: dict[ApplicationAttemptId, ContainerId | None] = {}

    async def print_new(self) -> None:
        """Print the lines that are new; one that is not ended may still grow."""
        for log in await self._logs():
            data = self._unread(log)
            self._print(log, data[: data.rfind(b"\n") + 1])

    async def print_rest(self) -> None:
        """Print all that is left, when nothing grows any more."""
        for log in await self._logs():
            self._print(log, self._unread(log))

    async def _logs(self) -> list[ContainerLog]:
        logs = [log for log in self._client.logs(self._app_id) if log.name in STREAMS]
        if any(log.container_id.attempt_id not in self._masters for log in logs):
            attempts = await self._client.attempts(self._app_id)
            self._masters = {attempt.attempt_id: attempt.am_container_id for attempt in attempts}
        return [
            log
            for log in logs
            if log.container_id.attempt_id in self._masters
            and log.container_id != self._masters[log.container_id.attempt_id]
        ]

    def _unread(self, log: ContainerLog) -> bytes:
        with log.path.open("rb") as file:
            file.seek(self._read.get((log.container_id, log.name), 0))
            return file.read()

    def _print(self, log: ContainerLog, data: bytes) -> None:
        if not data:
            return
        key = (log.container_id, log.name)
        self._read[key] = self._read.get(key, 0) + len(data)
        stream = sys.stdout if log.name == "stdout" else sys.stderr
        # Not splitlines: to a container only a newline ends a line.
        for line in data.decode(errors="replace").removesuffix("\n").split("\n"):
            stream.write(f"{log.container_id} | {line}\n")
        stream.flush()
