"""Histories that tests tell: what a run could have been."""

from __future__ import annotations

from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId
from yarn.states import FinalApplicationStatus, YarnApplicationState
from yarnling.chaos.history import Change, History, Injected, Life, Outcome, Role, Submission
from yarnling.chaos.plan import KINDS, Program
from yarnling.chaos.schedule import Blow

APP = ApplicationId(1, 1)


class Story:
    """A run of one application, which succeeded unless something else is told. Times are in seconds."""

    def __init__(self, program: Program = Program.BATCH, *, tasks: int = 1, **told: bool) -> None:
        self.history = History(begun_s=0.0, healed_s=50.0, drained_s=60.0, ended_s=100.0)
        self.history.submissions.append(Submission(APP, program, "ann", tasks, 0.0, 1.0, **told))
        self.ends(60.0)

    def ends(
        self,
        at_s: float,
        state: YarnApplicationState | None = YarnApplicationState.FINISHED,
        status: FinalApplicationStatus = FinalApplicationStatus.SUCCEEDED,
        *,
        right: bool | None = None,
    ) -> Story:
        self.history.outcomes[APP] = Outcome(state, status, 1, "because", right)
        self.history.changes = [change for change in self.history.changes if change.subject != str(APP)]
        self.history.changes += [Change(2.0, str(APP), "RUNNING", 1)]
        self.history.changes += [Change(at_s, str(APP), state.name, 1)] if state is not None else []
        return self

    def lives(
        self,
        from_s: float,
        to_s: float,
        *,
        role: Role = Role.CONTAINER,
        attempt: int = 1,
        number: int = 2,
        node: int = 1,
        status: int | None = 0,
        task: int = 0,
    ) -> Story:
        container = ContainerId(ApplicationAttemptId(APP, attempt), number)
        pid = len(self.history.lives) + 1
        self.history.lives.append(Life(container, role, pid, node, from_s, to_s, status, task))
        return self

    def master(self, from_s: float, to_s: float, attempt: int = 1, node: int = 1) -> Story:
        return self.lives(from_s, to_s, role=Role.MASTER, attempt=attempt, number=1, node=node)

    def struck(
        self,
        kind: str,
        from_s: float,
        to_s: float | None,
        *nodes: int,
        whom: str = "somebody",
        problem: str = "",
        skipped: bool = False,
    ) -> Story:
        until_ms = None if to_s is None else round(to_s * 1000)
        blow = Blow(len(self.history.injected) + 1, KINDS[kind], round(from_s * 1000), until_ms, nodes)
        self.history.injected.append(Injected(blow, from_s, to_s, whom, problem, skipped))
        return self
