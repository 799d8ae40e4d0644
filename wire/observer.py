"""Watching calls as a server sees them."""

from __future__ import annotations

import logging
from typing import Any, Protocol

from wire.caller import Caller
from wire.rpc import Rpc

LOG_LINE_MAX = 4000
"""Characters of a message in the log; the rest is left out."""

_logger = logging.getLogger(__name__)


class RpcObserver(Protocol):
    """Told of each call that a server took and of its answer; must not block and must not raise."""

    def received(self, caller: Caller[Any], rpc: Rpc[Any, Any], request: object) -> None: ...

    def answered(
        self, caller: Caller[Any], rpc: Rpc[Any, Any], request: object, outcome: object, elapsed_ms: float
    ) -> None:
        """`request`: None if it was not read; `outcome`: the reply's record, or the YarnException that refused it."""


class WireLog:
    """Writes calls to the log at DEBUG, `<` for what comes in, `>` for what goes out. Secrets have no repr."""

    def received(self, caller: Caller[Any], rpc: Rpc[Any, Any], request: object) -> None:
        if _logger.isEnabledFor(logging.DEBUG):
            _logger.debug("< %s peer=%s user=%s %s", rpc.name, caller.peer, caller.user or "-", _cut(request))

    def answered(
        self, caller: Caller[Any], rpc: Rpc[Any, Any], request: object, outcome: object, elapsed_ms: float
    ) -> None:
        if _logger.isEnabledFor(logging.DEBUG):
            _logger.debug("> %s peer=%s ms=%.1f %s", rpc.name, caller.peer, elapsed_ms, _cut(outcome))


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LOG_LINE_MAX else f"{text[:LOG_LINE_MAX]}... ({len(text)} characters)"
