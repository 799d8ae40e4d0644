"""A node with map outputs, and a reduce that speaks raw bytes to its shuffle service."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from nm.launcher.directories import NodeDirectories, application_dir
from nm.shuffle.server import ShuffleHandler, ShuffleSettings
from wire.files.shuffle import INDEX, OUTPUT, IndexRecord, index_bytes, job_id, service_data, url_hash
from yarn.ids import ApplicationId

APP = ApplicationId(1_795_222_023_200, 7)
JOB = job_id(APP)
SECRET = b"shuffle secret"
MAPS = tuple(f"attempt_1795222023200_0007_m_00000{number}_0" for number in range(3))
HOST = "127.0.0.1"
_SETTINGS = ShuffleSettings()


class MapNode:
    """The local directories of a node, on which the maps of alice's job wrote their output for three reduces."""

    def __init__(self, path: Path) -> None:
        self.disks = [path / "disk-0", path / "disk-1"]
        self.directories = NodeDirectories([str(disk) for disk in self.disks], [str(path / "logs")], random.Random(1))

    def write(self, attempt: str, partitions: list[bytes], disk: int = 0) -> Path:
        directory = self.directory(attempt, disk)
        directory.mkdir(parents=True)
        (directory / OUTPUT).write_bytes(b"".join(partitions))
        records, start = [], 0
        for partition in partitions:
            records.append(IndexRecord(start, len(partition) + 2, len(partition)))
            start += len(partition)
        (directory / INDEX).write_bytes(index_bytes(records))
        return directory

    def directory(self, attempt: str, disk: int = 0) -> Path:
        return Path(application_dir(str(self.disks[disk]), "alice", APP)) / "output" / attempt

    def write_three(self) -> None:
        for number, attempt in enumerate(MAPS):
            partitions = [b"<%d for %d>" % (number, reduce) * (number + 1) for reduce in range(3)]
            self.write(attempt, partitions, disk=number % 2)


@asynccontextmanager
async def served(node: MapNode, settings: ShuffleSettings = _SETTINGS) -> AsyncIterator[ShuffleHandler]:
    """The shuffle service of a node that knows the job."""
    handler = ShuffleHandler(node.directories, settings)
    await handler.listen(HOST)
    handler.init_application(APP, "alice", service_data(APP, SECRET))
    try:
        yield handler
    finally:
        await handler.close()


def target(maps: tuple[str, ...] = MAPS, reduce: int = 0, further: str = "", job: str = JOB) -> str:
    return f"/mapOutput?job={job}&reduce={reduce}&map={','.join(maps)}{further}"


def request(port: int, path: str, *, proof: str | None = "", method: str = "GET", versions: bool = True) -> bytes:
    """The bytes of a request; `proof` "" is the right hash, None no hash."""
    proof = url_hash(SECRET, port, path) if proof == "" else proof
    lines = [f"{method} {path} HTTP/1.1", *([f"UrlHash: {proof}"] if proof is not None else [])]
    lines += ["name: mapreduce", "version: 1.0.0"] if versions else []
    return "\r\n".join([*lines, "User-Agent: Java", f"Host: {HOST}:{port}", "", ""]).encode()


async def exchange(port: int, data: bytes, host: str = HOST) -> bytes:
    """All that the service sends until it closes the connection."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(data)
        return await reader.read()
    finally:
        writer.close()


def split(reply: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers in lower case, body."""
    head, _, body = reply.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return int(first.split()[1]), {name.lower(): value for name, _, value in pairs}, body
