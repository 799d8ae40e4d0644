"""Disks that are filled: those of a run alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarnling.chaos.disks import NoDisk, SmallDisk


def test_a_disk_that_is_none_is_not_filled(tmp_path: Path) -> None:
    """Where nothing is mounted, there is the disk of the machine."""
    (tmp_path / "kept").touch()
    with pytest.raises(NoDisk, match="it took more"):
        SmallDisk(tmp_path).fill()
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
