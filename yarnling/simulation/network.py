"""The network of a simulation: calls over links, with the names and the faults of yarnling.cluster.network.

A call is what it is over gRPC. It needs a connection of its caller to the server's process; without one it surely had
no effect. Once it is sent, TCP holds it back and delivers it late, but never loses it. Its outcome is unknown if the
connection breaks, or if no reply comes in time; then it is up to the caller whether to call again. Messages of one
connection stay in order in each direction; those of different connections overtake one another.

`Conditions.duplicates` is what no TCP connection does: a second delivery of a request, whose reply goes nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct

from wire.caller import caller_metadata
from wire.channel import CONNECT_TIMEOUT_MS
from wire.retry import NO_RETRY, RetryPolicy
from wire.rpc import Rpc
from yarn.containers import Token
from yarn.errors import CallOutcomeUnknown, ServerUnavailable, YarnException
from yarnling.cluster.network import RETRANSMIT_S, NetworkFault
from yarnling.simulation.call_observer import CallObserver
from yarnling.simulation.conditions import Conditions
from yarnling.simulation.engine import Action, Engine, Rank
from yarnling.simulation.process import Process
from yarnling.simulation.server import Envelope, Server

RETRANSMIT_MS = round(RETRANSMIT_S * 1000)
TRACKER_LINK = "tracker-"
"""The beginning of the names of the links over which NodeManagers call the ResourceManager."""
DUPLICATE_AFTER_MS_MAX = 50
"""The time by which a duplicate may arrive later."""

Request = TypeVar("Request")
Reply = TypeVar("Reply")

Served = tuple[Process, Server]
Endpoint = Callable[[], Served | None]
"""Returns the process and server that have an address now; None if none has."""
Done = Callable[[Reply | YarnException], None]


class UnderWay(Struct, frozen=True):
    """A call that was made before now. Its request, or its `reply`, was sent at `sent_ms`.

    `is_unsent`: the caller is still connecting; it sends the request at `sent_ms`, if it then reaches the server.
    `made_ms`: when the call was made, from which the time of its repetitions counts; None: from now on.
    """

    sent_ms: int
    reply: Envelope | None = None
    is_unsent: bool = False
    made_ms: int | None = None


class LinkDirection:
    """A direction of a link with all its faults combined. While it is not open, messages are held back."""

    def __init__(self) -> None:
        self.is_open = True
        self.delay_ms = 0
        self.loss = 0.0
        self.rate = 0.0
        self.breaks = 0.0
        self.held: list[Action] = []


class Link:
    """The connections over one link, and its faults. `before_fault` is called before the link gets a fault."""

    def __init__(self, name: str, before_fault: Callable[[Link], None]) -> None:
        self.name = name
        self._before_fault = before_fault
        self.carries_heartbeats = name.startswith(TRACKER_LINK)
        self.requests, self.replies = LinkDirection(), LinkDirection()
        self.refuses = False
        self.connections: dict[CallConnection, None] = {}
        self._faults: dict[int, NetworkFault] = {}

    def inject(self, key: int, fault: NetworkFault) -> None:
        """Add a fault to those already on the link, until `remove(key)`."""
        self._before_fault(self)
        self._faults[key] = fault
        self._apply()
        if fault.reset:
            self.reset_connections()

    @property
    def is_clear(self) -> bool:
        """True without any fault."""
        return not self._faults

    def remove(self, key: int) -> None:
        """Remove a fault. Messages that it held back are delivered, or discarded with their connection."""
        fault = self._faults.pop(key, None)
        if fault is None:
            return
        if fault.forgets:
            self.reset_connections()
        self._apply()

    def recover(self) -> None:
        for key in tuple(self._faults):
            self.remove(key)

    def reset_connections(self) -> None:
        for connection in tuple(self.connections):
            connection.reset()

    def _apply(self) -> None:
        faults = self._faults.values()
        self.refuses = any(fault.reset for fault in faults)
        for direction, is_closed in (
            (self.requests, any(fault.requests for fault in faults)),
            (self.replies, any(fault.replies for fault in faults)),
        ):
            direction.delay_ms = round(1000 * sum(fault.delay_s for fault in faults))
            direction.loss = max((fault.loss for fault in faults), default=0.0)
            direction.breaks = max((fault.breaks for fault in faults), default=0.0)
            direction.rate = min((fault.rate for fault in faults if fault.rate), default=0.0)
            direction.is_open = not is_closed
            if direction.is_open:
                held, direction.held = direction.held, []
                for action in held:
                    action()


class CallConnection:
    """A caller's connection to one server process. `calls`: those that are sent and not answered, oldest first."""

    def __init__(self, network: Network, link: Link, source: Process, served: Served) -> None:
        self.network = network
        self.link = link
        self.source, self.source_starts = source, source.starts
        self.process, self.server = served
        self.process_starts = self.process.starts
        self.calls: dict[Attempt, None] = {}
        self.is_open = True
        self.rank = Rank.HEARTBEAT if link.carries_heartbeats else Rank.MESSAGE
        self._free_at_ms = {True: 0, False: 0}
        self._watch_ms: int | None = None
        link.connections[self] = None
        source.on_exit(self.close)
        self.process.on_exit(self._server_exited)

    def send(self, action: Action, size: int, *, is_request: bool, sent_ms: int | None = None) -> None:
        """Do `action` when a message of that size has arrived, after those before it in this direction.

        `sent_ms`: when it was sent, if that was before now.
        """
        network, direction = self.network, self.link.requests if is_request else self.link.replies
        engine, draw = network.engine, network.draw
        delay_ms = network.conditions.delay_ms + direction.delay_ms
        if network.conditions.jitter_ms:
            delay_ms += int(draw() * (network.conditions.jitter_ms + 1))
        if direction.loss and draw() < direction.loss:
            delay_ms += RETRANSMIT_MS
        at_ms = max((engine.now_ms if sent_ms is None else sent_ms) + delay_ms, self._free_at_ms[is_request])
        self._free_at_ms[is_request] = at_ms + (round(1000 * size / direction.rate) if direction.rate else 0)
        breaks = max(network.conditions.breaks, direction.breaks)
        if breaks and draw() < breaks:
            action = self.reset
        # A reply to a heartbeat is ordered by its node too: so it has its place whenever it is sent.
        sender = self.source if is_request or self.rank is Rank.HEARTBEAT else self.process
        engine.at(at_ms, self.rank, sender.number, partial(self._arrive, direction, action), lane=sender.lane)

    def _arrive(self, direction: LinkDirection, action: Action) -> None:
        if not self.is_open:
            return
        if direction.is_open:
            action()
        else:
            direction.held.append(partial(self._arrive, direction, action))

    def watch(self, attempt: Attempt) -> None:
        """Make the call fail if it is not answered in time."""
        self.calls[attempt] = None
        if self._watch_ms is None or attempt.deadline_ms < self._watch_ms:
            self._watch_ms = attempt.deadline_ms
            self._plan_watch(attempt.deadline_ms)

    def _plan_watch(self, at_ms: int) -> None:
        delay_ms = max(0, at_ms - self.network.engine.now_ms)
        self.source.after(delay_ms, Rank.MESSAGE, partial(self._time_out, at_ms))

    def _time_out(self, at_ms: int) -> None:
        if at_ms != self._watch_ms or not self.is_open:
            return
        self._watch_ms = None
        for attempt in [attempt for attempt in self.calls if attempt.deadline_ms <= at_ms]:
            del self.calls[attempt]
            attempt.fail(CallOutcomeUnknown(f"{attempt.where}: no reply in time"))
        if self.calls and self.is_open:
            self._watch_ms = min(attempt.deadline_ms for attempt in self.calls)
            self._plan_watch(self._watch_ms)

    def close(self) -> None:
        """Drop the connection: its caller has exited."""
        self.is_open = False
        self.source.not_on_exit(self.close)
        self.process.not_on_exit(self._server_exited)
        self.calls.clear()
        self.link.connections.pop(self, None)
        self.network.forget(self)

    def reset(self) -> None:
        """Break the connection: the outcome of every call on it is unknown."""
        if not self.is_open:
            return
        calls = list(self.calls)
        self.close()
        for attempt in calls:
            error = CallOutcomeUnknown(f"{attempt.where}: the connection was lost after the call was sent")
            self.source.deliver(self.source_starts, partial(attempt.fail, error))

    def _server_exited(self) -> None:
        """Reset the connection, as the server's kernel does; over an unplugged cable the caller is not notified yet."""
        if self.is_open:
            self.send(self.reset, 0, is_request=False)


