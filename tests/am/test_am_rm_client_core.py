"""When AMRMClientCore calls the RM: events in, effects out, no clock."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from am.core.am_rm_client_core import (
    AMRMClientCore,
    CallAnswered,
    CallFailed,
    ClientEffect,
    ClientEvent,
    ClientPhase,
    ContainersRequested,
    Deliver,
    Register,
    RegisterFailed,
    Request,
    Response,
    SendCall,
    Unregister,
    Unregistered,
    UnregisterFailed,
    UseToken,
)
from am.core.am_rm_client_state import AMRMClientState
from am.core.client_invariants import CheckedAMRMClientCore
from am.core.events import AllocateFailed, HeartbeatDone, Registered, Resynced, ShutdownOrdered
from am.core.requests import ContainerRequest
from tests.am.builders import GB, reply
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
from yarn.machine import Tick
from yarn.protocols.master import (
    AllocateRequest,
    AllocateResponse,
    FinishApplicationMasterRequest,
    FinishApplicationMasterResponse,
    RegisterApplicationMasterRequest,
    RegisterApplicationMasterResponse,
)
from yarn.states import FinalApplicationStatus

INTERVAL_MS = 1000
SILENCE_MS = 2500
LOST = CallOutcomeUnknown("no answer")
RESTARTED = ApplicationMasterNotRegisteredException("who are you?")
KNOWN = InvalidApplicationMasterRequestException("already registered")
OUTCOME = FinishApplicationMasterRequest(FinalApplicationStatus.SUCCEEDED)


class Exchange:
    """A core and its clock. `effects`: those of the last step."""

    def __init__(self) -> None:
        self.state = AMRMClientState()
        self.core = CheckedAMRMClientCore(
            self.state, heartbeat_interval_ms=INTERVAL_MS, silence_max_ms=SILENCE_MS, progress=lambda: 0.5
        )
        self.now_ms = 1000
        self.effects: list[ClientEffect] = []

    def take(self, event: ClientEvent) -> None:
        self.effects = self.core.handle(event, self.now_ms)

    def wait(self) -> int:
        """Go to the next deadline; how long that took."""
        deadline_ms = self.core.next_deadline_ms()
        assert deadline_ms is not None, "nothing is planned"
        waited_ms, self.now_ms = deadline_ms - self.now_ms, deadline_ms
        self.take(Tick())
        return waited_ms

    def answer(self, response: Response) -> None:
        self.take(CallAnswered(self.call().call, response))

    def fail(self, error: YarnException) -> None:
        self.take(CallFailed(self.call().call, error))

    def call(self) -> SendCall:
        """The call of the last step."""
        return next(effect for effect in self.effects if isinstance(effect, SendCall))

    @property
    def sent(self) -> Request | None:
        return next((effect.request for effect in self.effects if isinstance(effect, SendCall)), None)

    def register(self) -> None:
        self.take(Register(RegisterApplicationMasterRequest("host")))
        self.answer(RegisterApplicationMasterResponse(GB, "default"))

    def heartbeat(self) -> None:
        """Register, and send the first heartbeat."""
        self.register()
        self.take(ContainersRequested())

    def delivered(self) -> list[type]:
        return [type(effect.event) for effect in self.effects if isinstance(effect, Deliver)]


@pytest.fixture
def am() -> Exchange:
    return Exchange()


def answered(response_id: int = 1, token: Token | None = None) -> AllocateResponse:
    return replace(reply(response_id), am_rm_token=token)


def test_the_first_heartbeat_is_sent_after_an_interval(am: Exchange) -> None:
    am.register()
    assert am.delivered() == [Registered]
    assert am.sent is None
    assert am.wait() == INTERVAL_MS
    assert isinstance(am.sent, AllocateRequest)


def test_a_request_brings_the_first_heartbeat_forward_and_no_other(am: Exchange) -> None:
    am.register()
    am.now_ms += 200
    am.state.add_request(ContainerRequest(GB, priority=1))
    am.take(ContainersRequested())
    assert isinstance(am.sent, AllocateRequest)
    assert len(am.sent.asks) == 1
    am.answer(answered())
    am.take(ContainersRequested())
    assert am.sent is None
    assert am.wait() == INTERVAL_MS


def test_heartbeats_start_an_interval_after_one_another_however_long_the_answer_takes(am: Exchange) -> None:
    am.heartbeat()
    am.now_ms += 300
    am.answer(answered(1))
    assert am.delivered() == [HeartbeatDone]
    assert am.wait() == INTERVAL_MS - 300
    am.now_ms += 5000
    am.answer(answered(2))
    assert am.wait() == 0


def test_a_heartbeat_without_an_answer_is_sent_again_unchanged(am: Exchange) -> None:
    am.state.add_request(ContainerRequest(GB, priority=1))
    am.heartbeat()
    first = am.sent
    am.fail(LOST)
    am.state.add_request(ContainerRequest(GB, priority=2))
    assert am.wait() == INTERVAL_MS
    assert am.sent == first


def test_silence_for_too_long_ends_the_exchange(am: Exchange) -> None:
    am.heartbeat()
    for _ in range(3):
        am.fail(LOST)
        am.wait()
    am.fail(LOST)
    assert am.delivered() == [AllocateFailed]
    assert am.core.phase is ClientPhase.OVER
    assert am.core.next_deadline_ms() is None


def test_a_registration_without_an_answer_is_repeated_and_in_the_end_fails(am: Exchange) -> None:
    am.take(Register(RegisterApplicationMasterRequest("host")))
    for _ in range(3):
        am.fail(LOST)
        assert am.wait() == INTERVAL_MS
        assert am.sent == RegisterApplicationMasterRequest("host")
    am.fail(LOST)
    assert am.effects == [RegisterFailed(LOST)]


def test_after_a_restart_of_the_rm_it_registers_and_sends_a_heartbeat_at_once(am: Exchange) -> None:
    am.state.add_request(ContainerRequest(GB, priority=1))
    am.heartbeat()
    am.answer(answered())
    am.wait()
    am.fail(RESTARTED)
    assert isinstance(am.sent, RegisterApplicationMasterRequest)
    am.answer(RegisterApplicationMasterResponse(GB, "default"))
    assert am.delivered() == [Resynced]
    assert isinstance(am.sent, AllocateRequest)
    assert (am.sent.response_id, len(am.sent.asks)) == (0, 1)


def test_a_second_registration_that_the_rm_knows_counts_after_a_pause(am: Exchange) -> None:
    am.heartbeat()
    am.fail(RESTARTED)
    am.fail(LOST)
    am.wait()
    am.fail(KNOWN)
    assert am.wait() == INTERVAL_MS
    assert am.delivered() == [Resynced]
    assert isinstance(am.sent, AllocateRequest)


def test_a_refused_second_registration_ends_the_exchange(am: Exchange) -> None:
    am.heartbeat()
    am.fail(RESTARTED)
    am.fail(YarnException("no"))
    assert am.delivered() == [AllocateFailed]


@pytest.mark.parametrize("error", [ApplicationAttemptNotFoundException("gone"), InvalidToken("gone")])
def test_an_unknown_attempt_is_to_shut_down(am: Exchange, error: YarnException) -> None:
    am.heartbeat()
    am.fail(error)
    assert am.effects == [Deliver(ShutdownOrdered("gone"))]


def test_a_new_token_is_used_before_anything_else(am: Exchange) -> None:
    token = Token(b"new", b"p", "AMRM", "")
    am.heartbeat()
    am.answer(answered(1, token))
    assert am.effects[0] == UseToken(token)


def test_unregistration_replaces_a_call_and_its_pauses_grow(am: Exchange) -> None:
    am.heartbeat()
    heartbeat = am.call()
    am.take(Unregister(OUTCOME))
    unregister = am.effects
    am.take(CallAnswered(heartbeat.call, answered()))
    assert am.effects == []
    am.effects = unregister
    pauses = []
    for _ in range(8):
        assert am.sent == OUTCOME
        am.answer(FinishApplicationMasterResponse(False))
        pauses.append(am.wait())
    assert pauses == [5, 10, 20, 40, 80, 100, 100, 100]
    am.answer(FinishApplicationMasterResponse(True))
    assert am.effects == [Unregistered()]


def test_unregistration_registers_again_with_an_rm_that_has_restarted(am: Exchange) -> None:
    am.heartbeat()
    am.take(Unregister(OUTCOME))
    am.fail(RESTARTED)
    assert isinstance(am.sent, RegisterApplicationMasterRequest)
    am.fail(KNOWN)
    am.wait()
    assert isinstance(am.sent, FinishApplicationMasterRequest)
    am.fail(LOST)
    am.wait()
    assert isinstance(am.sent, FinishApplicationMasterRequest)
    refusal = YarnException("no")
    am.fail(refusal)
    assert am.effects == [UnregisterFailed(refusal)]


def test_heartbeats_can_be_left_out_while_there_is_nothing_to_send(am: Exchange) -> None:
    am.register()
    assert not am.core.is_quiet
    am.wait()
    assert not am.core.is_quiet
    am.answer(reply(1))
    assert am.core.is_quiet
    due_ms, request = am.core.pause_heartbeats()
    assert am.core.next_deadline_ms() is None
    am.core.resume_heartbeats(5, due_ms + 5 * INTERVAL_MS)
    assert am.core.is_quiet
    am.wait()
    assert am.sent == replace(request, response_id=request.response_id + 5)
    assert not am.core.is_quiet


def test_a_request_is_not_left_out(am: Exchange) -> None:
    am.register()
    am.wait()
    am.answer(reply(1))
    am.state.add_request(ContainerRequest(GB, 1))
    assert not am.core.is_quiet


# Invariants


def test_a_heartbeat_after_the_end_of_the_attempt_breaks_an_invariant(
    am: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    def go_on(core: AMRMClientCore, error: YarnException) -> None:
        core._send_heartbeat()

    am.heartbeat()
    monkeypatch.setattr(AMRMClientCore, "_allocate_failed", go_on)
    with pytest.raises(InternalError, match="A-21: AllocateRequest is sent after the end of the attempt"):
        am.fail(ApplicationAttemptNotFoundException("no such attempt"))


def test_an_answer_that_does_not_confirm_the_outcome_and_ends_the_client_breaks_an_invariant(
    am: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    am.register()
    am.take(Unregister(OUTCOME))
    monkeypatch.setattr(AMRMClientCore, "_pause_before_outcome", lambda core: core._end(Unregistered()))
    with pytest.raises(InternalError, match="A-22: the outcome is not stored"):
        am.answer(FinishApplicationMasterResponse(is_unregistered=False))
