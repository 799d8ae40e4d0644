"""The containers that an AM still wants, and the resource requests that report them to the RM.

An application requests single containers ("one of 1 GB on n1, else in its rack, else anywhere"). The protocol has rows:
one for each host, each rack and `*`, with the number of containers wanted there. `ResourceRequestTable` keeps these
rows. Adding a request raises the counts of all its rows by one, and removing a request lowers them. Every row that
changed since the last call is sent with its new count.

    request on n1 (rack /r1)  ->  n1: 1   /r1: 1   *: 1

The rules are AMRMClientImpl's, with two exceptions. First, all requests with the same priority and allocation request
id must have the same size, because the RM keeps one size for them and would replace it silently. Second, the rows of a
satisfied request are not sent again if the RM has lowered them itself (`ResourceRequestTable.satisfy`), unless the
table `asks_again`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from yarn.containers import ANY, Container, ResourceRequest
from yarn.errors import InvalidResourceRequestException
from yarn.nodes import DEFAULT_RACK
from yarn.resource import Resource
from yarn.states import ExecutionType

RackOf = Callable[[str], str]
"""A function that returns the rack of a host, for example `/r1`."""


def default_rack_of(host: str) -> str:
    """The rack of every host if no topology is configured (NetworkTopology.DEFAULT_RACK)."""
    return DEFAULT_RACK


class RequestKey(NamedTuple):
    """The key by which the RM keeps the resource requests of an application (SchedulerRequestKey)."""

    priority: int
    allocation_request_id: int


class RowKey(NamedTuple):
    """The key of one row. Rows are sent in the order of their keys."""

    priority: int
    allocation_request_id: int
    resource_name: str


class ContainerRequest(Struct, frozen=True):
    """A request for one container (AMRMClient.ContainerRequest). A lower priority number is served first.

    `nodes` and `racks` are the preferred places. If `relax_locality` is False, the container may run nowhere else.
    Raises InvalidResourceRequestException for a request that contradicts itself.
    """

    capability: Resource
    priority: int
    nodes: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()
    relax_locality: bool = True
    label: str | None = None
    allocation_request_id: int = 0
    execution_type: ExecutionType = ExecutionType.GUARANTEED

    def __post_init__(self) -> None:
        if self.priority < 0:
            raise InvalidResourceRequestException(f"priority {self.priority} is negative; 0 is served first")
        if any(amount < 0 for amount in self.capability.values()):
            raise InvalidResourceRequestException(f"capability {self.capability} has a negative amount")
        if not self.relax_locality and not self.nodes and not self.racks:
            raise InvalidResourceRequestException("relax_locality=False needs nodes or racks")
        if self.label and (self.nodes or self.racks):
            raise InvalidResourceRequestException(
                f"label {self.label!r} cannot be combined with nodes or racks: drop one of the two"
            )

    @property
    def key(self) -> RequestKey:
        return RequestKey(self.priority, self.allocation_request_id)

    def accepts(self, container: Container, *, are_vcores_counted: bool = True) -> bool:
        """True if `container` is large enough and has the priority and the allocation request id of this request.

        `are_vcores_counted`: False if the scheduler ignores vcores; then its containers have fewer than requested.
        """
        same_key = (container.priority, container.allocation_request_id) == self.key
        wanted = (
            self.capability if are_vcores_counted else Resource(self.capability.memory_mb, 0, self.capability.extra)
        )
        return same_key and wanted.fits_in(container.resource)


class WaitingRequests:
    """The outstanding requests of one key, with equal requests grouped, so a container is compared with each group
    once.

    Otherwise an application that wants a thousand equal containers would compare each of them with a thousand requests.
    """

    def __init__(self) -> None:
        self._groups: dict[ContainerRequest, deque[tuple[int, ContainerRequest]]] = {}
        self._added = 0

    def __iter__(self) -> Iterator[ContainerRequest]:
        """The requests, oldest first."""
        numbered = sorted((entry for group in self._groups.values() for entry in group), key=lambda entry: entry[0])
        return (request for _, request in numbered)

    def add(self, request: ContainerRequest) -> None:
        self._added += 1
        self._groups.setdefault(request, deque()).append((self._added, request))

    def remove(self, request: ContainerRequest) -> bool:
        """Remove the oldest request equal to `request`. Returns False if there is none."""
        if request not in self._groups:
            return False
        self._take_oldest(request)
        return True

    def take(self, distance: Callable[[ContainerRequest], int | None]) -> ContainerRequest | None:
        """Remove and return the request with the smallest distance, the oldest if several have it.

        Returns None if the distance is None for all requests.
        """
        best: tuple[int, int] | None = None
        chosen: ContainerRequest | None = None
        for request, group in self._groups.items():
            away = distance(request)
            if away is not None and (best is None or (away, group[0][0]) < best):
                best, chosen = (away, group[0][0]), request
        return None if chosen is None else self._take_oldest(chosen)

    def _take_oldest(self, equal: ContainerRequest) -> ContainerRequest:
        group = self._groups[equal]
        request = group.popleft()[1]
        if not group:
            del self._groups[equal]
        return request


class ResourceRequestTable:
    """The rows of all outstanding requests, and which of them have changed since they were sent.

    A row is in `rows` while its count is above 0, or until its count of 0 has been sent. `asks_again`: each lowered row
    is sent, as AMRMClientImpl.decResourceRequest does.
    """

    def __init__(self, rack_of: RackOf = default_rack_of, *, asks_again: bool = False) -> None:
        self._rack_of = rack_of
        self._asks_again = asks_again
        self._rows: dict[RowKey, ResourceRequest] = {}
        self._unsent: set[RowKey] = set()

    @property
    def rows(self) -> Mapping[RowKey, ResourceRequest]:
        return self._rows

    @property
    def unsent(self) -> Collection[RowKey]:
        """The rows that the next call must contain."""
        return self._unsent

    def add(self, request: ContainerRequest) -> None:
        """Raise the count of each row of `request` (hosts, racks, `*`) by one.

        Raises InvalidResourceRequestException and changes nothing if the request contradicts a row.
        """
        rows = self.rows_of(request)
        for row in rows:
            self._check_against_outstanding(row)
        for row in rows:
            self._change(row, 1)

    def remove(self, request: ContainerRequest) -> None:
        """Lower the count of each row of `request` (hosts, racks, `*`) by one. It must have been added before."""
        for row in self.rows_of(request):
            self._change(row, -1)

    def satisfy(self, request: ContainerRequest, just_sent: Collection[RowKey]) -> None:
        """Lower the count of each row of `request` by one, because an allocate call returned a container for it.

        `just_sent` are the keys of the rows that this call sent.

        The RM lowered its `*` row when it allocated the container. Sending this row again would undo what the RM has
        allocated since, so each time the AM would get one container too many (as with AMRMClientImpl). The `*` row must
        be sent again only if the call that returned the container also sent it, because the RM read its count after the
        allocation. Rows of hosts and racks are always sent, because the RM has lowered only those of the host that it
        chose.
        """
        is_sent = self._asks_again or bool(request.nodes or request.racks)
        for row in self.rows_of(request):
            key = row_key(row)
            self._change(row, -1, send=is_sent or key in just_sent)
            if self._rows[key].count == 0 and key not in self._unsent:
                del self._rows[key]

    def take_unsent(self) -> tuple[ResourceRequest, ...]:
        """The rows to send now, in the order of their keys. Rows with count 0 are then dropped."""
        rows = tuple(self._rows[key] for key in sorted(self._unsent))
        for key in self._unsent:
            if self._rows[key].count == 0:
                del self._rows[key]
        self._unsent.clear()
        return rows

    def resend(self, rows: Iterable[ResourceRequest]) -> None:
        """Send these rows again, because the call that contained them had no effect.

        Rows that have changed since that call keep their new count.
        """
        for row in rows:
            key = row_key(row)
            self._rows.setdefault(key, row)
            self._unsent.add(key)

    def resend_all(self) -> None:
        """Send all rows again, because the RM has lost them."""
        self._unsent.update(self._rows)

    def outstanding(self) -> tuple[ResourceRequest, ...]:
        """All rows with a count above 0, sorted by key."""
        return tuple(self._rows[key] for key in sorted(self._rows) if self._rows[key].count > 0)

    def rows_of(self, request: ContainerRequest) -> list[ResourceRequest]:
        """The rows of one request, each with count 1.

        A rack that only follows from the request's nodes has the same `relax_locality` as `*`.
        """
        inferred = [rack for rack in map(self._rack_of, request.nodes) if rack not in request.racks]
        relaxed_by_name = dict.fromkeys((*request.nodes, *request.racks), True)
        relaxed_by_name |= dict.fromkeys((*inferred, ANY), request.relax_locality)
        return [
            ResourceRequest(
                priority=request.priority,
                resource_name=name,
                capability=request.capability,
                count=1,
                relax_locality=relaxed,
                label=request.label,
                allocation_request_id=request.allocation_request_id,
                execution_type=request.execution_type,
            )
            for name, relaxed in relaxed_by_name.items()
        ]

    def _check_against_outstanding(self, row: ResourceRequest) -> None:
        outstanding = self._rows.get(row_key(row))
        if outstanding is None or outstanding.count == 0:
            return
        where = f"priority {row.priority}, allocation request id {row.allocation_request_id}, {row.resource_name}"
        if outstanding.capability != row.capability:
            raise InvalidResourceRequestException(
                f"cannot request {row.capability} at {where}: {outstanding.count} of {outstanding.capability} are "
                f"outstanding there; another size needs another priority or allocation request id"
            )
        if outstanding.relax_locality != row.relax_locality:
            raise InvalidResourceRequestException(
                f"cannot request with relax_locality={row.relax_locality} at {where}: {outstanding.count} outstanding "
                f"there have relax_locality={outstanding.relax_locality}; use another priority"
            )

    def _change(self, row: ResourceRequest, by: int, *, send: bool = True) -> None:
        key = row_key(row)
        before = self._rows.get(key)
        count = (before.count if before else 0) + by
        assert count >= 0, f"row {key} would fall to {count}"
        self._rows[key] = replace(row, count=count)
        if send:
            self._unsent.add(key)


def row_key(row: ResourceRequest) -> RowKey:
    return RowKey(row.priority, row.allocation_request_id, row.resource_name)
