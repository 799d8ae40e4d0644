"""Aggregated logs: equal to Hadoop's byte for byte, and damaged ones are refused."""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wire.files.aggregated_logs import (
    AggregatedLogWriter,
    LogPart,
    application_directory,
    node_file,
    read_aggregated_logs,
    read_content,
)
from wire.files.tfile import CHUNK_BYTES, TFileReader, TFileWriter, read_vlong, vlong
from yarn.errors import InvalidArgumentException
from yarn.ids import ApplicationId, ContainerId, NodeId
from yarn.states import ApplicationAccessType

ACLS = {ApplicationAccessType.VIEW_APP: "bob ops", ApplicationAccessType.MODIFY_APP: "carol"}
LINES = b"".join(b"%07d\n" % number for number in range(400_000))
LOGS: dict[str, dict[str, bytes]] = {
    "container_1795222023200_0007_01_000001": {
        "prelaunch.out": b"Setting up env variables\n",
        "stderr": b"",
        "stdout": b"out 0\n",
    },
    "container_1795222023200_0007_01_000002": {"stdout": "grüße \U0001f600\n".encode(), "syslog": LINES},
    "container_1795222023200_0007_02_000010": {"größe \U0001f600.log": b"x" * 300_000},
}
HADOOPS_SHA256 = "dabd3279c69b3348587610291e0a471133619d05000a5cdb16b7ff6e4efe565e"
"""Of the file that AggregatedLogFormat.LogWriter of Hadoop 3.4.1 wrote of LOGS, for alice, with ACLS."""


SMALL = """
d111d36891b5d7b639df414092bae15009000756455253494f4e04000000011300114150504c49434154494f4e5f4f574e4552070005616c6963
6511000f4150504c49434154494f4e5f41434c260008564945575f4150500007626f62206f7073000a4d4f444946595f41505000056361726f6c
280026636f6e7461696e65725f313739353232323032333230305f303030375f30315f3030303030311100067374646f75740001366f75742030
0a0001000004000a09000756455253494f4e2a280026636f6e7461696e65725f313739353232323032333230305f303030375f30315f30303030
303104046e6f6e650110cc9fcc9f0311646174613a424346696c652e696e646578046e6f6e65cceb0b0b10646174613a5446696c652e696e6465
78046e6f6e65ccb536360f646174613a5446696c652e6d657461046e6f6e65ccaf060600000000000000f600010000d111d36891b5d7b639df41
4092bae150
"""
SMALL_BYTES = bytes.fromhex(SMALL.replace("\n", ""))
"""The file that Hadoop 3.4.1 wrote of one container's stdout."""


def parts(data: bytes) -> Iterator[bytes]:
    """As Hadoop reads a file."""
    for start in range(0, len(data), 65535):
        yield data[start : start + 65535]


def written(logs: dict[str, dict[str, bytes]] = LOGS) -> bytes:
    out = io.BytesIO()
    writer = AggregatedLogWriter(out, "alice", ACLS)
    for container_id, files in logs.items():
        writer.add(
            ContainerId.parse(container_id), [LogPart(name, len(data), parts(data)) for name, data in files.items()]
        )
    writer.close()
    return out.getvalue()


def read(data: bytes) -> dict[str, dict[str, bytes]]:
    found: dict[str, dict[str, bytes]] = {}
    file = io.BytesIO(data)
    for log in read_aggregated_logs(file):
        content = b"".join(read_content(file, log))
        assert len(content) == log.length
        found.setdefault(str(log.container_id), {})[log.name] = content
    return found


def test_the_file_is_hadoops_byte_for_byte() -> None:
    data = written()
    assert len(data) == 3_500_637
    assert hashlib.sha256(data).hexdigest() == HADOOPS_SHA256


def test_a_small_file_is_hadoops_byte_for_byte() -> None:
    """So that a difference can be seen; written by Hadoop 3.4.1 like the other one."""
    small = written({"container_1795222023200_0007_01_000001": {"stdout": b"out 0\n"}})
    assert small.hex() == SMALL.replace("\n", "")


def test_what_is_written_is_read() -> None:
    assert read(written()) == LOGS


def test_a_file_without_containers_is_read() -> None:
    assert read(written({})) == {}


def test_files_that_are_not_read_are_skipped() -> None:
    names = [(str(log.container_id), log.name) for log in read_aggregated_logs(io.BytesIO(written()))]
    assert names == [(container_id, name) for container_id, files in LOGS.items() for name in files]


def test_a_content_is_read_from_any_byte_on_and_after_the_others() -> None:
    file = io.BytesIO(written())
    logs = list(read_aggregated_logs(file))
    syslog = next(log for log in logs if log.name == "syslog")
    for start in (0, 1, 1_048_575, 1_048_576, 2_500_000, len(LINES) - 1, len(LINES), len(LINES) + 1):
        assert b"".join(read_content(file, syslog, start)) == LINES[start:]


def test_a_large_value_is_read_and_written_in_parts() -> None:
    """Neither side holds more than a chunk and a part."""
    out = io.BytesIO()
    writer = TFileWriter(out)
    writer.append(b"key", (bytes(65535) for _ in range(100)))
    writer.close()
    ((key, value),) = TFileReader(out).records()
    assert key == b"key"
    sizes = []
    while part := value.read(1 << 30):
        sizes.append(len(part))
    assert sum(sizes) == 100 * 65535
    assert max(sizes) <= CHUNK_BYTES


@settings(max_examples=30)
@given(st.data())
def test_a_damaged_file_is_refused_and_nothing_else_happens(data: st.DataObject) -> None:
    whole = bytearray(SMALL_BYTES)
    for _ in range(data.draw(st.integers(0, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    with contextlib.suppress(InvalidArgumentException):
        read(cut)


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(InvalidArgumentException, match="not a TFile: its end is not that of a TFile"):
        read(b"nonsense")
    with pytest.raises(InvalidArgumentException, match=r"are compressed \(gzip\); only uncompressed ones can be read"):
        read(SMALL_BYTES.replace(b"\x04none", b"\x04gzip"))


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "00"),
        (127, "7f"),
        (-32, "e0"),
        (128, "cc80"),
        (-33, "cbdf"),
        (5119, "dfff"),
        (5120, "a81400"),
        (1048575, "b7ffff"),
        (1048576, "90100000"),
        (134217727, "97ffffff"),
        (134217728, "8308000000"),
        (-134217729, "83f7ffffff"),
        (2**31, "840080000000"),
        (-5121, "a7ebff"),
        (-1048577, "8fefffff"),
        (-(2**40), "85ff0000000000"),
        (2**63 - 1, "877fffffffffffffff"),
    ],
)
def test_numbers_are_encoded_as_hadoop_does(number: int, encoded: str) -> None:
    assert vlong(number).hex() == encoded


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_are_read_as_they_were_written(number: int) -> None:
    assert read_vlong(io.BytesIO(vlong(number))) == number


def test_places_are_hadoops() -> None:
    application_id = ApplicationId(1_795_222_023_200, 10_004)
    assert application_directory("alice", application_id, "logs-tfile") == (
        "alice",
        "bucket-logs-tfile",
        "0004",
        "application_1795222023200_10004",
    )
    assert node_file(NodeId("localhost", 45454)) == "localhost_45454"
