"""The shuffle service against what Hadoop 3.4.1's ShuffleHandler answered to the same bytes (golden/shuffle.json).

RecordShuffle.java made the recording: DIRECTORY PORT USER as arguments, and on standard input a line for each case: its
name, the path, the method, which hash (right, wrong, none), and whether to send the version headers, between tabs.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from nm.shuffle.server import ShuffleHandler, ShuffleSettings
from tests.nm.shuffle.reduce import APP, HOST, SECRET, MapNode, exchange, split
from wire.files.shuffle import INDEX, OUTPUT, IndexRecord, index_bytes, index_record, port_bytes, service_data, url_hash

RECORDED: dict[str, Any] = json.loads((Path(__file__).parents[1] / "golden" / "shuffle.json").read_text())
CASES: dict[str, dict[str, str]] = {case["case"]: case for case in RECORDED["cases"]}

DIFFERENT = {
    # docs/fidelity.md
    "unknown job": (404, "Can't find job token for job job_1795222023200_0008 !!"),
    "path as map": (400, "Bad map parameter"),
    "too long": (400, ""),
}


@pytest.fixture
def node(tmp_path: Path) -> MapNode:
    """The map outputs that Hadoop's classes wrote."""
    node = MapNode(tmp_path)
    for recorded in RECORDED["maps"]:
        directory = node.directory(recorded["attempt"])
        directory.mkdir(parents=True)
        (directory / OUTPUT).write_bytes(base64.b64decode(recorded["output"]))
        (directory / INDEX).write_bytes(base64.b64decode(recorded["index"]))
    return node


def with_port(request: str, port: int) -> str:
    """The request for another port: the port is part of the hash that proves the caller."""
    path = request.split(" ")[1]
    recorded = f"UrlHash: {url_hash(SECRET, RECORDED['port'], path)}\r\n"
    return request.replace(recorded, f"UrlHash: {url_hash(SECRET, port, path)}\r\n")


@pytest.mark.parametrize("case", CASES)
async def test_the_same_bytes_get_the_same_reply(node: MapNode, case: str) -> None:
    handler = ShuffleHandler(node.directories, ShuffleSettings(keep_alive_s=1))
    await handler.listen(HOST)
    try:
        handler.init_application(APP, "alice", base64.b64decode(RECORDED["service_data"]))
        reply = await exchange(handler.port, with_port(CASES[case]["request"], handler.port).encode())
    finally:
        await handler.close()
    status, headers, body = split(reply)
    hadoops_status, hadoops_headers, hadoops_body = split(CASES[case]["reply"].encode("latin-1"))
    if case in DIFFERENT:
        assert (status, body.decode()) == DIFFERENT[case]
        assert hadoops_status != 200
        return
    assert status == hadoops_status
    assert body == re.sub(rb"any of the local directories\.$", b"any of the directories", hadoops_body)
    if status == 200:
        assert ("replyhash" in headers, headers.get("keep-alive")) == (True, _shorter(hadoops_headers))
        assert {**headers, "replyhash": "", "keep-alive": ""} == {**hadoops_headers, "replyhash": "", "keep-alive": ""}
    else:
        assert {name: headers[name] for name in ("content-type", "name", "version")} == {
            name: hadoops_headers[name] for name in ("content-type", "name", "version")
        }


def _shorter(headers: dict[str, str]) -> str | None:
    """Hadoop's keep-alive header with the second that this test waits."""
    recorded = headers.get("keep-alive")
    return None if recorded is None else recorded.replace("5", "1")


def test_the_hashes_are_hadoops() -> None:
    case = CASES["three maps"]
    path = case["request"].split(" ")[1]
    assert f"UrlHash: {url_hash(SECRET, RECORDED['port'], path)}\r\n" in case["request"]


def test_service_data_and_metadata_are_hadoops() -> None:
    assert service_data(APP, SECRET) == base64.b64decode(RECORDED["service_data"])
    assert port_bytes(RECORDED["port"]) == base64.b64decode(RECORDED["metadata"])


def test_indexes_are_hadoops() -> None:
    for recorded in RECORDED["maps"]:
        data = base64.b64decode(recorded["index"])
        records = [index_record(data, reduce, recorded["attempt"]) for reduce in range(3)]
        assert index_bytes(records) == data
        assert [record.part_length for record in records] == [
            len(base64.b64decode(recorded["output"])[record.start :][: record.part_length]) for record in records
        ]
    assert records[1] == IndexRecord(0, 29, 27)
