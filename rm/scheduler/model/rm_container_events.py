"""The events of an RMContainer (RMContainerEventType). They carry no id: the scheduler passes them to the container."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from yarn.containers import ContainerStatus, NMContainerStatus
from yarn.resource import Resource


class RMContainerStart(Struct, frozen=True):
    """The scheduler placed the container."""


class RMContainerReserved(Struct, frozen=True):
    """The scheduler reserved a node for the container, or checked the reservation again."""


class RMContainerAcquired(Struct, frozen=True):
    """The AM has received the container, with its token."""


class RMContainerLaunched(Struct, frozen=True):
    """The NM reported the container for the first time."""


class RMContainerFinished(Struct, frozen=True):
    """The NM reported the container's end."""

    status: ContainerStatus


class RMContainerReleased(Struct, frozen=True):
    """The AM released the container, or the reservation is no longer needed."""

    status: ContainerStatus


class RMContainerExpire(Struct, frozen=True):
    """The AM did not start the container in time."""

    status: ContainerStatus


class RMContainerKill(Struct, frozen=True):
    """The scheduler kills the container: its node was lost, its attempt ended, or it is preempted."""

    status: ContainerStatus


class AcquireUpdatedContainer(Struct, frozen=True):
    """The AM has received the container's new size or execution type."""

    is_increase: bool


class NMDoneChangeResource(Struct, frozen=True):
    """The NM reported the container's present size."""

    reported: Resource


class RMContainerRecover(Struct, frozen=True):
    """An NM reported the container after a restart of the ResourceManager."""

    report: NMContainerStatus


RMContainerEnd: TypeAlias = RMContainerFinished | RMContainerReleased | RMContainerExpire | RMContainerKill
"""The events that end a container, each with the status that its attempt gets."""

RMContainerEvent: TypeAlias = (
    RMContainerStart
    | RMContainerReserved
    | RMContainerAcquired
    | RMContainerLaunched
    | RMContainerEnd
    | AcquireUpdatedContainer
    | NMDoneChangeResource
    | RMContainerRecover
)
"""All events of a container."""
