"""The user behind a local connection: the kernel's tables as texts, and real sockets."""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from wire import local_peer
from wire.local_peer import is_foreign, peer_user_id, user_id_in, user_id_of_peer

HEADER = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
    "                                                     \n"
)
PEER, SERVER = ("127.0.0.1", 50000), ("127.0.0.1", 8032)
little_endian = pytest.mark.skipif(sys.byteorder != "little", reason="the tables below are of little-endian machines")


def row(local: str, remote: str, *, state: str = "01", user: int = 1000, inode: int = 4711) -> str:
    return (
        f"   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000 {user:5}        0 {inode} 1 "
        f"0000000000000000 20 4 30 10 -1\n"
    )


def table(*rows: str) -> bytes:
    return (HEADER + "".join(rows)).encode()


CLIENT, LISTENER = "0100007F:C350", "0100007F:1F60"
MAPPED = "0000000000000000FFFF0000"


@little_endian
def test_a_row_is_found_by_both_addresses() -> None:
    listed = table(
        row(LISTENER, "00000000:0000", state="0A", user=0),
        row(LISTENER, CLIENT, user=7),  # our own end
        row("0100007F:C351", LISTENER, user=8),  # another connection
        row(CLIENT, LISTENER),
    )
    assert user_id_in(listed, PEER, SERVER) == 1000
    assert user_id_in(listed, ("127.0.0.1", 50001), SERVER) == 8
    assert user_id_in(listed, ("127.0.0.1", 50002), SERVER) is None


@little_endian
def test_java_connects_from_an_ipv6_socket() -> None:
    assert user_id_in(table(row(MAPPED + CLIENT, MAPPED + LISTENER, user=5)), PEER, SERVER) == 5
    assert user_id_in(table(row(CLIENT, LISTENER)), ("::ffff:127.0.0.1", 50000), ("::ffff:127.0.0.1", 8032)) == 1000


@little_endian
def test_ipv6() -> None:
    loopback = "00000000000000000000000001000000"
    listed = table(row(f"{loopback}:C350", f"{loopback}:1F60", user=6))
    assert user_id_in(listed, ("::1", 50000), ("::1", 8032)) == 6
    assert user_id_in(listed, ("::2", 50000), ("::1", 8032)) is None


@little_endian
@pytest.mark.parametrize("state", ["02", "03", "04", "05", "06", "07", "08", "09", "0B"])
def test_a_socket_that_is_not_established_does_not_count(state: str) -> None:
    """Linux lists closed sockets under user 0: they must not pass for root's."""
    assert user_id_in(table(row(CLIENT, LISTENER, state=state, user=0)), PEER, SERVER) is None


@little_endian
def test_a_socket_that_no_process_holds_does_not_count() -> None:
    assert user_id_in(table(row(CLIENT, LISTENER, user=0, inode=0)), PEER, SERVER) is None


@little_endian
def test_the_last_row_may_lack_its_newline() -> None:
    assert user_id_in(table(row(CLIENT, LISTENER)).rstrip(), PEER, SERVER) == 1000


def test_an_empty_table() -> None:
    assert user_id_in(b"", PEER, SERVER) is None
    assert user_id_in(table(), PEER, SERVER) is None


def test_a_host_name_is_refused() -> None:
    with pytest.raises(ValueError, match="localhost"):
        user_id_in(b"", ("localhost", 1), SERVER)


@contextmanager
def connected(family: socket.AddressFamily, host: str, *, dial: str) -> Iterator[tuple[socket.socket, socket.socket]]:
    """The client's and the server's end of a connection to a listener at `host`, which the client calls `dial`."""
    dialled_family = socket.AF_INET6 if ":" in dial else socket.AF_INET
    with closing(socket.socket(family)) as listener, closing(socket.socket(dialled_family)) as client:
        listener.bind((host, 0))
        listener.listen()
        client.connect((dial, listener.getsockname()[1]))
        served, _ = listener.accept()
        with closing(served):
            yield client, served


def ends(served: socket.socket) -> tuple[tuple[str, int], tuple[str, int]]:
    return served.getpeername()[:2], served.getsockname()[:2]


@pytest.mark.parametrize(
    ("family", "host", "dial"),
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1"),
        (socket.AF_INET, "127.0.0.2", "127.0.0.2"),
        (socket.AF_INET, "127.0.0.1", "::ffff:127.0.0.1"),
        (socket.AF_INET6, "::1", "::1"),
    ],
)
def test_this_process_is_found(family: socket.AddressFamily, host: str, dial: str) -> None:
    try:
        with connected(family, host, dial=dial) as (_, served):
            assert peer_user_id(*ends(served)) == os.getuid()
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")


def test_the_user_of_a_connection() -> None:
    with connected(socket.AF_INET, "127.0.0.1", dial="127.0.0.1") as (client, served):
        assert user_id_of_peer(served) == os.getuid()
        client.shutdown(socket.SHUT_WR)
        assert user_id_of_peer(served) is None, "it will not call again"
        served.close()
        assert user_id_of_peer(served) is None


def test_a_later_connection_from_the_same_port_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller resets its connection; by the time of the look-up another user's process has its port."""
    monkeypatch.setattr(local_peer, "peer_user_id", lambda peer, server: 0)
    with connected(socket.AF_INET, "127.0.0.1", dial="127.0.0.1") as (client, served):
        assert user_id_of_peer(served) == 0
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        assert user_id_of_peer(served) is None


def test_a_caller_that_has_closed_its_socket_is_not_found() -> None:
    with connected(socket.AF_INET, "127.0.0.1", dial="127.0.0.1") as (client, served):
        peer, server = ends(served)
        client.close()
        assert peer_user_id(peer, server) is None


@pytest.mark.parametrize(
    ("user_id", "expected"), [(54321, True), (0, False), (os.geteuid(), False), (None, False)], ids=str
)
def test_another_users_process_is_foreign(
    monkeypatch: pytest.MonkeyPatch, user_id: int | None, *, expected: bool
) -> None:
    """A caller without a user has gone, or is on another machine."""
    monkeypatch.setattr(local_peer, "peer_user_id", lambda peer, server: user_id)
    with connected(socket.AF_INET, "127.0.0.1", dial="127.0.0.1") as (_, served):
        assert is_foreign(served) is expected


def test_without_sock_diag_the_tables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(peer: object, server: object) -> int:
        raise OSError("not in this kernel")

    with connected(socket.AF_INET, "127.0.0.1", dial="127.0.0.1") as (_, served):
        asked = peer_user_id(*ends(served))
        monkeypatch.setattr(local_peer, "_asked_user_id", unsupported)
        assert peer_user_id(*ends(served)) == asked == os.getuid()
