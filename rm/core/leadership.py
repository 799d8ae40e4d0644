"""Leadership of a ResourceManager that has others beside it, as a pure state machine (HAServiceState).

    STANDBY --Elected--> ACTIVATING --Activated--> ACTIVE --Deposed--> DEACTIVATING --Deactivated--> STANDBY

An elector decides who leads; this machine decides what follows: when to become active, when to stop, when to take part
in the next election, and how to answer an administrator. While a ResourceManager is in any state but ACTIVE it answers
calls with StandbyException, so callers go on to the next.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from yarn.states import HAServiceState

RETRY_MS = 1000
"""The time until a ResourceManager takes part in elections again, after it could not become active or was asked to
become standby."""


class Phase(Enum):
    """The states of the machine; callers see HAServiceState."""

    STANDBY = "standby"
    ACTIVATING = "activating"
    ACTIVE = "active"
    DEACTIVATING = "deactivating"


class Started(Struct, frozen=True):
    """The process serves its administrators."""


class Elected(Struct, frozen=True):
    """This ResourceManager leads, in a term that no other had."""

    term: int


class Deposed(Struct, frozen=True):
    """This ResourceManager does not lead any more."""

    reason: str


class CannotServe(Struct, frozen=True):
    """This ResourceManager leads, but cannot go on, for example because it cannot write to the state store."""

    reason: str


class Activated(Struct, frozen=True):
    """The state is recovered, and calls are answered."""


class ActivationFailed(Struct, frozen=True):
    """This ResourceManager was elected, but cannot serve."""

    reason: str


class Deactivated(Struct, frozen=True):
    """The services for clients, ApplicationMasters and NodeManagers have ended."""


class BecomeActive(Struct, frozen=True):
    """An administrator's transitionToActive."""

    call: int


class BecomeStandby(Struct, frozen=True):
    """An administrator's transitionToStandby."""

    call: int


class RetryDue(Struct, frozen=True):
    """A deadline may have passed."""


LeadershipEvent: TypeAlias = (
    Started
    | Elected
    | Deposed
    | CannotServe
    | Activated
    | ActivationFailed
    | Deactivated
    | BecomeActive
    | BecomeStandby
    | RetryDue
)


class Campaign(Struct, frozen=True):
    """Take part in elections from now on."""


class Resign(Struct, frozen=True):
    """Take part no more, and let another lead at once."""


class Activate(Struct, frozen=True):
    """Fence the store for this term, recover, and serve; Activated or ActivationFailed follows."""

    term: int


class Deactivate(Struct, frozen=True):
    """Acknowledge nothing more and end the services; Deactivated follows."""

    reason: str


class TransitionDone(Struct, frozen=True):
    """Answer an administrator."""

    call: int


class TransitionFailed(Struct, frozen=True):
    """Refuse an administrator's call (ServiceFailedException)."""

    call: int
    reason: str


LeadershipEffect: TypeAlias = Campaign | Resign | Activate | Deactivate | TransitionDone | TransitionFailed


