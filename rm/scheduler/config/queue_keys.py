"""How the keys of a queue are written in capacity-scheduler.xml."""

from __future__ import annotations

PREFIX = "yarn.scheduler.capacity."
ROOT = "root"


def queue_key(path: str, name: str) -> str:
    """The key of a queue's property."""
    return f"{PREFIX}{path}.{name}"
