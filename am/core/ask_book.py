"""The ask book: all that an AM has told the RM and still has to tell, with no clock and no network.

    book.add_request(...), book.release(...)          what the program wants
    book.next_request(progress) -> AllocateRequest    what the next heartbeat says
    book.handle_reply(response) -> [Event]            what it brought

The idea: a call whose outcome is unknown is sent again *unchanged*. The RM answers an exact repeat with the answer it
gave before, so nothing is done twice, and what the program wanted meanwhile waits for the next call. (AMRMClientImpl
merges the news into the repeat, where the RM drops them unread; that is why it is refused here.)

After a restart of the RM (ApplicationMasterNotRegistered) the book tells everything again: all outstanding asks, the
whole blacklist, the releases and updates that were not confirmed. The rules are AMRMClientImpl's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from am.core.events import (
    Allocation,
    ContainersAllocated,
    ContainersCompleted,
    ContainersFromPreviousAttempts,
    ContainersUpdated,
    Event,
    HeartbeatDone,
    NodesUpdated,
    PreemptionAsked,
    Registered,
)
from am.core.requests import (
    AskKey,
    AskTable,
    ContainerRequest,
    RackOf,
    RowKey,
    WaitingRequests,
    default_rack_of,
    row_key,
)
from yarn.asks import ResourceRequest, UpdateContainerRequest
from yarn.containers import Container, ContainerStatus, Token
from yarn.errors import InternalError
from yarn.ids import ContainerId, NodeId
from yarn.protocols.master import AllocateRequest, AllocateResponse, NMToken, RegisterApplicationMasterResponse


class AskBook:
    """One attempt's dealings with the RM. Sets are kept as dicts of None so that order is the order of coming."""

    def __init__(self, rack_of: RackOf = default_rack_of) -> None:
        self._rack_of = rack_of
        self._table = AskTable(rack_of)
        self._requests: dict[AskKey, WaitingRequests] = {}
        self._response_id = 0
        self._in_flight: AllocateRequest | None = None
        self._releases: dict[ContainerId, None] = {}
        self._unconfirmed_releases: dict[ContainerId, None] = {}
        self._updates: dict[ContainerId, UpdateContainerRequest] = {}
        self._unconfirmed_updates: dict[ContainerId, UpdateContainerRequest] = {}
        self._blacklist: dict[str, None] = {}
        self._blacklist_untold: dict[str, bool] = {}
        # One id for each container that ever ended, for the attempt's life: the price of telling an end once
        # even if an RM that has restarted hears of it from its NM again.
        self._ended: set[ContainerId] = set()
        self.nm_tokens: dict[NodeId, Token] = {}

    # What the program wants

    def add_request(self, request: ContainerRequest) -> None:
        """Ask for one more container. Raises InvalidResourceRequestException, with nothing changed."""
        self._table.add(request)
        self._requests.setdefault(request.key, WaitingRequests()).add(request)

    def remove_request(self, request: ContainerRequest) -> bool:
        """Withdraw one request equal to `request`; False if none is outstanding (it may have been met)."""
        waiting = self._requests.get(request.key)
        if waiting is None or not waiting.remove(request):
            return False
        self._table.remove(request)
        return True

    def requests(self) -> tuple[ContainerRequest, ...]:
        """All outstanding requests, by priority, oldest first."""
        return tuple(request for key in sorted(self._requests) for request in self._requests[key].oldest_first())

    def asks(self) -> tuple[ResourceRequest, ...]:
        """The outstanding requests as rows of the RM."""
        return self._table.outstanding()

    def release(self, container_id: ContainerId) -> None:
        """Give a container back; it is told again after a restart of the RM until its end is heard."""
        if container_id not in self._ended:
            self._order_release(container_id)

    def take_as_ended(self, statuses: tuple[ContainerStatus, ...], *, give_back: bool) -> list[Event]:
        """Ends that the RM has not told and may never tell; should it do so, they are not told again.

        `give_back`: nobody knows that they have ended. The RM is told to end them, until it tells that they have.
        """
        fresh = self._newly_ended(statuses)
        if give_back:
            for status in fresh:
                self._order_release(status.container_id)
        return [ContainersCompleted(fresh)] if fresh else []

    def _order_release(self, container_id: ContainerId) -> None:
        self._releases[container_id] = None
        self._unconfirmed_releases[container_id] = None

    def update(self, request: UpdateContainerRequest) -> None:
        """Ask for a change of a running container; a newer wish for the same container replaces it."""
        self._updates[request.container_id] = request
        self._unconfirmed_updates[request.container_id] = request

    def change_blacklist(self, additions: Iterable[str] = (), removals: Iterable[str] = ()) -> None:
        """Keep away from hosts or racks, or come back to them; what is already so is not told again."""
        for name in additions:
            if name not in self._blacklist:
                self._blacklist[name] = None
                self._blacklist_untold[name] = True
        for name in removals:
            if name in self._blacklist:
                del self._blacklist[name]
                self._blacklist_untold[name] = False

    # The exchange with the RM

    def handle_registered(self, response: RegisterApplicationMasterResponse) -> list[Event]:
        """Take the RM's answer to a first or repeated register."""
        self._take_nm_tokens(response.nm_tokens)
        events: list[Event] = [
            Registered(response.maximum_capability, response.queue, response.resource_types),
        ]
        if response.containers_from_previous_attempts:
            events.append(ContainersFromPreviousAttempts(response.containers_from_previous_attempts))
        return events

    def next_request(self, progress: float) -> AllocateRequest:
        """What to send now: the request in flight, unchanged, until its outcome has been told to the book."""
        if self._in_flight is None:
            self._in_flight = self._make_request(progress)
        return self._in_flight

    def handle_reply(self, response: AllocateResponse) -> list[Event]:
        """What a reply brought, in AMRMClientAsync's order of callbacks, with HeartbeatDone last."""
        if self._in_flight is None:
            raise InternalError(f"reply {response.response_id} without a request in flight")
        just_told = frozenset(row_key(ask) for ask in self._in_flight.asks)
        self._in_flight = None
        self._response_id = response.response_id
        self._take_nm_tokens(response.nm_tokens)
        events: list[Event] = []
        if response.updated_nodes:
            events.append(NodesUpdated(response.updated_nodes))
        if completed := self._newly_ended(response.completed):
            events.append(ContainersCompleted(completed))
        if response.updated_containers or response.update_errors:
            events.append(self._settle_updates(response))
        if response.preemption is not None:
            events.append(PreemptionAsked(response.preemption))
        if response.containers_from_previous_attempts:
            events.append(ContainersFromPreviousAttempts(response.containers_from_previous_attempts))
        if response.allocated:
            events.append(
                ContainersAllocated(tuple(Allocation(c, self._meet(c, just_told)) for c in response.allocated))
            )
        events.append(HeartbeatDone(response.headroom, response.cluster_nodes))
        return events

    def handle_refused(self) -> None:
        """The request in flight had no effect: what it carried will be told again, unless it was withdrawn."""
        refused, self._in_flight = self._in_flight, None
        if refused is None:
            raise InternalError("a refusal without a request in flight")
        self._table.put_back(refused.asks)
        self._releases = dict.fromkeys((*refused.releases, *self._releases))
        self._updates = {update.container_id: update for update in refused.updates} | self._updates
        told = dict.fromkeys(refused.blacklist_additions, True) | dict.fromkeys(refused.blacklist_removals, False)
        self._blacklist_untold = told | self._blacklist_untold

    def handle_not_registered(self) -> None:
        """The RM restarted and has forgotten us: after the next register everything outstanding is told again."""
        self._in_flight = None
        self._response_id = 0
        self._table.put_back_all()
        self._releases = dict(self._unconfirmed_releases)
        self._updates = dict(self._unconfirmed_updates)
        self._blacklist_untold = dict.fromkeys(self._blacklist, True)

    def _make_request(self, progress: float) -> AllocateRequest:
        request = AllocateRequest(
            response_id=self._response_id,
            progress=progress,
            asks=self._table.take_untold(),
            releases=tuple(self._releases),
            blacklist_additions=tuple(name for name, added in self._blacklist_untold.items() if added),
            blacklist_removals=tuple(name for name, added in self._blacklist_untold.items() if not added),
            updates=tuple(self._updates.values()),
        )
        self._releases = {}
        self._updates = {}
        self._blacklist_untold = {}
        return request

    def _take_nm_tokens(self, tokens: Iterable[NMToken]) -> None:
        for token in tokens:
            if token.token is not None:
                self.nm_tokens[token.node_id] = token.token

    def _newly_ended(self, statuses: tuple[ContainerStatus, ...]) -> tuple[ContainerStatus, ...]:
        """The ends not told before; an end confirms a release of its container, and settles its updates."""
        fresh: list[ContainerStatus] = []
        for status in statuses:
            for wishes in (self._releases, self._unconfirmed_releases, self._updates, self._unconfirmed_updates):
                wishes.pop(status.container_id, None)
            if status.container_id not in self._ended:
                self._ended.add(status.container_id)
                fresh.append(status)
        return tuple(fresh)

    def _settle_updates(self, response: AllocateResponse) -> ContainersUpdated:
        for updated in response.updated_containers:
            self._unconfirmed_updates.pop(updated.container.id, None)
        for error in response.update_errors:
            self._unconfirmed_updates.pop(error.request.container_id, None)
        return ContainersUpdated(response.updated_containers, response.update_errors)

    def _meet(self, container: Container, just_told: Collection[RowKey]) -> ContainerRequest | None:
        """Take out the request that `container` serves best: by host, then by rack, then anywhere; oldest first."""
        waiting = self._requests.get(AskKey(container.priority, container.allocation_request_id))
        best = None if waiting is None else waiting.take(lambda request: self._distance(request, container))
        if best is not None:
            self._table.meet(best, just_told)
        return best

    def _distance(self, request: ContainerRequest, container: Container) -> int | None:
        """0 on a wanted host, 1 in a wanted rack, 2 anywhere; None if it is too small, or locality forbids it."""
        if not request.accepts(container):
            return None
        host = container.node_id.host
        if host in request.nodes:
            return 0
        rack = self._rack_of(host)
        if rack in request.racks or (request.relax_locality and rack in map(self._rack_of, request.nodes)):
            return 1
        return 2 if request.relax_locality else None
