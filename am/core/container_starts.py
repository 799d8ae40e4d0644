"""Starts containers on one NM: which starts share a call, and what follows if a call is refused or has no answer.

    starts.handle(StartWanted(1, container_id, request), now_ms) -> []
    starts.handle(Tick(), now_ms) -> [SendStarts((request,))]
    starts.handle(StartsAnswered(response), now_ms) -> [StartSettled(1, None)]

startContainers takes many starts, and a call costs more than a start. Starts of one moment make one call; those that
come while it is under way make the next.

If the outcome of a start is unknown, the NM is asked whether it has the container, and the start is sent again if it
has not. So a container is started once or not at all, and the caller learns which.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct

from yarn.errors import (
    CallOutcomeUnknown,
    InternalError,
    InvalidArgumentException,
    InvalidToken,
    NMNotYetReadyException,
    YarnException,
)
from yarn.ids import ContainerId
from yarn.machine import Dispatcher, Tick
from yarn.protocols.container_management import StartContainerRequest, StartContainersResponse

STARTS_PER_CALL_MAX = 100
"""Starts in one call. A larger call saves no more, and its callers wait longer."""


class StartWanted(Struct, frozen=True):
    """Start a container; StartSettled follows. `number` is the caller's, unique on this NM."""

    number: int
    container_id: ContainerId
    request: StartContainerRequest


class StartAbandoned(Struct, frozen=True):
    """The caller no longer waits: the start is not sent (again). A call under way may still start the container."""

    number: int


class StartsAnswered(Struct, frozen=True):
    """The answer to SendStarts."""

    response: StartContainersResponse


class StartsFailed(Struct, frozen=True):
    """SendStarts was refused as a whole, or its outcome is unknown."""

    error: YarnException


class ContainerFound(Struct, frozen=True):
    """The answer to FindContainer."""

    number: int
    is_there: bool


class FindFailed(Struct, frozen=True):
    """FindContainer had no answer."""

    number: int
    error: YarnException


class SendStarts(Struct, frozen=True):
    """Call startContainers; at most one such call is under way."""

    requests: tuple[StartContainerRequest, ...]


class FindContainer(Struct, frozen=True):
    """Ask the NM whether it has the container (getContainerStatuses)."""

    number: int
    container_id: ContainerId


class StartSettled(Struct, frozen=True):
    """The container was started (`error` None) or not; CallOutcomeUnknown if it may have been."""

    number: int
    error: YarnException | None


StartEvent: TypeAlias = (
    StartWanted | StartAbandoned | StartsAnswered | StartsFailed | ContainerFound | FindFailed | Tick
)
StartEffect: TypeAlias = SendStarts | FindContainer | StartSettled


class _RetryDue(Struct, frozen=True):
    number: int


@dataclass(slots=True, eq=False)
class _Start:
    """A start in progress. `deadline_ms`: the end of its retries, None: never. `error`: that of its last call."""

    number: int
    container_id: ContainerId
    request: StartContainerRequest
    deadline_ms: int | None
    error: YarnException | None = None
    may_have_started: bool = False


