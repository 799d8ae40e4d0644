"""The parts of a story: messages, state changes, decisions, text, tables. Plain data, which can be JSON."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct


class Message(Struct, frozen=True, tag=True):
    """`source` calls `rpc` of `target`, or replies to it. `text`: the fields that matter.

    `is_quiet`: a heartbeat, or the reply to one, without news. Times are ms since the start of the run.
    """

    at_ms: int
    source: str
    target: str
    rpc: str
    text: str
    is_reply: bool = False
    is_quiet: bool = False


class Change(Struct, frozen=True, tag=True):
    """An object changed its state in `place` (RM, or an NM). `kind`: RMNode, RMApp, RMAppAttempt, RMContainer."""

    at_ms: int
    place: str
    kind: str
    subject: str
    event: str
    before: str
    after: str


class Decision(Struct, frozen=True, tag=True):
    """A decision of the scheduler, or something that happened to the cluster, with its reason."""

    at_ms: int
    place: str
    text: str


class Skipped(Struct, frozen=True, tag=True):
    """Heartbeats without news that are left out."""

    count: int


class Text(Struct, frozen=True, tag=True):
    """A paragraph."""

    text: str


class Rows(Struct, frozen=True, tag=True):
    """A table."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Step: TypeAlias = Message | Change | Decision | Skipped
Part: TypeAlias = Step | Text | Rows


class Question(Struct, frozen=True):
    """`answer` and `why` were computed from the run."""

    text: str
    answer: str
    why: tuple[str, ...]


class Story(Struct, frozen=True):
    """A lesson that was run. `value`: of the number that the reader may change. `measured`: figures of the run."""

    participants: tuple[str, ...]
    parts: tuple[Part, ...]
    question: Question
    measured: dict[str, int | str]