class Leadership:
    """The leadership of one ResourceManager.

    `automatic`: it takes part in elections by itself; otherwise only after an administrator's transitionToActive, for
    `patience_ms` at most.
    """

    def __init__(self, *, automatic: bool, patience_ms: int) -> None:
        self.phase = Phase.STANDBY
        self.is_started = False
        self._automatic = automatic
        self._patience_ms = patience_ms
        self._elected: int | None = None
        self._deadline_ms: int | None = None
        self._wanting_active: list[int] = []
        self._wanting_standby: list[int] = []

    @property
    def state(self) -> HAServiceState:
        if not self.is_started:
            return HAServiceState.INITIALIZING
        return HAServiceState.ACTIVE if self.phase is Phase.ACTIVE else HAServiceState.STANDBY

    def next_deadline_ms(self) -> int | None:
        return self._deadline_ms

    def handle(self, event: LeadershipEvent, now_ms: int) -> list[LeadershipEffect]:
        """Returns the effects, in the order in which to carry them out."""
        match event:
            case Started():
                self.is_started = True
                return [Campaign()] if self._automatic else []
            case Elected(term):
                return self._be_elected(term)
            case Deposed(reason):
                return self._be_deposed(reason)
            case CannotServe(reason):
                self._campaign_later(now_ms)
                return [*self._be_deposed(reason), Resign()]
            case Activated():
                return self._be_active()
            case ActivationFailed(reason):
                return self._fail(reason, now_ms)
            case Deactivated():
                return self._be_standby()
            case BecomeActive(call):
                return self._want_active(call, now_ms)
            case BecomeStandby(call):
                return self._want_standby(call, now_ms)
            case RetryDue():
                return self._look_at_deadline(now_ms)

    def _be_elected(self, term: int) -> list[LeadershipEffect]:
        """Elected: begin to serve; while the services of an earlier term still end, as soon as they have."""
        if self.phase is Phase.STANDBY:
            self.phase = Phase.ACTIVATING
            return [Activate(term)]
        self._elected = term
        return []

    def _be_deposed(self, reason: str) -> list[LeadershipEffect]:
        """Deposed: stop, also in the middle of becoming active. A standby has nothing to stop."""
        self._elected = None
        if self.phase not in (Phase.ACTIVE, Phase.ACTIVATING):
            return []
        self.phase = Phase.DEACTIVATING
        return [*self._refused(f"deposed meanwhile: {reason}"), Deactivate(reason)]

    def _be_active(self) -> list[LeadershipEffect]:
        """Activated; nothing if it was deposed meanwhile: Deactivate is on its way then."""
        if self.phase is not Phase.ACTIVATING:
            return []
        self.phase = Phase.ACTIVE
        self._deadline_ms = None
        waiting, self._wanting_active = self._wanting_active, []
        return [TransitionDone(call) for call in waiting]

    def _fail(self, reason: str, now_ms: int) -> list[LeadershipEffect]:
        """Elected in vain: let another lead, and try again later."""
        if self.phase is Phase.DEACTIVATING:
            return self._be_standby()
        self.phase = Phase.STANDBY
        self._campaign_later(now_ms)
        return [*self._refused(reason), Resign()]

    def _be_standby(self) -> list[LeadershipEffect]:
        """Deactivated: standby, or active again at once if it has been elected meanwhile."""
        self.phase = Phase.STANDBY
        done: list[LeadershipEffect] = [TransitionDone(call) for call in self._wanting_standby]
        self._wanting_standby = []
        term, self._elected = self._elected, None
        return done if term is None else [*done, *self._be_elected(term)]

    def _want_active(self, call: int, now_ms: int) -> list[LeadershipEffect]:
        if self.phase is Phase.ACTIVE:
            return [TransitionDone(call)]
        self._wanting_active.append(call)
        self._deadline_ms = now_ms + self._patience_ms
        return [Campaign()]

    def _want_standby(self, call: int, now_ms: int) -> list[LeadershipEffect]:
        """Resign before the services end, which takes a second: another may lead at once, since nothing more is
        acknowledged.
        """
        self._campaign_later(now_ms)
        self._elected = None
        refused = self._refused("asked to become standby meanwhile")
        if self.phase is Phase.STANDBY:
            return [*refused, Resign(), TransitionDone(call)]
        self._wanting_standby.append(call)
        if self.phase is Phase.DEACTIVATING:
            return [*refused, Resign()]
        self.phase = Phase.DEACTIVATING
        return [*refused, Deactivate("made standby by an administrator"), Resign()]

    def _look_at_deadline(self, now_ms: int) -> list[LeadershipEffect]:
        if self._deadline_ms is None or now_ms < self._deadline_ms:
            return []
        self._deadline_ms = None
        if self._wanting_active and self.phase is Phase.STANDBY:
            refused = self._refused(f"another ResourceManager has led for {self._patience_ms} ms")
            return refused if self._automatic else [*refused, Resign()]
        return [Campaign()] if self._automatic else []

    def _campaign_later(self, now_ms: int) -> None:
        self._deadline_ms = now_ms + RETRY_MS if self._automatic else None

    def _refused(self, reason: str) -> list[LeadershipEffect]:
        waiting, self._wanting_active = self._wanting_active, []
        return [TransitionFailed(call, reason) for call in waiting]
