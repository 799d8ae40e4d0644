"""The order of an AM's calls to the RM: register, heartbeats, repeats, register again after a restart, unregister.

    core.handle(Register(request), now_ms) -> [SendCall(1, request)]
    core.handle(CallAnswered(1, response), now_ms) -> [Deliver(Registered(...))]
    core.next_deadline_ms()                                  when to send Tick

AMRMClientState decides what a heartbeat contains; this module decides when it is sent. Heartbeats start at a fixed
interval after one another, whatever the application does meanwhile; the first one is sent as soon as something is
requested, or after an interval. At most one call is under way. A call whose outcome is unknown is sent again unchanged
after an interval, until the RM has been silent for too long. The rules are AMRMClientAsyncImpl's and RMProxy's.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from am.core.am_rm_client_state import AMRMClientState
from am.core.events import AllocateFailed, Event, Resynced, ShutdownOrdered
from yarn.containers import Token
from yarn.errors import (
    ApplicationAttemptNotFoundException,
    ApplicationMasterNotRegisteredException,
    CallOutcomeUnknown,
    InternalError,
    InvalidApplicationMasterRequestException,
    InvalidToken,
    YarnException,
)
from yarn.machine import Dispatcher, Tick, Warn
from yarn.protocols.master import (
    AllocateRequest,
    AllocateResponse,
    FinishApplicationMasterRequest,
    FinishApplicationMasterResponse,
    RegisterApplicationMasterRequest,
    RegisterApplicationMasterResponse,
)

UNREGISTER_PAUSES_MS = (5, 10, 20, 40, 80, 100)
"""The pauses between calls of finishApplicationMaster until it returns true. The last one, AMRMClientImpl's, repeats.

The first answer is always false, and most of the time the RM has stored the end right after it.
"""

Request: TypeAlias = RegisterApplicationMasterRequest | AllocateRequest | FinishApplicationMasterRequest
Response: TypeAlias = RegisterApplicationMasterResponse | AllocateResponse | FinishApplicationMasterResponse


class Register(Struct, frozen=True):
    """Register, then send heartbeats."""

    request: RegisterApplicationMasterRequest


class ContainersRequested(Struct, frozen=True):
    """The application has requested something: the first heartbeat is not delayed any longer."""


class Unregister(Struct, frozen=True):
    """Stop the heartbeats and report the outcome, repeatedly until the RM has stored it."""

    request: FinishApplicationMasterRequest


class CallAnswered(Struct, frozen=True):
    """The answer to a SendCall."""

    call: int
    response: Response


class CallFailed(Struct, frozen=True):
    """A SendCall was refused, or its outcome is unknown (CallOutcomeUnknown)."""

    call: int
    error: YarnException


class SendCall(Struct, frozen=True):
    """Send a call to the RM. It replaces one under way, whose answer is ignored."""

    call: int
    request: Request


class UseToken(Struct, frozen=True):
    """Use a new AMRM token from the next call on."""

    token: Token


class Deliver(Struct, frozen=True):
    """An event for the application."""

    event: Event


class RegisterFailed(Struct, frozen=True):
    """Register failed: nothing more is sent."""

    error: YarnException


class Unregistered(Struct, frozen=True):
    """The RM has stored the outcome: nothing more is sent."""


class UnregisterFailed(Struct, frozen=True):
    """The RM refused the outcome: nothing more is sent."""

    error: YarnException


ClientEvent: TypeAlias = Register | ContainersRequested | Unregister | CallAnswered | CallFailed | Tick
ClientEffect: TypeAlias = SendCall | UseToken | Deliver | RegisterFailed | Unregistered | UnregisterFailed | Warn


class ClientPhase(Enum):
    """The state of an attempt's connection to the RM."""

    IDLE = "IDLE"
    REGISTERING = "REGISTERING"
    RUNNING = "RUNNING"
    RESYNCING = "RESYNCING"
    """Registering again with an RM that has restarted."""
    UNREGISTERING = "UNREGISTERING"
    OVER = "OVER"


