"""The shuffle service over sockets: what it sends, what it refuses, and what happens to readers that stop."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from nm.shuffle import connection as connection_module
from nm.shuffle.requests import TARGET_CHARS_MAX
from nm.shuffle.server import ShuffleHandler, ShuffleSettings
from tests.nm.shuffle.reduce import APP, HOST, JOB, MAPS, SECRET, MapNode, exchange, request, served, split, target
from tests.nm.waiting import until
from tests.wire.foreign_caller import held_by_nobody, only_as_root
from wire.files.shuffle import INDEX, OUTPUT, IndexRecord, ShuffleHeader, index_bytes, port_bytes, reply_hash, url_hash
from wire.files.writables import WritableReader
from yarn.errors import YarnException

WRONG = "AAAAAAAAAAAAAAAAAAAAAAAAAAA="


@pytest.fixture
def node(tmp_path: Path) -> MapNode:
    node = MapNode(tmp_path)
    node.write_three()
    return node


def parts_of(body: bytes) -> list[tuple[ShuffleHeader, bytes]]:
    """The maps in a reply."""
    reader, parts = WritableReader(body, "the reply"), []
    while reader.position < len(body):
        header = ShuffleHeader.read(reader)
        parts.append((header, reader.take(header.part_length)))
    return parts


async def test_a_reduce_gets_its_partition_of_every_map(node: MapNode) -> None:
    async with served(node) as service:
        path = target(reduce=1)
        status, headers, body = split(await exchange(service.port, request(service.port, path)))
        proof = url_hash(SECRET, service.port, path)
    assert status == 200
    assert headers["replyhash"] == reply_hash(SECRET, proof)
    assert (headers["name"], headers["version"]) == ("mapreduce", "1.0.0")
    assert headers["connection"] == "close"
    assert int(headers["content-length"]) == len(body)
    expected = [b"<0 for 1>", b"<1 for 1>" * 2, b"<2 for 1>" * 3]
    assert parts_of(body) == [
        (ShuffleHeader(attempt, len(data), len(data) + 2, 1), data)
        for attempt, data in zip(MAPS, expected, strict=True)
    ]


@pytest.mark.slow
async def test_the_output_of_a_task_of_tez_is_sent(node: MapNode) -> None:
    """Its names have the numbers of the DAG, the vertex and the output, and of a spill if the shuffle is pipelined."""
    for attempt in (
        "attempt_1795222023200_0007_1_00_000001_0_10003",
        "attempt_1795222023200_0007_1_00_000001_0_10003_2",
    ):
        node.write(attempt, [b"words"])
        async with served(node) as service:
            path = target((attempt,), further="&dag=1&keepAlive=true")
            status, _, body = split(await exchange(service.port, request(service.port, path)))
        assert (status, parts_of(body)) == (200, [(ShuffleHeader(attempt, 5, 7, 0), b"words")])


async def test_the_metadata_is_the_port(node: MapNode) -> None:
    async with served(node) as service:
        assert service.metadata == port_bytes(service.port) == service.port.to_bytes(4, "big")


async def test_an_empty_partition_is_only_a_header(node: MapNode) -> None:
    attempt = MAPS[0].replace("_m_000000", "_m_000009")
    node.write(attempt, [b"", b"x"])
    async with served(node) as service:
        status, _, body = split(await exchange(service.port, request(service.port, target((attempt,)))))
    assert (status, parts_of(body)) == (200, [(ShuffleHeader(attempt, 0, 2, 0), b"")])


async def test_a_large_partition_arrives_whole_and_is_never_in_memory(
    node: MapNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    loop = asyncio.get_running_loop()
    sendfile = loop.sendfile

    async def counting(transport: asyncio.WriteTransport, file: object, offset: int, count: int) -> int:
        sent.append(count)
        return await sendfile(transport, file, offset, count, fallback=False)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "sendfile", counting)
    large = os.urandom(connection_module.SEND_BYTES * 3 + 17)
    attempt = MAPS[0].replace("_m_000000", "_m_000009")
    node.write(attempt, [b"before", large, b"after"])
    async with served(node) as service:
        _, _, body = split(await exchange(service.port, request(service.port, target((attempt, MAPS[1]), reduce=1))))
    assert [data for _, data in parts_of(body)] == [large, b"<1 for 1>" * 2]
    assert sent == [connection_module.SEND_BYTES] * 3 + [17, 18]


REFUSALS = {
    "wrong hash": (401, "Verification of the hashReply failed"),
    "no hash": (401, "fetcher cannot be authenticated"),
    "unknown job": (404, "Can't find job token for job job_1795222023200_0008 !!"),
    "post": (405, ""),
    "no version": (400, "Incompatible shuffle request version"),
    "no map": (400, "Required param job, map and reduce"),
    "no job": (400, "Required param job, map and reduce"),
    "two reduces": (400, "Too many job/reduce parameters"),
    "bad reduce": (400, "Bad reduce parameter"),
    "path as map": (400, "Bad map parameter"),
    "encoded path as map": (400, "Bad map parameter"),
    "too long": (400, ""),
    "not http": (400, ""),
}


def refused_request(port: int, kind: str) -> bytes:
    paths = {
        "no map": f"/mapOutput?job={JOB}&reduce=0",
        "no job": f"/mapOutput?reduce=0&map={MAPS[0]}",
        "two reduces": target(further="&reduce=1"),
        "bad reduce": f"/mapOutput?job={JOB}&reduce=x&map={MAPS[0]}",
        "path as map": target(("../../../../secret",)),
        "encoded path as map": target(("..%2F" + MAPS[0],)),
        "unknown job": target(job="job_1795222023200_0008"),
        "too long": target(tuple([MAPS[0]] * (TARGET_CHARS_MAX // len(MAPS[0]) + 1))),
    }
    if kind == "not http":
        return b"\x00\x01\x02\r\n\r\n"
    path = paths.get(kind, target())
    proof = {"wrong hash": WRONG, "no hash": None}.get(kind, "")
    return request(port, path, proof=proof, method="POST" if kind == "post" else "GET", versions=kind != "no version")


@pytest.mark.parametrize("kind", REFUSALS)
async def test_a_refused_request_gets_hadoops_status_and_text(node: MapNode, kind: str) -> None:
    async with served(node) as service:
        status, headers, body = split(await exchange(service.port, refused_request(service.port, kind)))
    assert (status, body.decode()) == REFUSALS[kind]
    assert "replyhash" not in headers
    assert (headers["name"], headers["version"]) == ("mapreduce", "1.0.0")
    assert headers["content-type"] == "text/plain; charset=UTF-8"


async def test_a_hash_for_another_port_or_url_is_refused(node: MapNode) -> None:
    async with served(node) as service:
        for proof in (url_hash(SECRET, service.port + 1, target()), url_hash(SECRET, service.port, target(reduce=1))):
            status, _, _ = split(await exchange(service.port, request(service.port, target(), proof=proof)))
            assert status == 401


async def test_a_job_is_known_until_its_application_ends(node: MapNode) -> None:
    async with served(node) as service:
        service.stop_application(APP)
        status, _, _ = split(await exchange(service.port, request(service.port, target())))
    assert status == 404


async def test_service_data_that_is_not_a_token_is_logged_and_names_no_secret(
    node: MapNode, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(node) as service:
        service.stop_application(APP)
        service.init_application(APP, "alice", b"\x05secret")
        assert split(await exchange(service.port, request(service.port, target())))[0] == 404
    assert f"cannot serve map outputs of application={APP}" in caplog.text


async def test_missing_or_damaged_output_is_an_error_before_the_first_byte(node: MapNode) -> None:
    directory = node.directory(MAPS[0])
    index = (directory / INDEX).read_bytes()
    beyond = index_bytes([IndexRecord(0, 10, 1000)])
    negative = index_bytes([IndexRecord(-1, 10, 3)])
    async with served(node) as service:
        for damaged, text in (
            (index[:-1] + b"\0", "Error Reading IndexFile"),
            (index[:30], "Error Reading IndexFile"),
            (b"", "Error Reading IndexFile"),
            (beyond, f"file.out of {MAPS[0]} is shorter than its index says"),
            (negative, f"file.out.index of {MAPS[0]} has negative numbers"),
        ):
            (directory / INDEX).write_bytes(damaged)
            status, _, body = split(await exchange(service.port, request(service.port, target())))
            assert (status, body.decode()) == (500, text)
        (directory / INDEX).write_bytes(index)
        status, _, body = split(await exchange(service.port, request(service.port, target(reduce=3))))
        assert (status, body.decode()) == (
            500,
            f"Invalid request  Map Id = {MAPS[0]} Reducer = 3 Index Info Length = 3",
        )
        unknown = MAPS[0].replace("_m_", "_r_")
        status, _, body = split(await exchange(service.port, request(service.port, target((unknown,)))))
        path = f"usercache/alice/appcache/{APP}/output/{unknown}/file.out.index"
        assert (status, body.decode()) == (500, f"Could not find {path} in any of the directories")


@pytest.mark.parametrize("name", [OUTPUT, INDEX])
async def test_a_link_in_place_of_output_is_not_followed(node: MapNode, tmp_path: Path, name: str) -> None:
    """A container that replaces its output by a link must not read files of others through the node."""
    file = node.directory(MAPS[0]) / name
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    async with served(node) as service:
        assert split(await exchange(service.port, request(service.port, target())))[0] == 500


async def test_a_link_in_place_of_the_directory_is_not_followed(node: MapNode, tmp_path: Path) -> None:
    directory = node.directory(MAPS[0])
    directory.rename(tmp_path / "elsewhere")
    directory.symlink_to(tmp_path / "elsewhere")
    async with served(node) as service:
        assert split(await exchange(service.port, request(service.port, target())))[0] == 500


async def test_a_pipe_in_place_of_output_does_not_block(node: MapNode) -> None:
    file = node.directory(MAPS[0]) / INDEX
    file.unlink()
    os.mkfifo(file)
    async with served(node) as service:
        status, _, body = split(await exchange(service.port, request(service.port, target())))
    assert (status, body.decode()) == (500, f"file.out.index of {MAPS[0]} is not a file")


async def test_a_kept_connection_answers_further_requests(node: MapNode) -> None:
    async with served(node) as service:
        reader, writer = await asyncio.open_connection(HOST, service.port)
        for reduce in (0, 1):
            path = target((MAPS[2],), reduce, "&keepAlive=true")
            writer.write(request(service.port, path))
            head = await reader.readuntil(b"\r\n\r\n")
            _, headers, _ = split(head)
            assert (headers["connection"].lower(), headers["keep-alive"]) == ("keep-alive", "timeout=5")
            body = await reader.readexactly(int(headers["content-length"]))
            assert parts_of(body)[0][1] == b"<2 for %d>" % reduce * 3
        writer.close()


async def test_a_kept_connection_is_closed_when_it_is_idle(node: MapNode) -> None:
    async with served(node, ShuffleSettings(keep_alive=True, keep_alive_s=1)) as service:
        _, _, body = split(await exchange(service.port, request(service.port, target())))
    assert len(parts_of(body)) == 3


async def test_a_connection_without_a_request_is_closed(node: MapNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "REQUEST_TIMEOUT_S", 0.05)
    async with served(node) as service:
        assert await exchange(service.port, b"GET /mapOut") == b""


async def test_one_connection_too_many_is_to_come_back_later(node: MapNode) -> None:
    async with served(node, ShuffleSettings(connections_max=2)) as service:
        others = [await asyncio.open_connection(HOST, service.port) for _ in range(2)]
        status, headers, _ = split(await exchange(service.port, request(service.port, target())))
        assert (status, headers["retry-after"]) == (429, "1000")
        for _, writer in others:
            writer.close()
            await writer.wait_closed()


@only_as_root
async def test_another_users_connections_are_closed_and_do_not_count(node: MapNode) -> None:
    async with (
        served(node, ShuffleSettings(connections_max=2)) as service,
        held_by_nobody(service.port, 3, b"GET /mapOut") as answers,
    ):
        status, _, _ = split(await exchange(service.port, request(service.port, target())))
        assert status == 200
        assert answers == ["", "", ""]


async def test_a_reader_that_stops_is_cut_off_and_others_are_served(
    node: MapNode, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    attempt = MAPS[0].replace("_m_000000", "_m_000009")
    node.write(attempt, [bytes(32 << 20)])
    monkeypatch.setattr(connection_module, "SEND_TIMEOUT_S", 0.5)
    async with served(node) as service:
        with socket.socket() as stopped:
            stopped.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stopped.setblocking(False)
            await asyncio.get_running_loop().sock_connect(stopped, (HOST, service.port))
            stopped.send(request(service.port, target((attempt,))))
            status, _, _ = split(await exchange(service.port, request(service.port, target())))
            assert status == 200
            await until(lambda: "the reader took nothing for" in caplog.text, "the stopped reader is cut off")


async def test_closing_ends_connections_in_the_middle_of_a_reply(node: MapNode) -> None:
    attempt = MAPS[0].replace("_m_000000", "_m_000009")
    node.write(attempt, [bytes(32 << 20)])
    async with served(node) as service:
        reader, writer = await asyncio.open_connection(HOST, service.port)
        writer.write(request(service.port, target((attempt,))))
        await reader.readuntil(b"\r\n\r\n")
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await reader.readexactly(32 << 20)
    writer.close()


async def test_a_port_in_use_is_refused_with_the_key(node: MapNode) -> None:
    async with served(node) as service:
        second = ShuffleHandler(node.directories, ShuffleSettings(port=service.port))
        with pytest.raises(YarnException, match=r"cannot listen on mapreduce\.shuffle\.port = 127\.0\.0\.1"):
            await second.listen(HOST)


async def test_an_address_beyond_loopback_is_refused(node: MapNode) -> None:
    with pytest.raises(YarnException, match="can be reached from other machines"):
        await ShuffleHandler(node.directories, ShuffleSettings()).listen("0.0.0.0")
