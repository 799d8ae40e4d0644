"""Checks an AM's resource requests before any of them is applied, and computes the allowed sizes of containers.

The checks of a single request are Hadoop's (SchedulerUtils.normalizeAndValidateRequest). The limits on how much one
application may keep in the scheduler are ours: Hadoop's ResourceManager runs out of memory instead. Each limit is far
above what applications use. A call that would exceed one is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.context import SchedulerContext
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.node import NodeTracker
from rm.scheduler.model.node_labels import NodeLabels
from rm.scheduler.model.queue import CSQueue
from rm.scheduler.model.requests import AppSchedulingInfo, SchedulerKey
from rm.scheduler.queues.queue_tree import QueueTree
from yarn.containers import ANY, ResourceRequest
from yarn.errors import (
    InvalidContainerReleaseException,
    InvalidLabelResourceRequestException,
    InvalidResourceBlacklistRequestException,
    InvalidResourceRequestException,
    YARNFeatureNotEnabledException,
)
from yarn.ids import ApplicationAttemptId, ContainerId
from yarn.java.hash_order import hash_order, string_hash
from yarn.java.values import trim
from yarn.nodes import NO_LABEL
from yarn.resource import Resource, componentwise_min
from yarn.states import ExecutionType

REQUESTS_MAX = 100_000
"""The maximum of requests of one attempt, also in one message. Ten priorities on a cluster of 5,000 hosts need
50,000."""
NAMES_MAX = 10_000
"""The maximum of hosts and racks of one key: Hadoop's largest clusters have about that many."""
BLACKLIST_MAX = 10_000
"""The maximum of hosts and racks on an application's blacklist."""
REMEMBERED_RELEASES_MAX = 100_000
"""The maximum of releases that are kept until nodes report their containers after a restart of the ResourceManager."""
NAMED_MAX = 3
"""The number of keys with too many names that a refusal lists; of the others it gives only the number."""


class ContainerSizes:
    """The allowed sizes of containers. The largest allowed size depends on the nodes."""

    __slots__ = ("_context", "_tracker", "_tree")

    def __init__(self, context: SchedulerContext, tracker: NodeTracker, tree: QueueTree) -> None:
        self._context = context
        self._tracker = tracker
        self._tree = tree

    def maximum(self, now_ms: int, queue: str | None = None) -> Resource:
        """The largest container allowed at `now_ms`, in a queue (a leaf's name or path) or anywhere."""
        largest = self._tracker.maximum_allocation(now_ms, self._context.settings.settle_ms)
        found = self._tree.get(queue) if queue is not None else None
        if isinstance(found, LeafQueue):
            return componentwise_min(found.configuration.maximum_allocation, largest)
        return largest

    def check_asks(self, queue: str, requests: Iterable[ResourceRequest]) -> tuple[ResourceRequest, ...]:
        """The requests, with the queue's default label if they have none.

        Raises InvalidResourceRequestException (or its subclass for labels) for the first invalid one.
        """
        settings, labels, found = self._context.settings, self._context.labels, self._tree.get(queue)
        allowed = self.maximum(self._context.now_ms, queue)
        checked: list[ResourceRequest] = []
        for given in map(with_trimmed_label, requests):
            check_labels_enabled(given, labels)
            check_execution_type(given, opportunistic=settings.opportunistic_containers)
            request = with_queue_label(given, found)
            check_capability(settings.resource_types.complete(request.capability), allowed, settings.maximum_allocation)
            check_label(request, found, labels)
            checked.append(request)
        return tuple(checked)

    def master_requests(self, queue: str, requests: Iterable[ResourceRequest]) -> tuple[ResourceRequest, ...]:
        """The requests for an AM in the queue, with normalised sizes (RMAppManager). Raises like check_asks."""
        complete, allowed = self._context.settings.resource_types.complete, self.maximum(self._context.now_ms, queue)
        return tuple(
            replace(request, capability=self._normalize(complete(request.capability), allowed))
            for request in self.check_asks(queue, requests)
        )

    def normalized(self, request: ResourceRequest) -> ResourceRequest:
        """The request with its size in multiples of the minimum, at most the largest container of the cluster.

        The request for an AM is checked only when its application is submitted. If no node is large enough any more, it
        keeps its size and waits for one. In Hadoop it shrinks, to nothing while all nodes are being decommissioned, and
        keeps the smaller size in later attempts (CapacityScheduler.allocate changes the application's own request).
        """
        asked = self._context.settings.resource_types.complete(request.capability)
        largest = self.maximum(self._context.now_ms)
        if not asked.fits_in(largest):
            largest = self._tracker.configured_maximum
        size = self._normalize(asked, largest)
        return request if size == request.capability else replace(request, capability=size)

    def updated(self, queue: str, size: Resource) -> Resource | None:
        """The normalised new size of a container of the queue; None if it is out of range."""
        allowed = self.maximum(self._context.now_ms, queue)
        size = self._context.settings.resource_types.complete(size)
        if not (0 <= size.memory_mb <= allowed.memory_mb and 0 <= size.vcores <= allowed.vcores):
            return None
        return self._normalize(size, allowed)

    def _normalize(self, size: Resource, largest: Resource) -> Resource:
        smallest = self._context.minimum_allocation
        return self._context.calculator.normalize(size, smallest, largest, smallest)


