"""The records of a run: calls, steps of cores, state changes, decisions of the scheduler, samples and faults.

The record of a step is LoggedStep, in wire.event_log, because the daemons write it. All times are milliseconds on the
clock of the run. The texts come from logs and are not trusted.
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
    """A lifeline of a run. `name`: unique in the run; `title`: its short form."""

    name: str
    role: Role
    title: str


class Call(Struct, omit_defaults=True):
    """A call and its reply. A time that is None did not happen, or is not known.

    `number`: in the order of the calls, 0 if unknown. `request` and `reply`: their fields as plain JSON. `error`: what
    the caller got instead of a reply; with `is_refused` it is the server's answer. `is_sent`: False without a
    connection to `target`. `arrivals`: how often the request arrived. `request_bytes`: its length as protobuf, None if
    unknown. `over_ms`: when the caller had the reply or the error. `took_ms`: the duration as the server measured it.

    The rest is found when the run is whole (RunBuilder). `is_quiet`: a heartbeat without news. `applications`: those
    that its records name.
    """

    source: str
    target: str
    rpc: str
    sent_ms: int
    request: Any = None
    arrived_ms: int | None = None
    replied_ms: int | None = None
    over_ms: int | None = None
    reply: Any = None
    error: str = ""
    is_refused: bool = False
    is_sent: bool = True
    arrivals: int = 0
    request_bytes: int | None = None
    reply_bytes: int = 0
    number: int = 0
    took_ms: float | None = None
    outcome: Outcome = Outcome.UNDER_WAY
    is_quiet: bool = False
    applications: tuple[str, ...] = ()

    def bytes_sent(self) -> int | None:
        """The bytes of both messages; the request's count once it is sent. None if they are not known."""
        if self.request_bytes is None:
            return None
        return (self.request_bytes if self.is_sent else 0) + self.reply_bytes


class StateChange(Struct, frozen=True, omit_defaults=True):
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


class Decision(Struct, frozen=True, omit_defaults=True):
    """A decision of the scheduler.

    `node`: the node that it concerns, "" for none; `queue`: the path of the application's queue.
    """

    at_ms: int
    what: What
    application: str
    node: str = ""
    container: str = ""
    queue: str = ""
    memory_mb: int = 0
    vcores: int = 0
    reason: str = ""


class RecordedFault(Struct, frozen=True, omit_defaults=True):
    """An injected fault, on the lifelines `hosts`. `until_ms`: None if it has no end."""

    kind: str
    from_ms: int
    until_ms: int | None
    hosts: tuple[str, ...]
    target: str = ""


class Sample(Struct, frozen=True, omit_defaults=True):
    """The use of a queue at one moment, or of an application in it if `application` is named, in MB of memory.

    `limit_mb`: the queue's maximum, or the limit of the application's user on the default partition. `guaranteed_mb`:
    of the queue. Only of queues: `reserved_mb`, `pending_mb`. Only of applications: `user_used_mb`, the use of all
    applications of `user` in the queue, and `headroom_mb`, which its next `allocate` would report.
    """

    at_ms: int
    queue: str
    used_mb: int
    limit_mb: int
    guaranteed_mb: int
    reserved_mb: int = 0
    pending_mb: int = 0
    application: str = ""
    user: str = ""
    user_used_mb: int = 0
    headroom_mb: int = 0


class RecordedRun(Struct, frozen=True):
    """A whole run. Everything is in the order of its time; `nodes` {id of a node: its lifeline}."""

    title: str
    from_ms: int
    until_ms: int
    lifelines: tuple[Lifeline, ...]
    calls: tuple[Call, ...] = ()
    changes: tuple[StateChange, ...] = ()
    decisions: tuple[Decision, ...] = ()
    faults: tuple[RecordedFault, ...] = ()
    samples: tuple[Sample, ...] = ()
    nodes: dict[str, str] = {}
    notes: tuple[str, ...] = ()
