"""A run as a space-time diagram shows it: lifelines, the messages between them, and what happened on each.

All times are milliseconds on the clock of the run. The texts come from logs and are not trusted.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from msgspec import Struct


class Role(Enum):
    """The subject of a lifeline, in the order in which lifelines are drawn."""

    CLIENT = "client"
    AM = "ApplicationMaster"
    RM = "ResourceManager"
    NM = "NodeManager"


class Outcome(Enum):
    """The end of a call, as far as the run shows."""

    ANSWERED = "answered"
    REFUSED = "refused"
    REQUEST_LOST = "request lost"
    REPLY_LOST = "reply lost"
    UNANSWERED = "not answered"
    UNREACHABLE = "no connection"
    UNDER_WAY = "under way at the end"


LOST = frozenset({Outcome.REQUEST_LOST, Outcome.REPLY_LOST, Outcome.UNREACHABLE, Outcome.UNANSWERED})
"""The outcomes that leave the caller without a reply."""


class Lifeline(Struct, frozen=True):
    """`name`: unique in the run; `title`: its short form."""

    name: str
    role: Role
    title: str


class Message(Struct, frozen=True):
    """A call and its reply. A time that is None did not happen, or is not known.

    `request` and `reply`: their fields as plain JSON. `error`: what the caller got instead of a reply. `is_quiet`: a
    heartbeat without news. `arrivals`: how often the request arrived. `bytes_sent`: of the request and the reply
    together, as protobuf; None if the run does not say.
    """

    source: str
    target: str
    rpc: str
    sent_ms: int
    arrived_ms: int | None
    replied_ms: int | None
    answered_ms: int | None
    outcome: Outcome
    request: Any = None
    reply: Any = None
    error: str = ""
    is_quiet: bool = False
    arrivals: int = 1
    applications: tuple[str, ...] = ()
    bytes_sent: int | None = None


class StateChange(Struct, frozen=True):
    """On the lifeline `host`, `subject` (an RMApp, an NMContainer...) went from `source` to `target` on `event`."""

    at_ms: int
    host: str
    kind: str
    subject: str
    event: str
    source: str
    target: str
    application: str = ""


class What(Enum):
    """A decision of the scheduler."""

    ALLOCATED = "allocated"
    RESERVED = "reserved"
    UNRESERVED = "unreserved"
    REFUSED = "refused"
    PREEMPTED = "preempted"
    RELEASED = "released"


class Decision(Struct, frozen=True):
    """`node`: the node it is about, "" for none; `reason`: why; `queue`: the path of the application's queue."""

    at_ms: int
    what: What
    application: str
    node: str = ""
    container: str = ""
    queue: str = ""
    memory_mb: int = 0
    vcores: int = 0
    reason: str = ""


class Fault(Struct, frozen=True):
    """An injected fault, on the lifelines `hosts`. `until_ms`: None if it has no end."""

    kind: str
    from_ms: int
    until_ms: int | None
    hosts: tuple[str, ...]
    target: str = ""


class QueueUse(Struct, frozen=True):
    """The usage of a queue at one moment, in MB of memory, with its guarantee and its maximum."""

    at_ms: int
    queue: str
    used_mb: int
    reserved_mb: int
    pending_mb: int
    guaranteed_mb: int
    maximum_mb: int


class HeadroomUse(Struct, frozen=True):
    """The use of an application and its user at one moment on the default partition, the user's limit, and the headroom
    that the application's next `allocate` would report; in MB of memory. `guaranteed_mb`: of the queue.
    """

    at_ms: int
    application: str
    user: str
    queue: str
    used_mb: int
    user_used_mb: int
    limit_mb: int
    headroom_mb: int
    guaranteed_mb: int


class Timeline(Struct, frozen=True):
    """A run. Everything is in the order of its time; `nodes` {id of a node: its lifeline}."""

    title: str
    from_ms: int
    until_ms: int
    lifelines: tuple[Lifeline, ...]
    messages: tuple[Message, ...] = ()
    changes: tuple[StateChange, ...] = ()
    decisions: tuple[Decision, ...] = ()
    faults: tuple[Fault, ...] = ()
    use: tuple[QueueUse, ...] = ()
    headrooms: tuple[HeadroomUse, ...] = ()
    nodes: dict[str, str] = {}
    notes: tuple[str, ...] = ()
