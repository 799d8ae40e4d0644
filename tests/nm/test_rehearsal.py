"""A NodeManager's life without a cluster, in the process that will fork NodeManagers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import grpc.aio._call
import grpc.aio._channel
import grpc.aio._server
import pytest
from grpc._cython import cygrpc

from nm import rehearsal
from nm.events import HeartbeatAnswered, NodeRegistered
from nm.rehearsal import BEATS, rehearse
from nm.shell import NodeShell


def test_it_registers_beats_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[type] = []
    handle = NodeShell.handle

    def noted(shell: NodeShell, event: object) -> None:
        events.append(type(event))
        handle(shell, event)  # type: ignore[arg-type]

    monkeypatch.setattr(NodeShell, "handle", noted)
    rehearse(tmp_path / "one")
    assert events.count(NodeRegistered) == 1
    assert events.count(HeartbeatAnswered) >= BEATS - 1


def test_it_makes_nothing_of_grpc_and_no_thread_and_puts_back_what_it_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(*arguments: object, **options: object) -> None:
        raise AssertionError("a process that has made one can fork no more")

    makers = ("AioServer", "AioChannel", "get_working_loop")
    for name in makers:
        monkeypatch.setattr(cygrpc, name, made)
    threads = len(os.listdir("/proc/self/task"))
    rehearse(tmp_path / "one")
    assert len(os.listdir("/proc/self/task")) == threads
    assert all(getattr(cygrpc, name) is made for name in makers)


def test_the_python_layer_of_grpc_takes_part(tmp_path: Path) -> None:
    layer = (
        grpc.aio._server.Server.__init__,
        grpc.aio._server.Server.start,
        grpc.aio._channel.Channel.__init__,
        grpc.aio._channel.Channel.wait_for_state_change,
        grpc.aio._call.UnaryUnaryCall._invoke,
    )
    ran: set[object] = set()
    sys.setprofile(lambda frame, event, argument: ran.add(frame.f_code))
    try:
        rehearse(tmp_path / "one")
    finally:
        sys.setprofile(None)
    assert {function.__code__ for function in layer} <= ran


def test_its_files_are_all_in_its_directory_and_its_descriptors_are_closed(tmp_path: Path) -> None:
    rehearse(tmp_path / "one")
    before = len(os.listdir("/proc/self/fd"))
    rehearse(tmp_path / "two")
    assert len(os.listdir("/proc/self/fd")) == before
    assert sorted(os.listdir(tmp_path)) == ["one", "two"]
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == ["local", "logs", "secret"]


def test_a_failure_puts_back_what_it_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*arguments: object, **options: object) -> int:
        raise OSError("no room")

    monkeypatch.setattr(rehearsal, "serve", fails)
    server = cygrpc.AioServer
    with pytest.raises(OSError, match="no room"):
        rehearse(tmp_path / "one")
    assert cygrpc.AioServer is server
