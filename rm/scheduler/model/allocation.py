"""What an AM's heartbeat brings back from the scheduler."""

from __future__ import annotations

from msgspec import Struct, field

from yarn.asks import Preemption, UpdateContainerError
from yarn.containers import Container
from yarn.protocols.master import UpdatedContainer
from yarn.resource import Resource


class Allocation(Struct, frozen=True):
    """What an allocate call hands over.

    `containers` became ACQUIRED by this call, in the order of their placement (tokens are the caller's matter);
    `headroom` is what the application could still get. `updated` are containers that have changed their size,
    `update_errors` changes that could not be taken on now. `preemption`: what is to be taken from the application.
    """

    containers: tuple[Container, ...] = field(default=())
    headroom: Resource = Resource(0, 0)
    updated: tuple[UpdatedContainer, ...] = field(default=())
    update_errors: tuple[UpdateContainerError, ...] = field(default=())
    preemption: Preemption | None = None
