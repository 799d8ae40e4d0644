"""A port that is held is nobody else's, and its owner's server may come and go."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest

from wire.address import Address
from wire.server import RpcServer
from yarn.errors import YarnException
from yarnling.cluster.held_ports import HeldPorts

IP_LOCAL_PORT_RANGE = 51
"""From Linux 6.3 on a socket can be told which ports the kernel may choose from for it."""


@pytest.fixture
def held() -> Iterator[HeldPorts]:
    with contextlib.closing(HeldPorts()) as held:
        yield held


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def choosing_from(port: int) -> socket.socket:
    """A socket for which the kernel may choose one port alone."""
    chooser = socket.socket()
    try:
        chooser.setsockopt(socket.IPPROTO_IP, IP_LOCAL_PORT_RANGE, (port << 16 | port).to_bytes(4, "little"))
    except OSError:
        chooser.close()
        pytest.skip("this kernel cannot be told what to choose from")
    chooser.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return chooser


def test_the_kernel_gives_it_to_nobody(held: HeldPorts) -> None:
    port = port_of(held.hold("127.0.0.1:0"))
    with choosing_from(port) as other, pytest.raises(OSError, match="Address already in use"):
        other.bind(("127.0.0.1", 0))
    with socket.create_server(("127.0.0.1", 0)) as server, choosing_from(port) as caller:
        with pytest.raises(OSError, match="Cannot assign requested address"):
            caller.connect(server.getsockname())
        held.close()
        caller.connect(server.getsockname())
        assert caller.getsockname()[1] == port


def test_nobody_is_called_there(held: HeldPorts) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port_of(held.hold("127.0.0.1:0"))))


async def test_a_server_listens_there_and_again_but_never_two(held: HeldPorts) -> None:
    address = Address("127.0.0.1", port_of(held.hold("127.0.0.1:0")))
    for _ in range(2):
        server = RpcServer(address)
        await server.start()
        try:
            assert server.port == address.port
            with pytest.raises(YarnException, match="in use"):
                await RpcServer(address).start()
        finally:
            await server.stop(0)


def test_what_has_a_port_or_cannot_be_had_stays(held: HeldPorts) -> None:
    assert [held.hold(address) for address in ("127.0.0.1:8032", "192.0.2.1:0")] == ["127.0.0.1:8032", "192.0.2.1:0"]
