"""The state of AMRMClient: what the AM wants, what the RM has been sent, and what must be sent next.

    state.add_request(...), state.release(...)         what the application wants
    state.next_request(progress) -> AllocateRequest    the next heartbeat
    state.handle_reply(response) -> [Event]            the events in its reply

A call whose outcome is unknown is sent again *unchanged*. The RM answers an exact repetition with the same answer as
before, so nothing is done twice. Requests that the application makes in the meantime wait for the next call.
(AMRMClientImpl adds them to the repeated call, but the RM would drop them unread.)

After a restart of the RM (ApplicationMasterNotRegistered) everything is sent again: all outstanding resource requests,
the whole blacklist, and the releases and updates that were not confirmed. The rules are AMRMClientImpl's.

The class is plain data with methods instead of a state machine of yarn.machine, because it has no timers and one state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from am.core.events import (
    AllocatedContainer,
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
    ContainerRequest,
    RackOf,
    RequestKey,
    ResourceRequestTable,
    RowKey,
    WaitingRequests,
    default_rack_of,
    row_key,
)
from yarn.containers import Container, ContainerStatus, Token, UpdateContainerRequest
from yarn.errors import InternalError
from yarn.ids import ContainerId, NodeId
from yarn.protocols.master import AllocateRequest, AllocateResponse, NMToken, RegisterApplicationMasterResponse
from yarn.resource import INT32_MAX
from yarn.states import SchedulerResourceTypes


class AMRMClientState:
    """The state of one attempt's AMRMClient. Sets that are iterated are dicts with values None, in order of insertion.

    `_in_flight` is the request whose outcome is unknown. `_releases`, `_updates` and `_blacklist_changes` go into the
    next request. An unconfirmed release or update is kept until the RM reports its effect, and sent again after a
    restart of the RM. `asks_again`: lowered requests are sent each time, as Hadoop's client does, which brings surplus
    containers.
    """

    def __init__(self, rack_of: RackOf = default_rack_of, *, asks_again: bool = False) -> None:
        self._rack_of = rack_of
        self._table = ResourceRequestTable(rack_of, asks_again=asks_again)
        self._requests: dict[RequestKey, WaitingRequests] = {}
        self._response_id = 0
        self._in_flight: AllocateRequest | None = None
        self._releases: dict[ContainerId, None] = {}
        self._unconfirmed_releases: dict[ContainerId, None] = {}
        self._updates: dict[ContainerId, UpdateContainerRequest] = {}
        self._unconfirmed_updates: dict[ContainerId, UpdateContainerRequest] = {}
        self._blacklist: dict[str, None] = {}
        self._blacklist_changes: dict[str, bool] = {}
        # The ids of all containers of this attempt that ever ended: a restarted RM may report an end again, after its
        # NM reported it, and the application must get each end only once.
        self._completed: set[ContainerId] = set()
        # False for a scheduler that gives every container 1 vcore (DefaultResourceCalculator).
        self._are_vcores_counted = True
        self.nm_tokens: dict[NodeId, Token] = {}

    def add_request(self, request: ContainerRequest) -> None:
        """Request one more container.

        Raises InvalidResourceRequestException and changes nothing if the request is not valid.
        """
        self._table.add(request)
        self._requests.setdefault(request.key, WaitingRequests()).add(request)

    def remove_request(self, request: ContainerRequest) -> bool:
        """Withdraw one request equal to `request`. Returns False if none is outstanding; it may have been satisfied."""
        waiting = self._requests.get(request.key)
        if waiting is None or not waiting.remove(request):
            return False
        self._table.remove(request)
        return True

    def requests(self) -> tuple[ContainerRequest, ...]:
        """All outstanding requests, by priority, oldest first."""
        return tuple(request for key in sorted(self._requests) for request in self._requests[key])

    def release(self, container_id: ContainerId) -> None:
        """Release a container.

        After a restart of the RM the release is sent again, until the RM reports the container's end.
        """
        if container_id not in self._completed:
            self._add_release(container_id)

    def mark_lost(self, statuses: tuple[ContainerStatus, ...], *, release: bool) -> list[Event]:
        """Report the ends of containers that the RM has not reported and may never report.

        If the RM does report such an end later, no second event follows. `release`: the containers may still run, so
        the RM is asked to stop them until it reports their ends.
        """
        new = self._newly_completed(statuses)
        if release:
            for status in new:
                self._add_release(status.container_id)
        return [ContainersCompleted(new)] if new else []

    def _add_release(self, container_id: ContainerId) -> None:
        self._releases[container_id] = None
        self._unconfirmed_releases[container_id] = None

    def update(self, request: UpdateContainerRequest) -> None:
        """Request a change of a running container; it replaces an earlier change of the same container."""
        self._updates[request.container_id] = request
        self._unconfirmed_updates[request.container_id] = request

    def change_blacklist(self, additions: Iterable[str] = (), removals: Iterable[str] = ()) -> None:
        """Get no more containers on some hosts or racks, or allow them again. Only differences are sent."""
        for name in additions:
            if name not in self._blacklist:
                self._blacklist[name] = None
                self._blacklist_changes[name] = True
        for name in removals:
            if name in self._blacklist:
                del self._blacklist[name]
                self._blacklist_changes[name] = False

    @property
    def blacklist(self) -> tuple[str, ...]:
        """The hosts and racks on which the AM wants no containers."""
        return tuple(self._blacklist)

    def handle_registered(self, response: RegisterApplicationMasterResponse) -> list[Event]:
        """The events in the RM's answer to a first or repeated registration."""
        self._store_nm_tokens(response.nm_tokens)
        types = response.scheduler_resource_types
        self._are_vcores_counted = not types or SchedulerResourceTypes.CPU in types
        events: list[Event] = [
            Registered(
                response.maximum_capability,
                response.queue,
                tuple(kind.name for kind in response.scheduler_resource_types),
            ),
        ]
        if response.containers_from_previous_attempts:
            events.append(ContainersFromPreviousAttempts(response.containers_from_previous_attempts))
        return events

    def next_request(self, progress: float) -> AllocateRequest:
        """The request to send now.

        Until one of the `handle_` methods has settled the outcome of the request in flight, that request is returned
        unchanged.
        """
        if self._in_flight is None:
            self._in_flight = self._make_request(progress)
        return self._in_flight

    @property
    def has_nothing_to_send(self) -> bool:
        """True if the next request would only say that the AM is alive."""
        unsent = self._table.unsent or self._releases or self._updates or self._blacklist_changes
        return self._in_flight is None and not unsent

    def next_quiet_request(self, progress: float) -> AllocateRequest:
        """The next request, if there is nothing to send, without sending it."""
        return AllocateRequest(response_id=self._response_id, progress=progress)

    def skip_heartbeats(self, count: int) -> None:
        """Advance the response id as `count` empty requests with empty replies would."""
        self._response_id = (self._response_id + count) & INT32_MAX

    def handle_reply(self, response: AllocateResponse) -> list[Event]:
        """The events in a reply, in the order of AMRMClientAsync's callbacks, with HeartbeatDone last."""
        if self._in_flight is None:
            raise InternalError(f"reply {response.response_id} without a request in flight")
        just_sent = frozenset(row_key(row) for row in self._in_flight.asks)
        self._in_flight = None
        self._response_id = response.response_id
        self._store_nm_tokens(response.nm_tokens)
        events: list[Event] = []
        if response.updated_nodes:
            events.append(NodesUpdated(response.updated_nodes))
        if completed := self._newly_completed(response.completed):
            events.append(ContainersCompleted(completed))
        if response.updated_containers or response.update_errors:
            events.append(self._confirm_updates(response))
        if response.preemption is not None:
            events.append(PreemptionAsked(response.preemption))
        if response.containers_from_previous_attempts:
            events.append(ContainersFromPreviousAttempts(response.containers_from_previous_attempts))
        if response.allocated:
            allocations = (AllocatedContainer(c, self._satisfy(c, just_sent)) for c in response.allocated)
            events.append(ContainersAllocated(tuple(allocations)))
        events.append(HeartbeatDone(response.headroom, response.cluster_nodes))
        return events

    def handle_refused(self) -> None:
        """Handle a refusal of the request in flight: its content is sent again, except what was withdrawn since."""
        refused, self._in_flight = self._in_flight, None
        if refused is None:
            raise InternalError("a refusal without a request in flight")
        self._table.resend(refused.asks)
        self._releases = dict.fromkeys((*refused.releases, *self._releases))
        self._updates = {update.container_id: update for update in refused.updates} | self._updates
        sent = dict.fromkeys(refused.blacklist_additions, True) | dict.fromkeys(refused.blacklist_removals, False)
        self._blacklist_changes = sent | self._blacklist_changes

    def handle_not_registered(self) -> None:
        """Handle the restart of an RM that does not know this attempt.

        After the next registration everything outstanding is sent again.
        """
        self._in_flight = None
        self._response_id = 0
        self._table.resend_all()
        self._releases = dict(self._unconfirmed_releases)
        self._updates = dict(self._unconfirmed_updates)
        self._blacklist_changes = dict.fromkeys(self._blacklist, True)

    def _make_request(self, progress: float) -> AllocateRequest:
        request = AllocateRequest(
            response_id=self._response_id,
            progress=progress,
            asks=self._table.take_unsent(),
            releases=tuple(self._releases),
            blacklist_additions=tuple(name for name, added in self._blacklist_changes.items() if added),
            blacklist_removals=tuple(name for name, added in self._blacklist_changes.items() if not added),
            updates=tuple(self._updates.values()),
        )
        self._releases = {}
        self._updates = {}
        self._blacklist_changes = {}
        return request

    def _store_nm_tokens(self, tokens: Iterable[NMToken]) -> None:
        for token in tokens:
            if token.token is not None:
                self.nm_tokens[token.node_id] = token.token

    def _newly_completed(self, statuses: tuple[ContainerStatus, ...]) -> tuple[ContainerStatus, ...]:
        """The ends that have not been reported before.

        An end confirms the container's release, and ends its updates.
        """
        new: list[ContainerStatus] = []
        for status in statuses:
            for changes in (self._releases, self._unconfirmed_releases, self._updates, self._unconfirmed_updates):
                changes.pop(status.container_id, None)
            if status.container_id not in self._completed:
                self._completed.add(status.container_id)
                new.append(status)
        return tuple(new)

    def _confirm_updates(self, response: AllocateResponse) -> ContainersUpdated:
        for updated in response.updated_containers:
            self._unconfirmed_updates.pop(updated.container.id, None)
        for error in response.update_errors:
            self._unconfirmed_updates.pop(error.request.container_id, None)
        return ContainersUpdated(response.updated_containers, response.update_errors)

    def _satisfy(self, container: Container, just_sent: Collection[RowKey]) -> ContainerRequest | None:
        """Remove the request that `container` fits best: by host, then by rack, then anywhere; the oldest if several
        do.
        """
        waiting = self._requests.get(RequestKey(container.priority, container.allocation_request_id))
        best = None if waiting is None else waiting.take(lambda request: self._distance(request, container))
        if best is not None:
            self._table.satisfy(best, just_sent)
        return best

    def _distance(self, request: ContainerRequest, container: Container) -> int | None:
        """0 on a requested host, 1 in a requested rack, 2 anywhere; None if the container does not fit the request."""
        if not request.accepts(container, are_vcores_counted=self._are_vcores_counted):
            return None
        host = container.node_id.host
        if host in request.nodes:
            return 0
        rack = self._rack_of(host)
        if rack in request.racks or (request.relax_locality and rack in map(self._rack_of, request.nodes)):
            return 1
        return 2 if request.relax_locality else None
