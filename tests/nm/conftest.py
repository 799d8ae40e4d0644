"""A node's directories for tests of its NodeManager."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nm.launcher.directories import NodeDirectories


@pytest.fixture
def directories(tmp_path: Path) -> NodeDirectories:
    (tmp_path / "local").mkdir()
    (tmp_path / "logs").mkdir()
    return NodeDirectories([str(tmp_path / "local")], [str(tmp_path / "logs")], random.Random(1))
