"""Fetches a reduce's partition of maps' output from the shuffle services of their nodes (Hadoop's Fetcher)."""

from __future__ import annotations

import http.client
import shutil
from contextlib import closing
from pathlib import Path

from am.programs.mapreduce.core.job import TaskAttemptId
from wire.files.full_disk import full_disk_named
from wire.files.shuffle import (
    PATH,
    REPLY_HASH,
    URL_HASH,
    VERSION_HEADERS,
    ShuffleHeader,
    job_id,
    reply_hash,
    url_hash,
)
from wire.files.writables import WritableReader
from yarn.errors import InvalidArgumentException

TIMEOUT_S = 5
"""The time a service may take to accept a connection, and between two parts of its reply."""
_HEADER_NUMBERS_BYTES_MAX = 27
_TEXT_BYTES_MAX = 1000


class Fetcher:
    """Fetches the partition `reduce` of a job whose secret is `secret`."""

    def __init__(self, secret: bytes, reduce: int) -> None:
        self._secret = secret
        self._reduce = reduce

    def fetch(self, address: str, attempt_id: TaskAttemptId, target: Path) -> int:
        """Copy the partition of a map's output to a file; its length in bytes. `address` is host:port of the service.

        Raises ConnectionError or TimeoutError if the service cannot be reached or is busy, another OSError if it does
        not send the output, or not completely.
        """
        host, _, port = address.rpartition(":")
        job = job_id(attempt_id.task_id.application_id)
        path = f"{PATH}?job={job}&reduce={self._reduce}&map={attempt_id}"
        proof = url_hash(self._secret, int(port), path)
        with closing(http.client.HTTPConnection(host, int(port), timeout=TIMEOUT_S)) as connection:
            try:
                connection.request("GET", path, headers={URL_HASH: proof, **VERSION_HEADERS})
                with connection.getresponse() as response:
                    self._check(response, address, proof)
                    return self._copy(response, attempt_id, target)
            except ConnectionError:
                # http.client's RemoteDisconnected is also an HTTPException.
                raise
            except (http.client.HTTPException, InvalidArgumentException) as error:
                raise OSError(f"the reply of {address} cannot be read: {error!r}") from None

    def _check(self, response: http.client.HTTPResponse, address: str, proof: str) -> None:
        if response.status != http.client.OK:
            text = response.read(_TEXT_BYTES_MAX).decode(errors="replace")
            kind = ConnectionError if response.status == http.client.TOO_MANY_REQUESTS else OSError
            raise kind(f"{address} answered {response.status} {text}")
        if response.getheader(REPLY_HASH) != reply_hash(self._secret, proof):
            raise OSError(f"{address} does not know the job's secret")

    def _copy(self, response: http.client.HTTPResponse, attempt_id: TaskAttemptId, target: Path) -> int:
        start = response.read(len(str(attempt_id)) + _HEADER_NUMBERS_BYTES_MAX)
        reader = WritableReader(start, "shuffle header")
        header = ShuffleHeader.read(reader)
        if (header.attempt, header.reduce) != (str(attempt_id), self._reduce):
            raise OSError(f"got the output of {header.attempt} for reduce {header.reduce}, asked for {attempt_id}")
        with full_disk_named(target), target.open("wb") as copy:
            copy.write(start[reader.position :])
            shutil.copyfileobj(response, copy)
            if copy.tell() != header.part_length:
                raise OSError(f"the output of {attempt_id} ends after {copy.tell()} of {header.part_length} bytes")
        return header.part_length