def check_capability(capability: Resource, allowed: Resource, configured: Resource) -> None:
    """Raises InvalidResourceRequestException if some type is below 0 or above what the queue allows.

    Every type is checked, also those that the calculator ignores.
    """
    allowed_amounts = allowed.amounts()
    for name, amount in capability.amounts().items():
        if amount < 0:
            raise InvalidResourceRequestException(
                "Invalid resource request! Cannot allocate containers as requested resource is less than 0! "
                f"Requested resource type=[{name}], Requested resource={capability}"
            )
        if amount > allowed_amounts[name]:
            raise InvalidResourceRequestException(
                "Invalid resource request! Cannot allocate containers as requested resource is greater than maximum "
                f"allowed allocation. Requested resource type=[{name}], Requested resource={capability}, maximum "
                f"allowed allocation={allowed}, please note that maximum allowed allocation is calculated by scheduler "
                f"based on maximum resource of registered NodeManagers, which might be less than configured maximum "
                f"allocation={configured}"
            )


def with_trimmed_label(request: ResourceRequest) -> ResourceRequest:
    """The request with whitespace around its label removed (ResourceRequestPBImpl.getNodeLabelExpression)."""
    if request.label is None:
        return request
    label = trim(request.label)
    return request if label == request.label else replace(request, label=label)


def with_queue_label(request: ResourceRequest, queue: CSQueue | None) -> ResourceRequest:
    """The request with a label: the queue's default label if it is for `*` and has none, else an explicit NO_LABEL.

    The request is unchanged if the queue does not exist, since the queue may be created with the application.
    """
    if request.label is not None or queue is None:
        return request
    default = queue.configuration.default_label if request.resource_name == ANY else None
    return replace(request, label=NO_LABEL if default is None else default)


def check_labels_enabled(request: ResourceRequest, labels: NodeLabels) -> None:
    """Raises InvalidLabelResourceRequestException for a label if node labels are disabled."""
    if request.label and not labels.enabled:
        raise InvalidLabelResourceRequestException(
            "Invalid resource request, node label not enabled but request contains label expression"
        )


def check_label(request: ResourceRequest, queue: CSQueue | None, labels: NodeLabels) -> None:
    """Raises InvalidLabelResourceRequestException for more than one label, or one that the queue may not use."""
    label = request.label or NO_LABEL
    if not label:
        return
    name = queue.name if queue is not None else ""
    if request.resource_name != ANY:
        raise InvalidLabelResourceRequestException(
            f"Invalid resource request, queue={name} specified node label expression in a resource request has "
            f"resource name = {request.resource_name}"
        )
    if "&&" in label:
        raise InvalidLabelResourceRequestException(
            f"Invalid resource request, queue={name} specified more than one node label in a node label expression, "
            f"node label expression = {request.label}"
        )
    if queue is not None and not queue.configuration.may_use(label):
        accessible = ",".join(hash_order(queue.configuration.accessible_labels, string_hash))
        raise InvalidLabelResourceRequestException(
            f"Invalid resource request, queue={name} doesn't have permission to access all labels in resource request. "
            f"labelExpression of resource request={request.label}. Queue labels={accessible}"
        )
    if queue is not None and not labels.has(label):
        raise InvalidLabelResourceRequestException(
            f"Invalid label resource request, cluster do not contain , label= {request.label}"
        )


def check_execution_type(request: ResourceRequest, *, opportunistic: bool) -> None:
    """Raises YARNFeatureNotEnabledException for opportunistic containers if they are enabled.

    If they are disabled, the execution type is ignored, as in Hadoop.
    """
    if opportunistic and request.execution_type is ExecutionType.OPPORTUNISTIC:
        raise YARNFeatureNotEnabledException(
            f"request {request.resource_name} of priority {request.priority} is for OPPORTUNISTIC containers: running "
            "containers become opportunistic by an update only (request GUARANTEED containers and demote them)"
        )


def check_requests(
    attempt_id: ApplicationAttemptId, info: AppSchedulingInfo, requests: Sequence[ResourceRequest]
) -> None:
    """Raises InvalidResourceRequestException if the attempt would have too many requests after these."""
    if info.row_count + len(requests) <= min(REQUESTS_MAX, NAMES_MAX):
        return
    total, crowded = info.row_count, list[str]()
    for key, names, is_withdrawn in _by_key(requests):
        of_key = info.at(key)
        known = of_key.rows if of_key is not None else {}
        count = 0 if is_withdrawn else len(known) + sum(name not in known for name in names)
        total += count - len(known)
        if count > NAMES_MAX + 1:
            crowded.append(f"priority {key.priority} (request id {key.allocation_request_id}) {count - 1}")
    faults = list(_faults(total, crowded))
    if faults:
        raise InvalidResourceRequestException(f"Invalid resource request! {attempt_id} {'; and '.join(faults)}")


def _by_key(requests: Iterable[ResourceRequest]) -> Iterator[tuple[SchedulerKey, dict[str, int], bool]]:
    """(key, {name: count}, True if the key's last `*` row has a count of 0)."""
    grouped: dict[SchedulerKey, dict[str, int]] = {}
    for request in requests:
        grouped.setdefault(SchedulerKey.of(request), {})[request.resource_name] = request.count
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
    """Raises InvalidResourceBlacklistRequestException if the blacklist would become too long."""
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
