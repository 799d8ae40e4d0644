"""What a client says of queues."""

from __future__ import annotations

from yarn.queues import QueueInfo, QueueStatistics
from yarn.states import QueueState
from yarnling.client import leaf_queue_names


def queue(path: str, *children: QueueInfo) -> QueueInfo:
    name = path.rpartition(".")[2]
    return QueueInfo(name, path, QueueState.RUNNING, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, QueueStatistics(), children)


def test_what_is_told_to_submit_to_can_be_submitted_to() -> None:
    """`support.training` would be no queue: a path begins with root, and a short name that two have means neither."""
    support = queue("root.support", queue("root.support.training"), queue("root.support.dev"))
    sales = queue("root.sales", queue("root.sales.dev"))
    root = queue("root", support, sales, queue("root.default"))
    assert leaf_queue_names(root) == ["training", "root.support.dev", "root.sales.dev", "default"]
