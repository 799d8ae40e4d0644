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
        """An attempt begins; returns its number."""
        return 0

    def sent(self, call: int, target: str) -> None:
        """There is a connection to this process, and the request is on its way."""

    def arrived(self, call: int) -> None:
        """The server has the request. A duplicate arrives again."""

    def replied(self, call: int) -> None:
        """The reply is on its way."""

    def over(self, call: int, outcome: object) -> None:
        """The caller has the reply, or the error."""
