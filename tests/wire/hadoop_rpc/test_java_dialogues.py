"""Bytes that Hadoop's own clients sent and were answered, replayed: our server's bytes are the same as then."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.wire.hadoop_rpc.java_dialogues import RECORDINGS, SCENES, serving_scene

HANGS_S = 60


def dialogue(scene: str) -> list[tuple[str, bytes]]:
    text = (RECORDINGS / f"{scene}.json").read_text()
    return [(name, bytes.fromhex(data)) for name, data in json.loads(text)]


@pytest.mark.parametrize("piece", [None, 1, 7])
@pytest.mark.parametrize("scene", SCENES)
async def test_javas_bytes_are_answered_with_the_same_bytes(scene: str, piece: int | None, tmp_path: Path) -> None:
    """`piece`: the client's bytes arrive in pieces of so many."""
    async with asyncio.timeout(HANGS_S), serving_scene(scene, tmp_path) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for name, data in dialogue(scene):
            if name == "server":
                assert await reader.readexactly(len(data)) == data
                continue
            for start in range(0, len(data), piece or len(data)):
                writer.write(data[start : start + (piece or len(data))])
                await writer.drain()
        writer.close()


def test_the_recordings_are_of_what_they_are_named() -> None:
    said = {scene: b"".join(data for _, data in dialogue(scene)) for scene in SCENES}
    assert said["client"].startswith(b"hrpc\x09\x00\x00")
    assert all(said[scene].startswith(b"hrpc\x09\x00\xdf") for scene in SCENES[1:])
    assert b"rspauth=" in said["am"]
    assert b"rspauth=" in said["nm"]
    assert b"rspauth=" not in said["client-with-token"]
    assert b"RpcNoSuchMethodException" in said["client"]
