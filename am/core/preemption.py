"""Chooses the containers to release when the RM asks for some back: the cheapest ones that are enough.

A preemption message has two parts. The *strict* contract names containers that will be killed in any case: they are
released at once, so that their work is rescheduled sooner. The *negotiable* contract asks for an amount of resources,
which any containers may provide. The application states what the loss of each container would cost, for example the
seconds that the container has run.

    wanted 2 GB; a=1 GB cost 5, b=2 GB cost 8, c=1 GB cost 9   ->   a, b chosen, then a dropped: b is enough
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from msgspec import Struct

from yarn.containers import Preemption
from yarn.ids import ContainerId
from yarn.resource import NONE, Resource


class ReleaseCandidate(Struct, frozen=True):
    """A container that may be released: its size, and the cost of losing it, in any unit that the
    application chooses.
    """

    resource: Resource
    cost: float


def containers_to_release(
    preemption: Preemption, candidates: Mapping[ContainerId, ReleaseCandidate]
) -> tuple[ContainerId, ...]:
    """Choose the strict containers among `candidates`, then the cheapest others until the negotiable amount is covered.

    The application leaves containers that it wants to keep (its own AM, a task about to end) out of `candidates`. If
    all candidates together are not enough, all of them are released.
    """
    strict = [container_id for container_id in preemption.strict if container_id in candidates]
    wanted = _wanted(preemption, candidates)
    others = sorted((candidates[c].cost, c) for c in candidates if c not in preemption.strict)
    chosen: list[ContainerId] = []
    total = NONE
    for _, container_id in others:
        if wanted.fits_in(total):
            break
        chosen.append(container_id)
        total = total + candidates[container_id].resource
    return (*strict, *_without_surplus(chosen, wanted, candidates))


def _wanted(preemption: Preemption, candidates: Mapping[ContainerId, ReleaseCandidate]) -> Resource:
    """The negotiable amount: the sum of the message's resource requests, or else of the containers that the message
    names.
    """
    if preemption.asks:
        return reduce(Resource.__add__, (ask.capability * ask.count for ask in preemption.asks), NONE)
    named = (candidates[container_id].resource for container_id in preemption.negotiable if container_id in candidates)
    return reduce(Resource.__add__, named, NONE)


def _without_surplus(
    chosen: list[ContainerId], wanted: Resource, candidates: Mapping[ContainerId, ReleaseCandidate]
) -> list[ContainerId]:
    """Remove containers from `chosen` that are not needed to cover `wanted`, the most expensive first."""
    kept = list(chosen)
    for candidate in reversed(chosen):
        rest = [c for c in kept if c != candidate]
        if wanted.fits_in(reduce(Resource.__add__, (candidates[c].resource for c in rest), NONE)):
            kept = rest
    return kept
