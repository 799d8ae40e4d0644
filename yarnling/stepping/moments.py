"""The moments of a run that is stepped through, each with the step that leads to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from yarn.machine import StateChanged
from yarnling.run.moments import DECISIONS, MomentFinder, MomentKind
from yarnling.run.names import Names
from yarnling.run.records import Call, Outcome, RecordedFault, StateChange
from yarnling.stepping.recorder import CoreStep, LostCall, Note, Noted
from yarnling.stepping.steps import RUN


class StepMoment(Struct, frozen=True):
    """A moment. `step`: the number of the step that leads to it; `at_ms`: since the start of the run."""

    step: int
    at_ms: int
    kind: MomentKind
    text: str

    @property
    def is_decision(self) -> bool:
        return self.kind in DECISIONS


class StepMoments:
    """Finds the moments among the notes of one run, step by step. `place`: {host: its name}, as in steps."""

    def __init__(self, names: Names, place: Callable[[str], str]) -> None:
        self._finder = MomentFinder(names.within)
        self._place = place

    def of(self, step: int, at_ms: int, noted: Iterable[Noted]) -> Iterator[StepMoment]:
        """The moments of a step."""
        for one in noted:
            match one:
                case CoreStep(decisions=decisions):
                    found = self._finder.found(at_ms, changes=_changes(at_ms, one), decisions=decisions)
                case LostCall(source, link, rpc, error):
                    lost = Call(self._place(source), link, rpc, at_ms, error=error.message, outcome=Outcome.UNANSWERED)
                    found = self._finder.found(at_ms, lost=[lost])
                case Note(text, by):
                    done = [RecordedFault(text, at_ms, at_ms, ())] if by != RUN else []
                    found = self._finder.found(at_ms, done=done)
            for moment in found:
                yield StepMoment(step, at_ms, moment.kind, moment.text)


def _changes(at_ms: int, step: CoreStep) -> list[StateChange]:
    return [
        StateChange(at_ms, step.host, one.kind, one.subject, one.event, one.source, one.target)
        for one in step.effects
        if isinstance(one, StateChanged)
    ]
