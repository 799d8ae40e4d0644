"""What an AM still wants: whole containers, and the rows of asks that say so to the RM.

A program thinks in containers ("one of 1 GB on n1, else its rack, else anywhere"). The RM is told in rows: one for
each host, rack and `*`, each with an absolute count. `AskTable` keeps the rows; adding a request raises the counts of
all its rows by one, removing it lowers them, and every row touched since the last call is sent with its new count.

    request on n1 (rack /r1)  ->  n1: 1   /r1: 1   *: 1

The rules are AMRMClientImpl's but for two. All requests of one priority and allocation request id must have one size,
because the RM keeps one size for them and would replace it silently. And a request that was met is not told again where
the RM knows it already (`AskTable.meet`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from yarn.asks import ANY, ResourceRequest
from yarn.containers import Container
from yarn.errors import InvalidResourceRequestException
from yarn.nodes import DEFAULT_RACK
from yarn.resource import Resource
from yarn.states import ExecutionType

RackOf = Callable[[str], str]
"""From a host to its rack, such as `/r1`."""


def default_rack_of(host: str) -> str:
    """The rack of every host where no topology is configured (NetworkTopology.DEFAULT_RACK)."""
    return DEFAULT_RACK


class AskKey(NamedTuple):
    """What the RM tells asks of one application apart by (SchedulerRequestKey)."""

    priority: int
    allocation_request_id: int


class RowKey(NamedTuple):
    """The key of one row; rows are sent in this order."""

    priority: int
    allocation_request_id: int
    resource_name: str


class ContainerRequest(Struct, frozen=True):
    """One container that is wanted (AMRMClient.ContainerRequest). A lower priority number is served first.

    `nodes` and `racks` are where it is wanted most; with `relax_locality` False it may run nowhere else.
    Raises InvalidResourceRequestException for a request that cannot be met or means nothing.
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
            raise InvalidResourceRequestException("relax_locality=False needs nodes or racks to be strict about")
        if self.label and (self.nodes or self.racks):
            raise InvalidResourceRequestException(
                f"label {self.label!r} cannot go with nodes or racks: drop one of the two"
            )

    @property
    def key(self) -> AskKey:
        return AskKey(self.priority, self.allocation_request_id)

    def accepts(self, container: Container) -> bool:
        """True if `container` is large enough and answers this priority and request id."""
        same_key = (container.priority, container.allocation_request_id) == self.key
        return same_key and self.capability.fits_in(container.resource)


class WaitingRequests:
    """The outstanding requests of one key. Equal ones lie together, so that a container is held against each kind once.

    A program that wants a thousand equal containers would else compare each that comes with a thousand requests.
    """

    def __init__(self) -> None:
        self._kinds: dict[ContainerRequest, deque[tuple[int, ContainerRequest]]] = {}
        self._numbers = 0

    def add(self, request: ContainerRequest) -> None:
        self._numbers += 1
        self._kinds.setdefault(request, deque()).append((self._numbers, request))

    def remove(self, request: ContainerRequest) -> bool:
        """Take out the oldest one equal to `request`; False if there is none."""
        if request not in self._kinds:
            return False
        self._take_oldest(request)
        return True

    def take(self, distance: Callable[[ContainerRequest], int | None]) -> ContainerRequest | None:
        """Take out the nearest, the oldest of those; None if there is none whose distance is not None."""
        best: tuple[int, int] | None = None
        chosen: ContainerRequest | None = None
        for kind, same in self._kinds.items():
            away = distance(kind)
            if away is not None and (best is None or (away, same[0][0]) < best):
                best, chosen = (away, same[0][0]), kind
        return None if chosen is None else self._take_oldest(chosen)

    def oldest_first(self) -> list[ContainerRequest]:
        numbered = sorted((entry for same in self._kinds.values() for entry in same), key=lambda entry: entry[0])
        return [request for _, request in numbered]

    def _take_oldest(self, kind: ContainerRequest) -> ContainerRequest:
        same = self._kinds[kind]
        request = same.popleft()[1]
        if not same:
            del self._kinds[kind]
        return request


