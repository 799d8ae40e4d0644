"""The event and the effects that the dispatcher of every core has: a tick, replies and log entries.

Event logs name these records by this module. The Dispatcher itself is in delivery.py, which can be compiled; a module
with records cannot (docs/design/compiled-core.md).
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from yarn.errors import YarnException


class Tick(Struct, frozen=True):
    """An event that only lets time pass: the shell sends it to a core at the core's `next_deadline_ms`."""


Call: TypeAlias = int
"""The shell's number for an RPC that waits for its answer."""


class Reply(Struct, frozen=True):
    """Answer call `call` with `value` (the response record of its protocol, or None)."""

    call: Call
    value: object


class Refuse(Struct, frozen=True):
    """Answer call `call` with an error."""

    call: Call
    error: YarnException


class StateChanged(Struct, frozen=True):
    """For the log: `kind` (NMContainer, RMApp...) `subject` went from `source` to `target` on `event`."""

    kind: str
    subject: str
    event: str
    source: str
    target: str
    detail: str = ""


class InvariantsBroken(Struct, frozen=True):
    """The core's state violates invariants: log every violation, and exit."""

    violations: tuple[str, ...]


class Warn(Struct, frozen=True):
    """For the log: something an operator should know that is not a state change."""

    text: str