class Attempt:
    """An attempt at a call."""

    __slots__ = (
        "_answered",
        "_link",
        "_message",
        "_network",
        "_source",
        "_starts",
        "deadline_ms",
        "is_over",
        "number",
        "where",
    )

    def __init__(
        self,
        network: Network,
        source: Process,
        link: Link,
        message: Envelope,
        where: str,
        answered: Callable[[Envelope | YarnException], None],
        *,
        number: int,
        timeout_ms: int,
    ) -> None:
        self.where = where
        self.number = number
        self.is_over = False
        self.deadline_ms = network.engine.now_ms + timeout_ms
        self._network = network
        self._source, self._starts = source, source.starts
        self._link = link
        self._message = message
        self._answered = answered

    def start(self, endpoint: Endpoint, connects_ms: int | None = None) -> None:
        """Send the call over the open connection, or connect first, which has begun already if `connects_ms` is given:
        the connection is there at that time.
        """
        connection = self._network.connection(self._source, self._link)
        if connection is not None:
            self._send(connection)
            return
        now_ms = self._network.engine.now_ms
        wait_ms = max(0, min(CONNECT_TIMEOUT_MS, self.deadline_ms - now_ms))
        delay_ms = self._network.conditions.delay_ms if connects_ms is None else connects_ms - now_ms
        self._source.after(wait_ms, Rank.MESSAGE, self._not_connected)
        self._source.after(delay_ms, Rank.MESSAGE, partial(self._connect, endpoint))

    def resume(self, connection: CallConnection, under_way: UnderWay) -> None:
        """Continue a call that was already sent over this connection."""
        if under_way.reply is None:
            self._send(connection, under_way.sent_ms)
        else:
            self._message.is_unsent = False
            connection.watch(self)
            answer = partial(self.answer, connection, under_way.reply)
            connection.send(answer, under_way.reply.size, is_request=False, sent_ms=under_way.sent_ms)

    def fail(self, error: YarnException) -> None:
        if not self.is_over:
            self.is_over = True
            self._answered(error)

    def answer(self, connection: CallConnection, reply: Envelope) -> None:
        connection.calls.pop(self, None)
        if not self.is_over:
            self.is_over = True
            self._source.deliver(connection.source_starts, partial(self._answered, reply))

    def _not_connected(self) -> None:
        if not self.is_over and self._message.is_unsent:
            self.fail(ServerUnavailable(f"{self.where}: cannot be reached in time"))

    def _connect(self, endpoint: Endpoint) -> None:
        """Establish a connection. Over an unplugged cable, and to a paused process, that takes until it is over."""
        if self.is_over or not self._message.is_unsent or not self._source.is_up or self._source.starts != self._starts:
            return
        link, served = self._link, endpoint()
        if not link.requests.is_open or not link.replies.is_open:
            direction = link.replies if link.requests.is_open else link.requests
            starts = self._source.starts
            direction.held.append(lambda: self._source.deliver(starts, partial(self._connect, endpoint)))
        elif link.refuses or served is None:
            self.fail(ServerUnavailable(f"{self.where}: cannot be reached: connection refused or no route"))
        elif served[0].is_paused:
            served[0].deliver(served[0].starts, partial(self._connect, endpoint))
        else:
            known = self._network.connection(self._source, link)
            self._send(known or self._network.connect(self._source, link, served))

    def _send(self, connection: CallConnection, sent_ms: int | None = None) -> None:
        self._message.is_unsent = False
        connection.watch(self)
        self._network.observer.sent(self.number, connection.process.name)
        arrived = partial(self._arrived, connection, is_duplicate=False)
        connection.send(arrived, self._message.size, is_request=True, sent_ms=sent_ms)

    def _arrived(self, connection: CallConnection, *, is_duplicate: bool) -> None:
        network, process = self._network, connection.process
        process.deliver(connection.process_starts, partial(self._serve, connection, is_duplicate=is_duplicate))
        duplicates = network.conditions.duplicates
        if not is_duplicate and duplicates and network.draw() < duplicates:
            later_ms = network.engine.now_ms + 1 + int(network.draw() * DUPLICATE_AFTER_MS_MAX)
            again = partial(self._arrived, connection, is_duplicate=True)
            network.engine.at(later_ms, Rank.MESSAGE, self._source.number, again)

    def _serve(self, connection: CallConnection, *, is_duplicate: bool) -> None:
        self._network.observer.arrived(self.number)
        connection.server.answer(self._message, partial(self._reply, connection, is_duplicate=is_duplicate))

    def _reply(self, connection: CallConnection, reply: Envelope, *, is_duplicate: bool) -> None:
        if connection.is_open and not is_duplicate:
            self._network.observer.replied(self.number)
            connection.send(partial(self.answer, connection, reply), reply.size, is_request=False)


