"""What a queue or an application has lost to preemption so far."""

from __future__ import annotations

from yarn.resource import NONE, Resource


class Losses:
    """Containers, their sizes, and their sizes times the seconds they had run (QueueMetrics, RMAppAttemptMetrics).

    Each container's seconds are cut to whole ones by themselves.
    """

    __slots__ = ("containers", "memory_mb_seconds", "resource", "vcore_seconds")

    def __init__(self, none: Resource = NONE) -> None:
        self.containers = 0
        self.resource = none
        self.memory_mb_seconds = 0
        self.vcore_seconds = 0

    def add(self, size: Resource, lifetime_ms: int) -> None:
        """A container is lost."""
        self.containers += 1
        self.resource = self.resource + size
        self.memory_mb_seconds += size.memory_mb * lifetime_ms // 1000
        self.vcore_seconds += size.vcores * lifetime_ms // 1000
