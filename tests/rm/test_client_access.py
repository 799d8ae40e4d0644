"""Who may call the client and admin ports: the owner of the cluster, and root; every local user if it is open.

The caller here is a plain gRPC client in a process of its own that knows the protocol and nothing of the cluster.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from msgspec.structs import replace

from rm.shell.servers import client_authentication
from tests.rm.served_cluster import ADMIN, CLIENT, configuration, serving
from wire.caller import Caller, caller_metadata
from wire.protocols.admin import ResourceManagerAdministrationProtocol
from wire.protocols.client import ApplicationClientProtocol
from wire.protocols.inspection import InspectionProtocol
from yarn.errors import InvalidToken

NOBODY = 65534
HANGS_S = 60
OPEN = {"yarn.yarnling.open-to-local-users": "true"}

PLAIN_CLIENT = """
import json, os, sys
import grpc
target, path, uid = sys.argv[1], sys.argv[2], int(sys.argv[3])
grpc.insecure_channel("127.0.0.1:1").close()  # loads what another user may not read
if uid != os.getuid():
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
with grpc.insecure_channel(target) as channel:
    call = channel.unary_unary(path)
    try:
        call(b"", metadata=(("yarn-user", "root"),), timeout=30)
        said = ("OK", "")
    except grpc.RpcError as error:
        said = (error.code().name, error.details())
print(json.dumps((os.getuid(), *said)))
"""


async def _called_plainly(address: str, path: str, uid: int) -> tuple[int, str, str]:
    """(uid of the caller, status, its message)."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PLAIN_CLIENT, address, path, str(uid), stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(HANGS_S):
        output, _ = await process.communicate()
    assert process.returncode == 0
    caller_uid, status, text = json.loads(output)
    return caller_uid, status, text


CALLS = pytest.mark.parametrize(
    ("address", "rpc"),
    [
        (CLIENT, ApplicationClientProtocol.get_new_application),
        (CLIENT, InspectionProtocol.explain),
        (CLIENT, InspectionProtocol.explain_container),
        (CLIENT, InspectionProtocol.get_node_groups),
        (ADMIN, ResourceManagerAdministrationProtocol.refresh_queues),
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
USERS = pytest.mark.parametrize(
    "uid",
    [
        pytest.param(os.getuid(), id="own"),
        pytest.param(
            NOBODY, id="nobody", marks=pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
        ),
    ],
)


@CALLS
@USERS
async def test_a_caller_who_cannot_read_the_secret_is_refused(tmp_path: Path, address: str, rpc: Any, uid: int) -> None:
    """Being the owner is not enough: the name `root` and a connection are all that any local user has."""
    async with serving(configuration(tmp_path)) as cluster:
        caller_uid, status, text = await _called_plainly(cluster.addresses[address], rpc.path, uid)
    assert caller_uid == uid
    if uid == os.getuid():
        assert status == "UNAUTHENTICATED"
        assert text.startswith("the call has no YarnlingClientToken: only ")
    else:
        assert status == "UNAVAILABLE", "the connection is closed when it is accepted"


@USERS
async def test_an_open_cluster_accepts_every_local_caller(
    tmp_path: Path, uid: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with serving(configuration(tmp_path).overridden(OPEN)) as cluster:
            said = await _called_plainly(
                cluster.addresses[CLIENT], ApplicationClientProtocol.get_new_application.path, uid
            )
    assert said == (uid, "OK", "")
    assert "every user of this machine can run commands as" in caplog.text


async def test_a_wrong_token_is_refused(tmp_path: Path) -> None:
    async with serving(configuration(tmp_path)) as cluster:
        right = cluster.client_token
        wrong = replace(right, password=bytes([right.password[0] ^ 1, *right.password[1:]]))
        async with grpc.aio.insecure_channel(cluster.addresses[CLIENT]) as channel:
            call: Any = channel.unary_unary(ApplicationClientProtocol.get_new_application.path)
            assert await call(b"", metadata=caller_metadata("ann", right))
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call(b"", metadata=caller_metadata("ann", wrong))
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize(
    ("peer", "is_local"),
    [
        ("ipv4:127.0.0.1:4711", True),
        ("ipv4:127.3.0.1:4711", True),
        ("ipv6:%5B::1%5D:4711", True),
        ("ipv6:[::1]:4711", True),
        ("ipv4:192.0.2.7:4711", False),
        ("ipv6:%5B2001:db8::1%5D:4711", False),
        ("ipv4:12.127.0.1:4711", False),
        ("", False),
    ],
)
def test_an_open_cluster_refuses_callers_from_other_machines(tmp_path: Path, peer: str, is_local: bool) -> None:
    check = client_authentication(configuration(tmp_path).overridden(OPEN), b"secret")
    caller = Caller("ann", None, peer, None)
    if is_local:
        check(caller)
    else:
        with pytest.raises(InvalidToken, match="no YarnlingClientToken"):
            check(caller)
