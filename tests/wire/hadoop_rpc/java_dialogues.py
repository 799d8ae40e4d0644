"""Dialogues between Hadoop 3.4.1's own clients and our server, byte by byte: how they were recorded.

    python -m tests.wire.hadoop_rpc.java_dialogues 'DIR/*'

DIR has the jars of hadoop-client-api and hadoop-client-runtime. recordings/Talk.java talks to a server whose keys,
nonce and replies are fixed, so that the bytes of the client decide those of the server; recordings/NAME.json has both.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from unittest import mock

from tests.wire.hadoop_rpc.serving import BY_USER, serving_both
from tests.wire.serving import Recorder, anybody
from wire.hadoop_authentication import ByToken
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.container_management import ContainerManagementProtocol
from wire.protocols.master import ApplicationMasterProtocol
from wire.server import RpcServer
from wire.tokens import AMRMTokenSecretManager, KeyRing, NMTokenSecretManager
from yarn.containers import Token
from yarn.errors import ApplicationNotFoundException
from yarn.ids import ApplicationAttemptId, ApplicationId, NodeId
from yarn.nodes import ClusterMetrics
from yarn.protocols.container_management import GetContainerStatusesResponse
from yarn.protocols.master import (
    AllocateResponse,
    FinishApplicationMasterResponse,
    RegisterApplicationMasterResponse,
)
from yarn.protocols.tracker import MasterKey
from yarn.resource import Resource

RECORDINGS = Path(__file__).with_name("recordings")
SCENES = ("client", "client-with-token", "am", "nm")
NONCE = "a-nonce-that-is-not-fresh"
ATTEMPT = ApplicationAttemptId(ApplicationId(1_700_000_000_000, 1), 1)
KEYS = KeyRing(MasterKey(4711, bytes(range(32))))
MASTERS, NODES = AMRMTokenSecretManager(KEYS), NMTokenSecretManager(KEYS)
ANSWERS = {
    "get_cluster_metrics": ClusterMetrics(3),
    "get_application_report": ApplicationNotFoundException("Application with id 'application_1_0001' doesn't exist."),
    "register_application_master": RegisterApplicationMasterResponse(Resource(8192, 8), "default"),
    "allocate": AllocateResponse(1, Resource(1024, 1), 3),
    "finish_application_master": FinishApplicationMasterResponse(True),
    "get_container_statuses": GetContainerStatusesResponse(),
}
SAID = {
    "client": ["nodes 3", "refused Application with id", "refused org.apache.hadoop.ipc.RpcNoSuchMethodException"],
    "client-with-token": ["nodes 3", "refused Application with id", "refused org.apache.hadoop.ipc.RpcNoSuchM"],
    "am": ["response 1", "unregistered true"],
    "nm": ["statuses 0"],
}
"""The beginning of the lines that the Java program prints."""


def token_of(scene: str) -> Token | None:
    """The token that the client of a scene has."""
    if scene == "client":
        return None
    return NODES.create(ATTEMPT, NodeId("127.0.0.2", 1), "ann") if scene == "nm" else MASTERS.create(ATTEMPT)


@asynccontextmanager
async def serving_scene(scene: str, directory: Path) -> AsyncIterator[RpcServer]:
    recorder = Recorder(ANSWERS)
    with mock.patch("wire.hadoop_rpc.connection.secrets.token_urlsafe", return_value=NONCE):
        if scene.startswith("client"):
            serving = serving_both(
                ApplicationClientProtocol.rpcs, recorder, directory, authentication=BY_USER, authenticate=anybody
            )
        else:
            rpcs, manager = (
                (ContainerManagementProtocol.rpcs, NODES)
                if scene == "nm"
                else (ApplicationMasterProtocol.rpcs, MASTERS)
            )
            serving = serving_both(
                rpcs,
                recorder,
                directory,
                authentication=ByToken(manager.token_of),
                authenticate=lambda caller: manager.check(caller.token),
            )
        async with serving as server:
            yield server


async def record(scene: str, class_path: str) -> list[tuple[str, str]]:
    """[("client" or "server", bytes in hexadecimal)] of one connection."""
    said: list[tuple[str, bytearray]] = []

    async def copy(name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if not said or said[-1][0] != name:
                said.append((name, bytearray()))
            said[-1][1].extend(data)
            writer.write(data)
        writer.close()

    with tempfile.TemporaryDirectory() as directory:
        async with serving_scene(scene, Path(directory)) as server:

            async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                behind_reader, behind_writer = await asyncio.open_connection("127.0.0.1", server.port)
                await asyncio.gather(
                    copy("client", reader, behind_writer), copy("server", behind_reader, writer), return_exceptions=True
                )

            async with await asyncio.start_server(pass_on, "127.0.0.1", 0) as proxy:
                port = proxy.sockets[0].getsockname()[1]
                lines = await _talk(scene, port, class_path)
    assert len(lines) == len(SAID[scene]), lines
    assert all(line.startswith(start) for line, start in zip(lines, SAID[scene], strict=True)), lines
    return [(name, data.hex()) for name, data in said]


async def _talk(scene: str, port: int, class_path: str) -> list[str]:
    token = token_of(scene)
    secrets = [base64.b64encode(data).decode() for data in (token.identifier, token.password)] if token else []
    command = ["java", "-cp", class_path, str(RECORDINGS / "Talk.java"), scene, str(port), *secrets]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    return output.decode().splitlines()


def main() -> None:
    for scene in SCENES:
        dialogue = asyncio.run(record(scene, sys.argv[1]))
        (RECORDINGS / f"{scene}.json").write_text(json.dumps(dialogue, indent=1) + "\n")


if __name__ == "__main__":
    main()
