"""Sockets in the file system are their owner's alone from the moment they exist."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from wire.address import bound


def test_a_socket_is_its_owners_alone_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mode that is set after `bind` leaves a moment in which other users can connect."""
    monkeypatch.delattr(os, "chmod")
    before = os.umask(0)
    try:
        with bound(tmp_path / "a.sock"):
            assert stat.S_IMODE((tmp_path / "a.sock").stat().st_mode) == 0o600
    finally:
        os.umask(before)