def _made_ms(under_way: UnderWay | None, now_ms: int) -> int:
    return now_ms if under_way is None or under_way.made_ms is None else under_way.made_ms


class Network:
    """All links of one cluster. `encode`: messages become bytes on their way, as between real processes."""

    def __init__(self, engine: Engine, conditions: Conditions, *, encode: bool) -> None:
        self.engine = engine
        self.conditions = conditions
        self.encode = encode
        self.observer = CallObserver()
        self.draw = engine.stream("network").random
        self.retry_draw = engine.stream("retries").random
        self.before_fault: Callable[[Link], None] = lambda _: None
        self._links: dict[str, Link] = {}
        self._connections: dict[tuple[Process, str], CallConnection] = {}

    def link(self, name: str) -> Link:
        """The link of that name: `tracker-k`, `scheduler-k`, `node-k` or `clients`."""
        link = self._links.get(name)
        if link is None:
            link = self._links[name] = Link(name, self._before_fault)
        return link

    def _before_fault(self, link: Link) -> None:
        self.before_fault(link)

    def recover(self) -> None:
        """Remove all faults from all links."""
        for link in self._links.values():
            link.recover()

    def connection(self, source: Process, link: Link) -> CallConnection | None:
        """The open connection of a process over a link; the process may not know yet that it is broken."""
        return self._connections.get((source, link.name))

    def connect(self, source: Process, link: Link, served: Served) -> CallConnection:
        connection = self._connections[source, link.name] = CallConnection(self, link, source, served)
        return connection

    def forget(self, connection: CallConnection) -> None:
        key = (connection.source, connection.link.name)
        if self._connections.get(key) is connection:
            del self._connections[key]

    def call(
        self,
        source: Process,
        link: str,
        endpoint: Endpoint,
        rpc: Rpc[Request, Reply],
        request: Request,
        done: Done[Reply],
        *,
        user: str = "",
        token: Token | None = None,
        retry: RetryPolicy = NO_RETRY,
        timeout_s: float | None = None,
        under_way: UnderWay | None = None,
    ) -> None:
        """Call a server; `done` gets the reply or the error, unless `source` exits before. As wire.rpc.Proxy.call.

        `under_way`: the call was made before, over the connection that there is.
        """
        payload: object = rpc.request.encode(request) if self.encode else request
        call = _Call(
            network=self,
            source=source,
            link=self.link(link),
            endpoint=endpoint,
            request=request,
            message=Envelope(rpc, payload, caller_metadata(user, token) if self.encode else (), user, token),
            done=done,
            retry=retry,
            started_ms=_made_ms(under_way, self.engine.now_ms),
            timeout_ms=round(1000 * (rpc.timeout_s if timeout_s is None else timeout_s)),
        )
        call.make(under_way)


