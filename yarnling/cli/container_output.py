"""What containers write, printed while they write it."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from yarn.ids import ApplicationId, ContainerId
from yarnling.client import Client
from yarnling.container_logs import ContainerLog

STREAMS = ("stdout", "stderr")


class GrowingOutput:
    """Prints containers' lines to the stream they were written to, each after its container's id.

    The first container of an attempt is its master, which is left out.
    """

    def __init__(self, client: Client, app_id: ApplicationId) -> None:
        self._client = client
        self._app_id = app_id
        self._read: dict[tuple[ContainerId, str], int] = {}

    def print_new(self) -> None:
        """Print the lines that are new; one that is not ended may still grow."""
        for log in self._logs():
            data = self._unread(log)
            self._print(log, data[: data.rfind(b"\n") + 1])

    def print_rest(self) -> None:
        """Print all that is left, when nothing grows any more."""
        for log in self._logs():
            self._print(log, self._unread(log))

    def _logs(self) -> Iterable[ContainerLog]:
        logs = self._client.logs(self._app_id)
        return (log for log in logs if log.name in STREAMS and log.container_id.sequence != 1)

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
