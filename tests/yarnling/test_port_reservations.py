"""A reserved port is given to no other program, and a server of its owner can use it again and again."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest

from tests.wire.serving import socket_dir
from wire.address import Address
from wire.server import RpcServer
from yarn.errors import InvalidArgumentException, YarnException
from yarnling.cluster.port_reservations import PortReservations

IP_LOCAL_PORT_RANGE = 51
"""Socket option of Linux 6.3: the range of ports that the kernel may assign."""


@pytest.fixture
def ports() -> Iterator[PortReservations]:
    with contextlib.closing(PortReservations()) as ports:
        yield ports


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def choosing_from(port: int) -> socket.socket:
    """A socket to which the kernel can assign only this port."""
    chooser = socket.socket()
    try:
        chooser.setsockopt(socket.IPPROTO_IP, IP_LOCAL_PORT_RANGE, (port << 16 | port).to_bytes(4, "little"))
    except OSError:
        chooser.close()
        pytest.skip("this kernel has no IP_LOCAL_PORT_RANGE")
    chooser.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return chooser


def test_the_kernel_does_not_assign_it(ports: PortReservations) -> None:
    port = port_of(ports.reserve("127.0.0.1:0"))
    with choosing_from(port) as other, pytest.raises(OSError, match="Address already in use"):
        other.bind(("127.0.0.1", 0))
    with socket.create_server(("127.0.0.1", 0)) as server, choosing_from(port) as caller:
        with pytest.raises(OSError, match="Cannot assign requested address"):
            caller.connect(server.getsockname())
        ports.close()
        caller.connect(server.getsockname())
        assert caller.getsockname()[1] == port


def test_connections_to_it_are_refused(ports: PortReservations) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port_of(ports.reserve("127.0.0.1:0"))))


async def test_one_server_at_a_time_can_listen_there(ports: PortReservations) -> None:
    address = Address("127.0.0.1", port_of(ports.reserve("127.0.0.1:0")))
    for _ in range(2):
        server = RpcServer(address, socket_dir())
        await server.start()
        try:
            assert server.port == address.port
            with pytest.raises(YarnException, match="in use"):
                await RpcServer(address, socket_dir()).start()
        finally:
            await server.stop(0)


def test_other_addresses_stay_as_they_are(ports: PortReservations) -> None:
    assert [ports.reserve(address) for address in ("127.0.0.1:8032", "192.0.2.1:0")] == [
        "127.0.0.1:8032",
        "192.0.2.1:0",
    ]


def test_the_next_free_port_is_taken(ports: PortReservations) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        assert port_of(ports.reserve_from(f"127.0.0.1:{taken}")) > taken
    assert ports.reserve_from(f"127.0.0.1:{taken}") == f"127.0.0.1:{taken}"


def test_no_free_port_is_an_error_with_its_remedy(ports: PortReservations, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yarnling.cluster.port_reservations.PORTS_TRIED_MAX", 1)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(InvalidArgumentException, match="--no-web"):
            ports.reserve_from(f"127.0.0.1:{other.getsockname()[1]}")


def test_two_clusters_that_start_at_once_reserve_different_ports() -> None:
    with contextlib.closing(PortReservations()) as first, contextlib.closing(PortReservations()) as second:
        address = first.reserve_from("127.0.0.1:28088")
        assert port_of(second.reserve_from("127.0.0.1:28088")) > port_of(address)
