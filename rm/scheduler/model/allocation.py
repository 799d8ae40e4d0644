"""The record that an allocate call returns to the core."""

from __future__ import annotations

from msgspec import Struct

from yarn.containers import Container, Preemption, UpdateContainerError
from yarn.protocols.master import UpdatedContainer
from yarn.resource import Resource


class Allocation(Struct, frozen=True):
    """The result of an allocate call (Hadoop's Allocation).

    `containers` became ACQUIRED in this call; they are in the order of placement and have no tokens yet. `headroom` is
    what the application could still get. `updated` are containers with a new size or execution type, `update_errors`
    the refused updates. `preemption`: the containers to be preempted.
    """

    containers: tuple[Container, ...] = ()
    headroom: Resource = Resource(0, 0)
    updated: tuple[UpdatedContainer, ...] = ()
    update_errors: tuple[UpdateContainerError, ...] = ()
    preemption: Preemption | None = None
