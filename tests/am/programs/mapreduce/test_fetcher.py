"""A reduce's fetch: what it copies, and how it tells a node without the output from one that cannot be reached."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from am.programs.mapreduce import fetcher as fetcher_module
from am.programs.mapreduce.core.job import TaskAttemptId, TaskId, TaskKind
from am.programs.mapreduce.fetcher import Fetcher
from nm.launcher.directories import application_dir
from tests.am.builders import APP
from tests.am.programs.mapreduce.shuffle_service import HOST, shuffle_service
from wire.files.shuffle import INDEX, OUTPUT, IndexRecord, ShuffleHeader, index_bytes

SECRET = b"shuffle secret"
ATTEMPT = TaskAttemptId(TaskId(APP, TaskKind.MAP, 1), 0)
PARTITION = b"a\t1\n" * 100_000


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A service with the output of one map, the second reduce's partition of which is PARTITION."""
    directory = Path(application_dir(str(tmp_path), "alice", APP)) / "output" / str(ATTEMPT)
    directory.mkdir(parents=True)
    (directory / OUTPUT).write_bytes(b"x" + PARTITION + b"x")
    size = len(PARTITION)
    (directory / INDEX).write_bytes(index_bytes([IndexRecord(0, 1, 1), IndexRecord(1, size, size)]))
    with shuffle_service([tmp_path], APP, SECRET) as service:
        yield f"{HOST}:{service.port}"


def test_a_partition_is_copied(address: str, tmp_path: Path) -> None:
    assert Fetcher(SECRET, 1).fetch(address, ATTEMPT, tmp_path / "copy") == len(PARTITION)
    assert (tmp_path / "copy").read_bytes() == PARTITION


def test_a_node_without_the_output_or_the_job_answers_so(address: str, tmp_path: Path) -> None:
    cases = [
        (Fetcher(SECRET, 1), ATTEMPT._replace(number=1), "answered 500 Could not find"),
        (Fetcher(b"another", 1), ATTEMPT, "answered 401 Verification of the hashReply failed"),
        (Fetcher(SECRET, 2), ATTEMPT, "answered 500 Invalid request"),
    ]
    for fetcher, attempt_id, text in cases:
        with pytest.raises(OSError, match=text) as refusal:
            fetcher.fetch(address, attempt_id, tmp_path / "copy")
        assert not isinstance(refusal.value, ConnectionError | TimeoutError)


def reply(head: bytes, body: bytes) -> Iterator[str]:
    """A service that sends these bytes to its first caller."""
    with socket.create_server((HOST, 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(head + body)

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"{HOST}:{server.getsockname()[1]}"
        thread.join()


@pytest.mark.parametrize(
    ("head", "text", "kind"),
    [
        (b"HTTP/1.1 429 TOO MANY REQUESTS\r\nRetry-After: 1000\r\n\r\n", "answered 429", ConnectionError),
        (b"HTTP/1.1 200 OK\r\nReplyHash: x\r\n\r\n", "does not know the job's secret", OSError),
        (b"nonsense\r\n\r\n", "cannot be read", OSError),
        (b"", "closed connection without response", ConnectionError),
    ],
)
def test_a_bad_reply_is_an_error_that_tells_who_is_at_fault(
    tmp_path: Path, head: bytes, text: str, kind: type[OSError]
) -> None:
    for address in reply(head, b""):
        with pytest.raises(kind, match=text) as failure:
            Fetcher(SECRET, 1).fetch(address, ATTEMPT, tmp_path / "copy")
        assert isinstance(failure.value, ConnectionError) is (kind is ConnectionError)


def test_a_truncated_reply_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher_module, "reply_hash", lambda secret, proof: "right")
    body = ShuffleHeader(str(ATTEMPT), 1000, 1000, 1).to_bytes() + b"only this"
    for address in reply(b"HTTP/1.1 200 OK\r\nReplyHash: right\r\n\r\n", body):
        with pytest.raises(OSError, match="ends after 9 of 1000 bytes"):
            Fetcher(SECRET, 1).fetch(address, ATTEMPT, tmp_path / "copy")


def test_a_node_that_is_gone_or_stopped_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher_module, "TIMEOUT_S", 0.05)
    with socket.create_server((HOST, 0)) as stopped:
        address = f"{HOST}:{stopped.getsockname()[1]}"
        with pytest.raises(TimeoutError):
            Fetcher(SECRET, 1).fetch(address, ATTEMPT, tmp_path / "copy")
    with pytest.raises(ConnectionRefusedError):
        Fetcher(SECRET, 1).fetch(address, ATTEMPT, tmp_path / "copy")
