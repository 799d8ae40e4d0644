"""How much one application may keep in the scheduler: requests, resource names of a request, blacklist, releases.

Hadoop has none of these limits; its ResourceManager runs out of memory instead. Each is far above what applications
use. A call that would exceed one is refused whole, before anything of it is applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.asks import AppSchedulingInfo, SchedulerKey
from yarn.asks import ANY, ResourceRequest
from yarn.errors import (
    InvalidContainerReleaseException,
    InvalidResourceBlacklistRequestException,
    InvalidResourceRequestException,
)
from yarn.ids import ApplicationAttemptId, ContainerId

REQUESTS_MAX = 100_000
"""Rows of all keys of one attempt, as many as one message may hold. Ten priorities on a cluster of 5,000 hosts are
50,000."""
NAMES_MAX = 10_000
"""Hosts and racks of one key: Hadoop's largest clusters have about that many."""
BLACKLIST_MAX = 10_000
"""Hosts and racks that one application avoids."""
REMEMBERED_RELEASES_MAX = 100_000
"""Releases that wait for a node to bring its containers back after a restart of the ResourceManager."""
NAMED_MAX = 3
"""Keys with too many names that a refusal lists; further ones are counted."""


def check_requests(attempt_id: ApplicationAttemptId, info: AppSchedulingInfo, asks: Sequence[ResourceRequest]) -> None:
    """Raises InvalidResourceRequestException if the attempt would have too many requests after these."""
    if info.row_count + len(asks) <= min(REQUESTS_MAX, NAMES_MAX):
        return
    total, crowded = info.row_count, list[str]()
    for key, names, is_withdrawn in _by_key(asks):
        keyed = info.at(key)
        known = keyed.rows if keyed is not None else {}
        count = 0 if is_withdrawn else len(known) + sum(name not in known for name in names)
        total += count - len(known)
        if count > NAMES_MAX + 1:
            crowded.append(f"priority {key.priority} (request id {key.allocation_request_id}) {count - 1}")
    faults = list(_faults(total, crowded))
    if faults:
        raise InvalidResourceRequestException(f"Invalid resource request! {attempt_id} {'; and '.join(faults)}")


def _by_key(asks: Iterable[ResourceRequest]) -> Iterator[tuple[SchedulerKey, dict[str, int], bool]]:
    """(key, {name: count}, whether its last `*` row withdraws the key)."""
    grouped: dict[SchedulerKey, dict[str, int]] = {}
    for ask in asks:
        grouped.setdefault(SchedulerKey.of(ask), {})[ask.resource_name] = ask.count
    for key, counts in grouped.items():
        yield key, counts, counts.get(ANY, 1) <= 0


def _faults(total: int, crowded: list[str]) -> Iterator[str]:
    if total > REQUESTS_MAX:
        yield f"would have {total} requests, at most {REQUESTS_MAX} are allowed (withdraw those no longer needed)"
    if crowded:
        more = f" and {len(crowded) - NAMED_MAX} more" if len(crowded) > NAMED_MAX else ""
        listed = ", ".join(islice(crowded, NAMED_MAX))
        yield f"would name too many hosts and racks, at most {NAMES_MAX} are allowed for one request: {listed}{more}"


def check_blacklist(attempt: FiCaSchedulerApp, additions: Sequence[str], removals: Sequence[str]) -> None:
    """Raises InvalidResourceBlacklistRequestException if the application would avoid too many places."""
    places = attempt.blacklist
    if len(places) + len(additions) <= BLACKLIST_MAX:
        return
    count = len(places.union(additions).difference(removals))
    if count > BLACKLIST_MAX:
        raise InvalidResourceBlacklistRequestException(
            f"Cannot add {len(additions)} names to the blacklist of {attempt}: it would have {count}, at most "
            f"{BLACKLIST_MAX} are allowed (remove those that no longer matter)"
        )


def check_remembered(attempt: FiCaSchedulerApp, releases: Sequence[ContainerId]) -> None:
    """Raises InvalidContainerReleaseException if too many releases of unknown containers would be kept."""
    pending = attempt.pending_release
    if len(pending) + len(releases) <= REMEMBERED_RELEASES_MAX:
        return
    live = attempt.live_containers
    count = len(pending) + len({each for each in releases if each not in live and each not in pending})
    if count > REMEMBERED_RELEASES_MAX:
        raise InvalidContainerReleaseException(
            f"Cannot release {len(releases)} containers of {attempt}: {count} releases of unknown containers would "
            f"wait for their nodes, at most {REMEMBERED_RELEASES_MAX} are kept (release them once the nodes are back)"
        )
