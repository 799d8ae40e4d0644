"""Channels: one a target, and no more of them than there may be."""

from __future__ import annotations

import pytest

from wire.channel import Channels


async def test_each_target_has_one_channel() -> None:
    async with Channels() as channels:
        assert channels.get("127.0.0.1:1") is channels.get("127.0.0.1:1")
        assert channels.get("127.0.0.1:1") is not channels.get("127.0.0.1:2")


async def test_the_one_unused_for_longest_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wire.channel.CHANNELS_MAX", 2)
    async with Channels() as channels:
        first, second = channels.get("a:1"), channels.get("b:1")
        assert channels.get("a:1") is first
        channels.get("c:1")
        assert channels.get("a:1") is first
        assert channels.get("b:1") is not second


async def test_a_channel_with_open_calls_is_not_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wire.channel.CHANNELS_MAX", 1)
    async with Channels() as channels:
        busy = channels.get("a:1")
        busy.calls = 1
        channels.get("b:1")
        assert channels.get("a:1") is busy