class AMRMClientCore:
    """An attempt's exchange with the RM. `progress` is read for each heartbeat.

    `silence_max_ms`: how long calls whose outcome is unknown are repeated.
    """

    def __init__(
        self,
        state: AMRMClientState,
        *,
        heartbeat_interval_ms: int,
        silence_max_ms: int,
        progress: Callable[[], float],
    ) -> None:
        self.phase = ClientPhase.IDLE
        self._state = state
        self._interval_ms = heartbeat_interval_ms
        self._silence_max_ms = silence_max_ms
        self._progress = progress
        self._progress_sent = 0.0
        self._address = RegisterApplicationMasterRequest()
        self._outcome: FinishApplicationMasterRequest | None = None
        self._request: Request | None = None
        self._calls = 0
        self._silent_until_ms = 0
        self._heartbeat_ms = 0
        self.awaits_requests = False
        """True between the registration and the first heartbeat."""
        self._pause_ends_ms: int | None = None
        self._after_pause: Callable[[], None] = _nothing
        self._unregister_pauses = 0
        self._dispatcher: Dispatcher[ClientEffect] = Dispatcher()
        self._dispatcher.on(Register, self._register)
        self._dispatcher.on(ContainersRequested, self._containers_requested)
        self._dispatcher.on(Unregister, self._unregister)
        self._dispatcher.on(CallAnswered, self._answered)
        self._dispatcher.on(CallFailed, self._failed)
        self._dispatcher.on(Tick, self._deadline_reached)

    def handle(self, event: ClientEvent, now_ms: int) -> list[ClientEffect]:
        """Handle an event at `now_ms`, which never decreases; returns the effects, to be carried out in order."""
        self._dispatcher.begin(now_ms)
        self._dispatcher.deliver(event)
        return self._dispatcher.take_effects()

    def next_deadline_ms(self) -> int | None:
        """The time to send Tick; None if only a reply or the application can cause the next step."""
        return self._pause_ends_ms

    @property
    def is_quiet(self) -> bool:
        """True if the next heartbeats would only say that the AM is alive, until the application does something."""
        return (
            self.phase is ClientPhase.RUNNING
            and self._request is None
            and self._pause_ends_ms is not None
            and not self.awaits_requests
            and self._state.has_nothing_to_send
            and self._progress() == self._progress_sent
        )

    def pause_heartbeats(self) -> tuple[int, AllocateRequest]:
        """Send no heartbeats until `resume_heartbeats`; returns the next one, and when it was due. Only if quiet."""
        assert self._pause_ends_ms is not None, "a heartbeat is due"
        due_ms, self._pause_ends_ms = self._pause_ends_ms, None
        return due_ms, self._state.next_quiet_request(self._progress_sent)

    def resume_heartbeats(self, count: int, due_ms: int) -> None:
        """Resume as if `count` heartbeats had been sent and answered with nothing; the next one is due at `due_ms`."""
        self._state.skip_heartbeats(count)
        self._pause_ends_ms, self._after_pause = due_ms, self._send_heartbeat

    def _register(self, event: Register) -> None:
        self.phase = ClientPhase.REGISTERING
        self._address = event.request
        self._send(self._address)

    def _containers_requested(self, event: ContainersRequested) -> None:
        if self.awaits_requests:
            self._send_heartbeat()

    def _unregister(self, event: Unregister) -> None:
        self.phase = ClientPhase.UNREGISTERING
        self._outcome = event.request
        self._send_outcome()

    def _send(self, request: Request) -> None:
        """Send a new call; from now on the RM may be silent for `silence_max_ms`."""
        self._silent_until_ms = self._dispatcher.now_ms + self._silence_max_ms
        self._send_again(request)

    def _send_again(self, request: Request) -> None:
        self.awaits_requests = False
        self._pause_ends_ms = None
        self._calls += 1
        self._request = request
        self._dispatcher.emit(SendCall(self._calls, request))

    def _send_heartbeat(self) -> None:
        self.phase = ClientPhase.RUNNING
        self._heartbeat_ms = self._dispatcher.now_ms
        self._progress_sent = self._progress()
        self._send(self._state.next_request(self._progress_sent))

    def _send_outcome(self) -> None:
        if self._outcome is None:
            raise InternalError("nothing to unregister with")
        self._send(self._outcome)

    def _pause(self, ms: int, then: Callable[[], None]) -> None:
        """Do `then` after a pause, unless a call is sent before."""
        self._pause_ends_ms = self._dispatcher.now_ms + ms
        self._after_pause = then

    def _deadline_reached(self, event: Tick) -> None:
        if self._pause_ends_ms is not None and self._pause_ends_ms <= self._dispatcher.now_ms:
            self._pause_ends_ms = None
            self._after_pause()

    def _answered(self, event: CallAnswered) -> None:
        if not self._takes(event.call):
            return
        match event.response:
            case RegisterApplicationMasterResponse() as response:
                self._registered(response)
            case AllocateResponse() as response:
                self._allocated(response)
            case FinishApplicationMasterResponse(is_unregistered):
                if is_unregistered:
                    self._end(Unregistered())
                else:
                    self._pause_before_outcome()

    def _failed(self, event: CallFailed) -> None:
        request = self._request
        if not self._takes(event.call):
            return
        match request:
            case RegisterApplicationMasterRequest() | AllocateRequest() if self._may_repeat(event.error):
                self._warn_of_silence(request, event.error)
                self._pause(self._interval_ms, lambda: self._send_again(request))
            case RegisterApplicationMasterRequest():
                self._registration_failed(event.error)
            case AllocateRequest():
                self._allocate_failed(event.error)
            case _:
                self._finish_failed(event.error)

    def _takes(self, call: int) -> bool:
        """True if this is the call under way, which then counts as finished."""
        if call != self._calls or self._request is None:
            return False
        self._request = None
        return True

    def _may_repeat(self, error: YarnException) -> bool:
        return isinstance(error, CallOutcomeUnknown) and self._dispatcher.now_ms <= self._silent_until_ms

    def _registered(self, response: RegisterApplicationMasterResponse) -> None:
        """Handle a registration. After an RM restart it only brings NM tokens: the containers are known already."""
        events = self._state.handle_registered(response)
        if self.phase is ClientPhase.UNREGISTERING:
            self._pause_before_outcome()
        elif self.phase is ClientPhase.RESYNCING:
            self._resynced()
        else:
            for event in events:
                self._dispatcher.emit(Deliver(event))
            self.phase, self.awaits_requests = ClientPhase.RUNNING, True
            self._pause(self._interval_ms, self._send_heartbeat)

    def _registration_failed(self, error: YarnException) -> None:
        """Handle a refused registration. If it was repeated, an earlier call may have registered the attempt."""
        is_known = isinstance(error, InvalidApplicationMasterRequestException)
        if self.phase is ClientPhase.UNREGISTERING and is_known:
            self._pause_before_outcome()
        elif self.phase is ClientPhase.RESYNCING and is_known:
            self._dispatcher.emit(Warn(f"already registered: {error.message}"))
            # The next heartbeat will show whether that is so.
            self._pause(self._interval_ms, self._resynced)
        elif self.phase is ClientPhase.UNREGISTERING:
            self._end(UnregisterFailed(error))
        elif self.phase is ClientPhase.RESYNCING:
            self._end(Deliver(AllocateFailed(error)))
        else:
            self._end(RegisterFailed(error))

    def _resynced(self) -> None:
        self._dispatcher.emit(Deliver(Resynced()))
        self._send_heartbeat()

    def _allocated(self, response: AllocateResponse) -> None:
        if response.am_rm_token is not None:
            self._dispatcher.emit(UseToken(response.am_rm_token))
        for event in self._state.handle_reply(response):
            self._dispatcher.emit(Deliver(event))
        pause_ms = max(0, self._heartbeat_ms + self._interval_ms - self._dispatcher.now_ms)
        self._pause(pause_ms, self._send_heartbeat)

    def _allocate_failed(self, error: YarnException) -> None:
        match error:
            case ApplicationMasterNotRegisteredException():
                self._dispatcher.emit(Warn(f"resync: the ResourceManager asks to register again: {error.message}"))
                self._state.handle_not_registered()
                self.phase = ClientPhase.RESYNCING
                self._send(self._address)
            case ApplicationAttemptNotFoundException() | InvalidToken():
                self._end(Deliver(ShutdownOrdered(error.message)))
            case _:
                self._state.handle_refused()
                self._end(Deliver(AllocateFailed(error)))

    def _finish_failed(self, error: YarnException) -> None:
        match error:
            case ApplicationMasterNotRegisteredException():
                # The RM has restarted since. AMRMClientImpl registers again only to unregister.
                self._send(self._address)
            case CallOutcomeUnknown():
                self._pause_before_outcome()
            case _:
                self._end(UnregisterFailed(error))

    def _pause_before_outcome(self) -> None:
        pause_ms = UNREGISTER_PAUSES_MS[min(self._unregister_pauses, len(UNREGISTER_PAUSES_MS) - 1)]
        self._unregister_pauses += 1
        self._pause(pause_ms, self._send_outcome)

    def _end(self, effect: ClientEffect) -> None:
        self.phase = ClientPhase.OVER
        self._dispatcher.emit(effect)

    def _warn_of_silence(self, request: RegisterApplicationMasterRequest | AllocateRequest, error: Exception) -> None:
        if isinstance(request, AllocateRequest):
            text = f"no answer to allocate, repeating response_id={request.response_id}: {error}"
        else:
            text = f"no answer to registerApplicationMaster, repeating: {error}"
        self._dispatcher.emit(Warn(text))


def _nothing() -> None:
    """Do nothing."""
