"""Builds histories of runs for tests."""

from __future__ import annotations

from collections.abc import Callable

from am.programs.gang.core import Member
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.states import FinalApplicationStatus, YarnApplicationState
from yarnling.faults.checks import CheckResult
from yarnling.faults.history import (
    History,
    InjectedFault,
    ObservedChange,
    ProcessRole,
    ProcessSpan,
    ReportedEnd,
    SubmittedApplication,
)
from yarnling.faults.kinds import KINDS
from yarnling.faults.plan import Expectations, WorkProgram
from yarnling.faults.schedule import FaultInjection

APP = ApplicationId(1, 1)
FENCE = Expectations(fence=5.0)


class Story:
    """The history of a run with one application, which succeeds by default. Times are in seconds."""

    def __init__(self, program: WorkProgram = WorkProgram.BATCH, *, tasks: int = 1, **options: bool) -> None:
        self.history = History(started_s=0.0, recovered_s=50.0, drained_s=60.0, ended_s=100.0)
        self.history.submissions.append(SubmittedApplication(APP, program, "ann", tasks, 0.0, 1.0, **options))
        self.ends(60.0)

    def ends(
        self,
        at_s: float,
        state: YarnApplicationState | None = YarnApplicationState.FINISHED,
        status: FinalApplicationStatus = FinalApplicationStatus.SUCCEEDED,
        *,
        right: bool | None = None,
    ) -> Story:
        self.history.outcomes[APP] = ReportedEnd(state, status, 1, "because", right)
        self.history.changes = [change for change in self.history.changes if change.subject != str(APP)]
        self.history.changes += [ObservedChange(2.0, str(APP), "RUNNING", 1)]
        self.history.changes += [ObservedChange(at_s, str(APP), state.name, 1)] if state is not None else []
        return self

    def process(
        self,
        from_s: float,
        to_s: float,
        *,
        role: ProcessRole = ProcessRole.CONTAINER,
        attempt: int = 1,
        number: int = 2,
        node: int = 1,
        status: int | None = 0,
        task: int = 0,
        member: Member | None = None,
    ) -> Story:
        container = ContainerId(ApplicationAttemptId(APP, attempt), number)
        pid = len(self.history.spans) + 1
        self.history.spans.append(ProcessSpan(container, role, pid, node, from_s, to_s, status, task, member))
        return self

    def member(
        self,
        from_s: float,
        to_s: float,
        rank: int,
        try_number: int = 1,
        *,
        of: int = 2,
        attempt: int = 1,
        node: int = 1,
        status: int | None = 0,
    ) -> Story:
        """A member of a gang, which was given `of` hosts. Containers are numbered by try and rank."""
        member = Member(rank, ("127.0.0.2",) * of, try_number)
        number = 10 * try_number + rank
        return self.process(from_s, to_s, attempt=attempt, number=number, node=node, status=status, member=member)

    def am(self, from_s: float, to_s: float, attempt: int = 1, node: int = 1) -> Story:
        return self.process(from_s, to_s, role=ProcessRole.MASTER, attempt=attempt, number=1, node=node)

    def fault(
        self,
        kind: str,
        from_s: float,
        to_s: float | None,
        *nodes: int,
        target: str = "something",
        problem: str = "",
        skipped: bool = False,
    ) -> Story:
        until_ms = None if to_s is None else round(to_s * 1000)
        injection = FaultInjection(len(self.history.injected) + 1, KINDS[kind], round(from_s * 1000), until_ms, nodes)
        self.history.injected.append(InjectedFault(injection, from_s, to_s, target, problem, skipped))
        return self


def found(check: Callable[[History, Expectations], CheckResult], story: Story) -> tuple[str, ...]:
    """The violations that a check finds in the story."""
    return check(story.history, FENCE).violations
