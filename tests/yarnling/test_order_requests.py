"""Orders that cannot be understood; what the others do is tested on clusters."""

from __future__ import annotations

from typing import Any

import pytest

from yarn.errors import InvalidArgumentException
from yarnling.cluster.local_cluster import LocalCluster
from yarnling.cluster.orders import Orders


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        ({}, "order = None: must be a text"),
        ({"order": "fly"}, "order 'fly': must be one of add-node, remove-node"),
        ({"order": "add-node", "count": "two"}, "count = 'two': must be a number"),
        ({"order": "add-node", "count": True}, "count = True: must be a number"),
        ({"order": "add-node", "count": 0}, "count = 0: must be 1 to 1001"),
        ({"order": "add-node", "count": -1}, "count = -1: must be 1 to 1001"),
        ({"order": "add-node", "count": 99999999}, "count = 99999999: must be 1 to 1001"),
        ({"order": "add-node", "memory_mb": 0}, "memory_mb = 0: must be 1 to 2147483647"),
        ({"order": "add-node", "vcores": -5}, "vcores = -5: must be 1 to 2147483647"),
        ({"order": "add-node", "vcores": 10**400}, "vcores = 10000"),
        (
            {"order": "add-node", "count": 0, "memory_mb": 0, "vcores": 0},
            r"count = 0: must be .*\nmemory_mb = 0: .*\nvcores = 0: ",
        ),
        ({"order": "remove-node", "node": 2}, "node = 2: must be a text"),
        ({"order": "kill-node", "node": "2"}, "node 2: the cluster mine has none"),
    ],
)
async def test_an_order_that_is_none_is_refused(request_: dict[str, Any], told: str) -> None:
    said: list[str] = []
    with pytest.raises(InvalidArgumentException, match=told):
        await Orders("mine", LocalCluster(1), lambda: None).carry_out(request_, said.append)
    assert said == [], "it was refused after it had started"
