"""The control socket: only for its user, with limits; a command is cancelled when its client disconnects."""

from __future__ import annotations

import asyncio
import contextlib
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from wire.address import short_name
from yarn.errors import YarnException
from yarnling.cluster import control_socket
from yarnling.cluster.control_socket import (
    LINE_BYTES_MAX,
    WAITING_MAX,
    Execute,
    NoSupervisor,
    answers,
    bound_socket,
    serving_commands,
)
from yarnling.cluster.nodes import Report


@pytest.fixture
def path(tmp_path: Path) -> Path:
    # Longer than the address of a socket may be.
    directory = tmp_path / ("long" * 30)
    directory.mkdir()
    return directory / "default.sock"


@contextlib.asynccontextmanager
async def listening(path: Path, execute: Execute) -> AsyncIterator[None]:
    with bound_socket(path) as listener:
        async with serving_commands(listener, execute):
            yield


async def asked(path: Path, request: dict[str, Any]) -> list[dict[str, Any]]:
    return await asyncio.to_thread(lambda: list(answers(path, request)))


@contextlib.asynccontextmanager
async def connected(path: Path) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    with short_name(path) as short:
        reader, writer = await asyncio.open_unix_connection(short)
    try:
        yield reader, writer
    finally:
        writer.close()


async def echo(request: dict[str, Any], report: Report) -> dict[str, Any]:
    report("half")
    if request["command"] == "fail":
        raise YarnException("no such node")
    if request["command"] == "break":
        raise KeyError("a bug")
    return {"facts": request, "text": "done"}


async def test_progress_comes_before_the_end(path: Path) -> None:
    async with listening(path, echo):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert await asked(path, {"command": "x"}) == [
            {"progress": "half"},
            {"facts": {"command": "x"}, "text": "done"},
        ]
        assert await asked(path, {"command": "fail"}) == [{"progress": "half"}, {"error": "no such node"}]
        (_, broken) = await asked(path, {"command": "break"})
        assert broken == {"error": "the supervisor failed: KeyError: 'a bug'"}
    assert not path.exists()


async def test_without_a_supervisor_the_command_fails_with_an_explanation(path: Path) -> None:
    with pytest.raises(NoSupervisor, match="No such file"):
        await asked(path, {"command": "x"})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"hello\n", "not a command: Expecting value"),
        (b"[1]\n", "not a command: must be a JSON object"),
        (b"x" * (2 * LINE_BYTES_MAX) + b"\n", "not a command: "),
        (b"[" * 60_000 + b"\n", "not a command: nested too deeply"),
        (b'{"command": ' + b"[" * 50_000 + b"\n", "not a command: nested too deeply"),
        (b"\xff\n", "not a command: "),
        (b'{"command": ' + b"9" * 5000 + b"}\n", "not a command: "),
        (b"", "not a command: "),
    ],
)
async def test_other_lines_are_refused(path: Path, line: bytes, message: str) -> None:
    async with listening(path, echo), connected(path) as (reader, writer):
        writer.write(line)
        writer.write_eof()
        assert message.encode() in await reader.readline()
        assert await reader.read() == b""


async def test_an_idle_client_is_disconnected(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_socket, "REQUEST_S", 0.01)
    async with listening(path, echo), connected(path) as (reader, _):
        assert b"no command was received in 0.01 s" in await reader.readline()


async def test_another_user_is_disconnected(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yarnling.cluster.control_socket.os.geteuid", lambda: 4711)
    async with listening(path, echo):
        with pytest.raises(NoSupervisor):
            await asked(path, {"command": "x"})


async def test_a_command_is_cancelled_when_its_client_disconnects(path: Path) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def long(request: dict[str, Any], report: Report) -> dict[str, Any]:
        started.set()
        try:
            await asyncio.get_running_loop().create_future()
            return {}
        finally:
            cancelled.set()

    async with asyncio.timeout(60), listening(path, long), connected(path) as (_, writer):
        writer.write(b'{"command": "x"}\n')
        await started.wait()
        writer.close()
        await cancelled.wait()


async def test_a_command_is_cancelled_when_its_supervisor_ends(path: Path) -> None:
    started = asyncio.Event()

    async def long(request: dict[str, Any], report: Report) -> dict[str, Any]:
        started.set()
        await asyncio.get_running_loop().create_future()
        return {}

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        async with listening(path, long):
            waiting = tasks.create_task(asked_in_vain(path))
            await started.wait()
        assert "the supervisor has ended" in await waiting


async def asked_in_vain(path: Path) -> str:
    with pytest.raises(NoSupervisor) as refused:
        await asked(path, {"command": "x"})
    return refused.value.message


async def test_idle_connections_do_not_block_a_command(path: Path) -> None:
    """The connection that has been idle longest is closed with an error."""
    async with asyncio.timeout(60), listening(path, echo), contextlib.AsyncExitStack() as stack:
        idle = [await stack.enter_async_context(connected(path)) for _ in range(WAITING_MAX)]
        assert (await asked(path, {"command": "x"}))[-1]["text"] == "done"
        assert b"more than 16 connections have not sent a command" in await idle[0][0].readline()
        idle[1][1].write(b'{"command": "x"}\n')
        assert b"half" in await idle[1][0].readline()


async def test_the_number_of_running_commands_is_limited(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_socket, "COMMANDS_MAX", 1)
    started, end = asyncio.Event(), asyncio.Event()

    async def long(request: dict[str, Any], report: Report) -> dict[str, Any]:
        started.set()
        await end.wait()
        return {"text": "done"}

    async with asyncio.timeout(60), listening(path, long), connected(path) as (reader, writer):
        writer.write(b'{"command": "x"}\n')
        await started.wait()
        assert await asked(path, {"command": "x"}) == [{"error": "1 commands are running (wait until one has ended)"}]
        end.set()
        assert b"done" in await reader.readline()
        assert await asked(path, {"command": "x"}) == [{"text": "done"}]


async def test_a_second_line_is_refused(path: Path) -> None:
    async def long(request: dict[str, Any], report: Report) -> dict[str, Any]:
        return await asyncio.get_running_loop().create_future()

    async with asyncio.timeout(60), listening(path, long), connected(path) as (reader, writer):
        writer.write(b'{"command": "x"}\n{"command": "y"}\n')
        assert b"send one line for each connection" in await reader.readline()
