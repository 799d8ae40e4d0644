"""Which containers to give back when the RM asks for some: the cheapest ones that are enough.

A preemption message has two parts. The *strict* contract names containers that will be killed in any case: they are
given back at once, so that the work is put elsewhere sooner. The *negotiable* contract asks for an amount: any
containers that add up to it will do. The program says what losing each container would cost (for instance the
seconds that it has run).

    wanted 2 GB; held a=1 GB cost 5, b=2 GB cost 8, c=1 GB cost 9   ->   a, b chosen, then a dropped: b is enough
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from msgspec import Struct

from yarn.asks import Preemption
from yarn.ids import ContainerId
from yarn.resource import NONE, Resource


class Held(Struct, frozen=True):
    """A container that may be given back: its size, and what its loss costs in units of the program's choice."""

    resource: Resource
    cost: float


def containers_to_give_back(preemption: Preemption, held: Mapping[ContainerId, Held]) -> tuple[ContainerId, ...]:
    """The strict ones still held, then the cheapest others until the negotiable amount is covered.

    A container that the program will not part with (its own master, a task about to end) is left out of `held`.
    If all of `held` is too little, all of it is given.
    """
    strict = [container_id for container_id in preemption.strict if container_id in held]
    wanted = _wanted(preemption, held)
    others = sorted((held[c].cost, c) for c in held if c not in preemption.strict)
    chosen: list[ContainerId] = []
    given = NONE
    for _, container_id in others:
        if wanted.fits_in(given):
            break
        chosen.append(container_id)
        given = given + held[container_id].resource
    return (*strict, *_without_surplus(chosen, wanted, held))


def _wanted(preemption: Preemption, held: Mapping[ContainerId, Held]) -> Resource:
    """The negotiable amount: as the asks say, else what the named containers hold."""
    if preemption.asks:
        return reduce(Resource.__add__, (ask.capability * ask.count for ask in preemption.asks), NONE)
    named = (held[container_id].resource for container_id in preemption.negotiable if container_id in held)
    return reduce(Resource.__add__, named, NONE)


def _without_surplus(
    chosen: list[ContainerId], wanted: Resource, held: Mapping[ContainerId, Held]
) -> list[ContainerId]:
    """`chosen` without those that the rest covers as well, the dearest dropped first."""
    kept = list(chosen)
    for candidate in reversed(chosen):
        rest = [c for c in kept if c != candidate]
        if wanted.fits_in(reduce(Resource.__add__, (held[c].resource for c in rest), NONE)):
            kept = rest
    return kept