@dataclass(slots=True)
class _Call:
    """A call until its caller has the outcome.

    `message`: what each attempt sends a copy of. The call keeps no reference to its attempts, which refer to it: a
    cycle for each call would have to be collected.
    """

    network: Network
    source: Process
    link: Link
    endpoint: Endpoint
    request: object
    message: Envelope
    done: Done[Any]
    retry: RetryPolicy
    started_ms: int
    timeout_ms: int

    def make(self, under_way: UnderWay | None = None) -> None:
        """Make one attempt."""
        network, source, link, rpc = self.network, self.source, self.link, self.message.rpc
        number = network.observer.called(source.name, link.name, rpc, self.request)
        attempt = Attempt(
            network,
            source,
            link,
            self.message.repeated(),
            f"{rpc.name} over {link.name}",
            partial(self._answered, number),
            number=number,
            timeout_ms=self.timeout_ms,
        )
        known = network.connection(source, link) if under_way is not None else None
        if under_way is not None and under_way.is_unsent:
            attempt.start(self.endpoint, connects_ms=under_way.sent_ms)
        elif under_way is not None and known is not None:
            attempt.resume(known, under_way)
        else:
            attempt.start(self.endpoint)

    def _answered(self, number: int, answer: Envelope | YarnException) -> None:
        network = self.network
        outcome = answer.content(network.encode) if isinstance(answer, Envelope) else answer
        network.observer.over(number, outcome)
        if isinstance(answer, ServerUnavailable):
            waited_ms = network.engine.now_ms - self.started_ms
            pause_ms = self.retry.pause_ms(answer, waited_ms, network.retry_draw(), reads=self.message.rpc.reads)
            if pause_ms is not None:
                self.source.after(round(pause_ms), Rank.MESSAGE, self.make)
                return
        self.done(outcome)
