"""Warnings about capacities that could not be granted as configured, without legacy queue mode."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class QueueUpdateWarning(Enum):
    """Why a capacity could not be granted as configured (QueueUpdateWarningType), in Hadoop's words."""

    BRANCH_UNDERUTILIZED = "Remaining resource found in branch under parent queue '{}'."
    QUEUE_OVERUTILIZED = "Queue '{}' is configured to use more resources than what is available under its parent."
    QUEUE_ZERO_RESOURCE = "Queue '{}' is assigned zero resource."
    BRANCH_DOWNSCALED = (
        "Child queues with absolute configured capacity under parent queue '{}' are downscaled due to insufficient "
        "cluster resource."
    )
    QUEUE_EXCEEDS_MAX_RESOURCE = "Queue '{}' exceeds its maximum available resources."
    QUEUE_MAX_RESOURCE_EXCEEDS_PARENT = "Maximum resources of queue '{}' are greater than its parent's."


class CapacityWarning(Struct, frozen=True):
    """A warning about one resource type of a queue on a partition."""

    kind: QueueUpdateWarning
    queue: str
    partition: str
    resource: str

    def __str__(self) -> str:
        where = f"{self.resource} on {self.partition}" if self.partition else self.resource
        return f"{self.kind.value.format(self.queue)} ({where})"
