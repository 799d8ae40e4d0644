"""A step of a run: one event of the engine in which something could be seen. Plain data, which can be JSON."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

YOU, SCENE, PLAN, RUN = "you", "the scene", "the plan", "the run"
OUTSIDE = frozenset({YOU, SCENE, PLAN, RUN})
"""The places of steps that no core made: who did something to the cluster, or ended the run."""


class LineKind(Enum):
    """The topic of a line of a step, in the order of the lines of one event."""

    NOTE = "note"
    """Other actions on the cluster within the step."""
    LOST = "lost"
    """A call that ended without a reply."""
    PREEMPTED = "preempted"
    PLACED = "placed"
    """A container was allocated, recovered or reserved, or a reservation was given up."""
    REFUSED = "refused"
    RELEASED = "released"
    STATE = "state"
    EFFECT = "effect"
    """Anything else that a core had its process do."""
    REPLY = "reply"
    THEN = "then"
    """A further event that a core handled within the same step."""


CHANGES = frozenset({LineKind.NOTE, LineKind.STATE, LineKind.PLACED, LineKind.PREEMPTED, LineKind.RELEASED})
"""The kinds of lines after which the cluster is in another state than before."""


class StepLine(Struct, frozen=True):
    """A thing that happened in a step."""

    kind: LineKind
    text: str


class Step(Struct, frozen=True):
    """A step as it is shown.

    `number`: from 1. `at_ms`: since the start of the run. `place`: whose core took it: `RM`, `NM n1`, `AM ann`.
    `fields`: those of the event that are not empty, one on each line. `node`: whose heartbeat the ResourceManager
    handled, "" in other steps.
    """

    number: int
    at_ms: int
    place: str
    title: str
    fields: str = ""
    lines: tuple[StepLine, ...] = ()
    node: str = ""

    @property
    def is_change(self) -> bool:
        """True if a state changed, a container was placed or ended, or somebody did something to the cluster."""
        return self.place in OUTSIDE or any(line.kind in CHANGES for line in self.lines)