class AskTable:
    """The rows of all outstanding requests, and which of them the RM has not been told yet.

    A row is in `_rows` while its count is above 0 or its 0 is still to be told.
    """

    def __init__(self, rack_of: RackOf = default_rack_of) -> None:
        self._rack_of = rack_of
        self._rows: dict[RowKey, ResourceRequest] = {}
        self._untold: set[RowKey] = set()

    def add(self, request: ContainerRequest) -> None:
        """Raise the counts of all rows of `request`. Raises, with nothing changed, if it contradicts a row."""
        rows = self._rows_of(request)
        for row in rows:
            self._check_against_outstanding(row)
        for row in rows:
            self._change(row, 1)

    def remove(self, request: ContainerRequest) -> None:
        """Lower the counts of all rows of `request`, which must have been added before."""
        for row in self._rows_of(request):
            self._change(row, -1)

    def meet(self, request: ContainerRequest, just_told: Collection[RowKey]) -> None:
        """Lower the counts of all rows of `request`: the call that told `just_told` brought a container for it.

        The RM lowered its `*` row when it placed the container; telling the row again would undo what it has placed
        since, a container too many each time (AMRMClientImpl does so). Only a row of the very call that brought the
        container has to be told: the RM took its count after it had placed. Rows of hosts and racks are told in any
        case: the RM has lowered only those of the host it chose.
        """
        is_located = bool(request.nodes or request.racks)
        for row in self._rows_of(request):
            key = row_key(row)
            self._change(row, -1, tell=is_located or key in just_told)
            if self._rows[key].count == 0 and key not in self._untold:
                del self._rows[key]

    def take_untold(self) -> tuple[ResourceRequest, ...]:
        """The rows to send now, in the order of their keys. Rows of 0 are forgotten with this."""
        asks = tuple(self._rows[key] for key in sorted(self._untold))
        for key in self._untold:
            if self._rows[key].count == 0:
                del self._rows[key]
        self._untold.clear()
        return asks

    def put_back(self, asks: Iterable[ResourceRequest]) -> None:
        """Tell these again: the call that carried them had no effect. Rows changed since then keep their new value."""
        for ask in asks:
            key = row_key(ask)
            self._rows.setdefault(key, ask)
            self._untold.add(key)

    def put_back_all(self) -> None:
        """Tell everything again: the RM has forgotten all asks."""
        self._untold.update(self._rows)

    def outstanding(self) -> tuple[ResourceRequest, ...]:
        """All rows above 0, in the order of their keys."""
        return tuple(self._rows[key] for key in sorted(self._rows) if self._rows[key].count > 0)

    def _rows_of(self, request: ContainerRequest) -> list[ResourceRequest]:
        """The rows of one request with count 1. Racks that only follow from the nodes are as strict as `*`."""
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
        told = self._rows.get(row_key(row))
        if told is None or told.count == 0:
            return
        where = f"priority {row.priority}, allocation request id {row.allocation_request_id}, {row.resource_name}"
        if told.capability != row.capability:
            raise InvalidResourceRequestException(
                f"cannot ask for {row.capability} at {where}: {told.count} of {told.capability} are outstanding there; "
                f"another size needs another priority or allocation request id"
            )
        if told.relax_locality != row.relax_locality:
            raise InvalidResourceRequestException(
                f"cannot ask with relax_locality={row.relax_locality} at {where}: {told.count} outstanding there have "
                f"relax_locality={told.relax_locality}; use another priority"
            )

    def _change(self, row: ResourceRequest, by: int, *, tell: bool = True) -> None:
        key = row_key(row)
        told = self._rows.get(key)
        count = (told.count if told else 0) + by
        assert count >= 0, f"row {key} would fall to {count}"
        self._rows[key] = replace(row, count=count)
        if tell:
            self._untold.add(key)


def row_key(row: ResourceRequest) -> RowKey:
    return RowKey(row.priority, row.allocation_request_id, row.resource_name)
