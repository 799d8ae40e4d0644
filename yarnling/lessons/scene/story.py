"""The parts of a story: what happened, text, tables, pictures. Plain data."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import Struct

from yarnling.report.curves import Bars, Curves
from yarnling.simulation.account import Told


class SkippedHeartbeats(Struct, frozen=True, tag="Skipped"):
    """Heartbeats without news that are left out."""

    count: int


class Text(Struct, frozen=True, tag=True):
    """A paragraph."""

    text: str


class Rows(Struct, frozen=True, tag=True):
    """A table."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Part: TypeAlias = Told | SkippedHeartbeats | Text | Rows | Curves | Bars


class Question(Struct, frozen=True):
    """The question at the end of a lesson; `answer` and `why` were computed from the run."""

    text: str
    answer: str
    why: tuple[str, ...]


class Story(Struct, frozen=True):
    """A lesson that was run. `measured`: figures of the run."""

    participants: tuple[str, ...]
    parts: tuple[Part, ...]
    question: Question
    measured: dict[str, int | float | str]


def plain_part(part: Part) -> dict[str, object]:
    """The part as JSON has it."""
    if not isinstance(part, Told):
        plain: dict[str, object] = msgspec.to_builtins(part)
        return plain
    if part.change is not None:
        _, place, kind, subject, event, before, after, _ = msgspec.structs.astuple(part.change)
        change = {"kind": kind, "subject": subject, "event": event, "before": before, "after": after}
        return {"type": "Change", "at_ms": part.at_ms, "place": place, **change}
    if part.is_decision:
        return {"type": "Decision", "at_ms": part.at_ms, "place": part.place, "text": part.text}
    message = {"source": part.place, "target": part.target, "rpc": part.rpc, "text": part.text}
    flags = {"is_reply": part.is_reply, "is_quiet": part.is_quiet}
    return {"type": "Message", "at_ms": part.at_ms, **message, **flags}
