"""The observer of all calls on the network of a simulation."""

from __future__ import annotations

from typing import Any

from wire.rpc import Rpc


class CallObserver:
    """Ignores all calls; a subclass notes them.

    Each attempt at a call has a number. It is sent, arrives and is replied to, unless it is lost on the way, and is
    over when its caller has the reply or an error.
    """

    def called(self, source: str, link: str, rpc: Rpc[Any, Any], request: object) -> int:
        """Note the start of an attempt; returns its number."""
        return 0

    def sent(self, call: int, target: str) -> None:
        """Note that the request was sent, over a connection to this process."""

    def arrived(self, call: int) -> None:
        """Note that the server received the request; called again for a duplicate."""

    def replied(self, call: int) -> None:
        """Note that the reply was sent."""

    def over(self, call: int, outcome: object) -> None:
        """Note that the caller received the reply or the error."""