class ContainerStarts:
    """The starts on one NM. `max_wait_ms` (negative: forever): how long a start is repeated, every `interval_ms`.

    A start is in `_starts` until it is settled; in `_waiting` before its call, in `_sent` during it. `_suspects` were
    refused together, and are sent one by one; `_examined` is the one about which the NM is asked before that.
    """

    def __init__(self, max_wait_ms: int, interval_ms: int) -> None:
        self._max_wait_ms = max_wait_ms
        self._interval_ms = interval_ms
        self._starts: dict[int, _Start] = {}
        self._waiting: deque[_Start] = deque()
        self._sent: list[_Start] = []
        self._suspects: deque[_Start] = deque()
        self._examined: _Start | None = None
        self._send_due_ms: int | None = None
        self._dispatcher: Dispatcher[StartEffect] = Dispatcher()
        self._dispatcher.on(StartWanted, self._start_wanted)
        self._dispatcher.on(StartAbandoned, self._start_abandoned)
        self._dispatcher.on(StartsAnswered, self._starts_answered)
        self._dispatcher.on(StartsFailed, self._starts_failed)
        self._dispatcher.on(ContainerFound, self._container_found)
        self._dispatcher.on(FindFailed, self._find_failed)
        self._dispatcher.on(Tick, self._deadline_reached)
        self._dispatcher.on(_RetryDue, self._retry_due)

    def handle(self, event: StartEvent, now_ms: int) -> list[StartEffect]:
        """Handle an event at `now_ms`, which never decreases; returns the effects, to be carried out in order."""
        self._dispatcher.begin(now_ms)
        self._dispatcher.deliver(event)
        self._dispatcher.drain()
        return self._dispatcher.take_effects()

    def next_deadline_ms(self) -> int | None:
        """The time to send Tick; None if only a reply or a further start can cause the next step."""
        retry_ms = self._dispatcher.next_deadline_ms()
        return retry_ms if self._send_due_ms is None else self._send_due_ms

    def _start_wanted(self, event: StartWanted) -> None:
        deadline_ms = None if self._max_wait_ms < 0 else self._dispatcher.now_ms + self._max_wait_ms
        start = _Start(event.number, event.container_id, event.request, deadline_ms)
        self._starts[event.number] = start
        self._wait(start)

    def _start_abandoned(self, event: StartAbandoned) -> None:
        start = self._starts.pop(event.number, None)
        for starts in (self._waiting, self._suspects):
            if start is not None and start in starts:
                starts.remove(start)

    def _wait(self, start: _Start) -> None:
        self._waiting.append(start)
        if not self._is_busy and self._send_due_ms is None:
            self._send_due_ms = self._dispatcher.now_ms

    @property
    def _is_busy(self) -> bool:
        return bool(self._sent) or self._examined is not None

    def _deadline_reached(self, event: Tick) -> None:
        """Send the starts collected for one call, or continue after a pause, which is a timer of the dispatcher."""
        self._send_due_ms = None
        self._send_next()

    def _send_next(self) -> None:
        """Send the next call, unless one is under way: a suspect by itself, otherwise all that wait."""
        if self._is_busy:
            return
        if self._suspects:
            self._examined = start = self._suspects.popleft()
            self._dispatcher.emit(FindContainer(start.number, start.container_id))
        elif self._waiting:
            count = min(STARTS_PER_CALL_MAX, len(self._waiting))
            self._send([self._waiting.popleft() for _ in range(count)])

    def _send(self, starts: list[_Start]) -> None:
        self._sent = starts
        self._dispatcher.emit(SendStarts(tuple(start.request for start in starts)))

    def _starts_answered(self, event: StartsAnswered) -> None:
        for start in self._take_sent():
            if start.container_id in event.response.succeeded:
                self._settle(start, None)
            else:
                unreported = YarnException(f"the NodeManager did not report the outcome for {start.container_id}")
                self._failed(start, event.response.failed.get(start.container_id) or unreported)
        self._send_next()

    def _starts_failed(self, event: StartsFailed) -> None:
        starts = self._take_sent()
        if len(starts) > 1 and isinstance(event.error, InvalidToken | InvalidArgumentException):
            # A start made the NM refuse the whole call (a forged token, or the sum is too large): find out which.
            for start in starts:
                start.error = event.error
            self._suspects.extend(start for start in starts if start.number in self._starts)
        else:
            for start in starts:
                self._failed(start, event.error)
        self._send_next()

    def _take_sent(self) -> list[_Start]:
        starts, self._sent = self._sent, []
        if not starts:
            raise InternalError("an answer to startContainers, which was not called")
        return starts

    def _failed(self, start: _Start, error: YarnException) -> None:
        start.error = error
        if start.number not in self._starts:
            return
        if isinstance(error, CallOutcomeUnknown) or start.may_have_started:
            start.may_have_started = True
            self._dispatcher.emit(FindContainer(start.number, start.container_id))
        else:
            self._retry_or_settle(start)

    def _container_found(self, event: ContainerFound) -> None:
        if self._examined is not None and self._examined.number == event.number:
            start, self._examined = self._examined, None
            if event.is_there:
                # Starts before a forged token were carried out anyway.
                self._settle(start, None)
            elif start.number in self._starts:
                self._send([start])
            self._send_next()
        elif (known := self._starts.get(event.number)) is not None:
            if event.is_there:
                self._settle(known, None)
            else:
                self._retry_or_settle(known)

    def _find_failed(self, event: FindFailed) -> None:
        if self._examined is not None and self._examined.number == event.number:
            start, self._examined = self._examined, None
            self._settle(start, start.error)
            self._send_next()
        elif (known := self._starts.get(event.number)) is not None:
            self._settle(known, event.error)

    def _retry_or_settle(self, start: _Start) -> None:
        is_over = start.deadline_ms is not None and self._dispatcher.now_ms >= start.deadline_ms
        if is_over or not isinstance(start.error, CallOutcomeUnknown | NMNotYetReadyException):
            self._settle(start, start.error)
        else:
            self._dispatcher.send_after(self._interval_ms, _RetryDue(start.number))

    def _retry_due(self, event: _RetryDue) -> None:
        start = self._starts.get(event.number)
        if start is not None:
            self._wait(start)

    def _settle(self, start: _Start, error: YarnException | None) -> None:
        if self._starts.pop(start.number, None) is not None:
            self._dispatcher.emit(StartSettled(start.number, error))
