"""Commands that ClusterCommands cannot understand. Other tests send the valid ones to clusters."""

from __future__ import annotations

from typing import Any

import pytest

from yarn.errors import InvalidArgumentException
from yarnling.cluster.commands import ClusterCommands
from yarnling.cluster.local_cluster import LocalCluster


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({}, "command = None: must be a string"),
        ({"command": "fly"}, "command 'fly': must be one of add-node, remove-node"),
        ({"command": "add-node", "count": "two"}, "count = 'two': must be a number"),
        ({"command": "add-node", "count": True}, "count = True: must be a number"),
        ({"command": "add-node", "count": 0}, "count = 0: must be 1 to 1001"),
        ({"command": "add-node", "count": -1}, "count = -1: must be 1 to 1001"),
        ({"command": "add-node", "count": 99999999}, "count = 99999999: must be 1 to 1001"),
        ({"command": "add-node", "memory_mb": 0}, "memory_mb = 0: must be 1 to 2147483647"),
        ({"command": "add-node", "vcores": -5}, "vcores = -5: must be 1 to 2147483647"),
        ({"command": "add-node", "vcores": 10**400}, "vcores = 10000"),
        (
            {"command": "add-node", "count": 0, "memory_mb": 0, "vcores": 0},
            r"count = 0: must be .*\nmemory_mb = 0: .*\nvcores = 0: ",
        ),
        ({"command": "remove-node", "node": 2}, "node = 2: must be a string"),
        ({"command": "kill-node", "node": "2"}, "node 2: the cluster mine has none"),
    ],
)
async def test_invalid_commands_are_refused(request_: dict[str, Any], message: str) -> None:
    said: list[str] = []
    with pytest.raises(InvalidArgumentException, match=message):
        await ClusterCommands("mine", LocalCluster(1), lambda: None).execute(request_, said.append)
    assert said == [], "it was refused after it had started"
