"""What LocalCluster refuses before it starts anything."""

from __future__ import annotations

from typing import Any

import pytest

from yarn.errors import InvalidArgumentException
from yarnling.local_cluster import LocalCluster


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"nodes": -1}, "nodes = -1: must be 0 to "),
        ({"nodes": 2, "racks": 3}, "racks = 3: must be 1 to 2"),
        ({"settings": {"a.key": 1}}, r"settings: a.key = 1: must be a text \(write '1'\)"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidArgumentException, match=told):
        LocalCluster(**arguments)


def test_a_cluster_that_is_not_up_says_how() -> None:
    with pytest.raises(InvalidArgumentException, match="enter its context: with LocalCluster"):
        _ = LocalCluster().client
