"""The invariants of AMRMClientCore, checked after every step on its effects.

A-21  nothing is sent after the RM has refused a call because the attempt is over, or its token not valid
A-22  an outcome counts as stored only after the RM has confirmed it
"""

from __future__ import annotations

from collections.abc import Iterator

from am.core.am_rm_client_core import (
    AMRMClientCore,
    CallAnswered,
    CallFailed,
    ClientEffect,
    ClientEvent,
    SendCall,
    Unregistered,
)
from yarn.errors import ApplicationAttemptNotFoundException, InternalError, InvalidToken
from yarn.protocols.master import FinishApplicationMasterResponse


class CheckedAMRMClientCore(AMRMClientCore):
    """An AMRMClientCore that raises InternalError if it goes on after its end, or ends too early."""

    _call_under_way: int | None = None
    _is_over = False

    def handle(self, event: ClientEvent, now_ms: int) -> list[ClientEffect]:
        if isinstance(event, CallFailed) and event.call == self._call_under_way:
            self._is_over |= isinstance(event.error, ApplicationAttemptNotFoundException | InvalidToken)
        effects = super().handle(event, now_ms)
        if broken := [problem for effect in effects for problem in self._of_effect(event, effect)]:
            raise InternalError(f"invariants broken by {event}: {'; '.join(broken)}")
        return effects

    def _of_effect(self, event: ClientEvent, effect: ClientEffect) -> Iterator[str]:
        match effect:
            case SendCall(call, request):
                self._call_under_way = call
                if self._is_over:
                    yield f"A-21: {type(request).__name__} is sent after the end of the attempt"
            case Unregistered():
                response = event.response if isinstance(event, CallAnswered) else None
                if not isinstance(response, FinishApplicationMasterResponse) or not response.is_unregistered:
                    yield "A-22: the outcome is not stored"
            case _:
                pass
