"""Only the small disks of a run are filled."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarnling.faults.disks import DiskUnavailable, SmallDisk


def test_a_directory_without_a_mount_is_not_filled(tmp_path: Path) -> None:
    """Without a mount the directory is on the machine's own disk."""
    (tmp_path / "kept").touch()
    with pytest.raises(DiskUnavailable, match="is larger than the small disk"):
        SmallDisk(tmp_path).fill()
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
