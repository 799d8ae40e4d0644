"""The clients of a simulated run: they submit applications, and those of a plan also kill some.

They call as yarnling.faults.workload does: without an answer, the same submission is sent again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from wire.protocols.client import ApplicationClientProtocol
from wire.retry import RetryPolicy
from wire.rpc import Rpc
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ContainerLaunchContext
from yarn.errors import ServerUnavailable, YarnException
from yarn.ids import ApplicationId
from yarn.protocols.client import GetNewApplicationResponse, KillApplicationRequest, KillApplicationResponse
from yarnling.faults.history import History, SubmittedApplication
from yarnling.faults.plan import WorkPlan
from yarnling.faults.process_target import RETRY_S
from yarnling.faults.workload import KILLED_BY_USER, SIZE
from yarnling.simulation.cluster import SimulatedCluster
from yarnling.simulation.engine import Rank
from yarnling.simulation.network import Done
from yarnling.simulation.process import Process
from yarnling.simulation.workload import RunningWork, am_rule

NUMBER = 1 << 20
"""The client's number among hosts: after all machines."""
RETRY_MS = round(RETRY_S * 1000)
USER = "yarn"
"""The user of a submission for which a plan names none."""

Request = TypeVar("Request")
Reply = TypeVar("Reply")
ContextOf = Callable[[ApplicationId], ApplicationSubmissionContext]
Submitted = Callable[[ApplicationId, YarnException | None], None]
"""Called with the answer to a submission: None, or why it was refused."""


class Submitter(Process):
    """The clients of all users. `unfinished`: submissions that are not answered yet."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster.engine, "client", NUMBER)
        self.unfinished = 0
        self.cluster = cluster
        self.retry = RetryPolicy.read(cluster.conf)
        self.boot()

    def submit_after(self, delay_ms: int, user: str, context_of: ContextOf, done: Submitted) -> None:
        """Submit an application `delay_ms` from now; `context_of` makes its description once it has an id."""
        self.unfinished += 1
        self.after(delay_ms, Rank.CLIENT, partial(self._submit, user, context_of, done))

    def call(self, rpc: Rpc[Request, Reply], request: Request, done: Done[Reply], user: str) -> None:
        """Call the ResourceManager."""
        cluster = self.cluster
        cluster.network.call(
            self,
            "clients",
            cluster.rm.served,
            rpc,
            request,
            done,
            user=user,
            token=cluster.client_token,
            retry=self.retry,
        )

    def _submit(self, user: str, context_of: ContextOf, submitted: Submitted) -> None:
        def done(outcome: GetNewApplicationResponse | YarnException) -> None:
            if isinstance(outcome, GetNewApplicationResponse):
                self._send(context_of(outcome.application_id), user, submitted)
            else:
                self.after(RETRY_MS, Rank.CLIENT, partial(self._submit, user, context_of, submitted))

        self.call(ApplicationClientProtocol.get_new_application, None, done, user)

    def _send(self, context: ApplicationSubmissionContext, user: str, submitted: Submitted) -> None:
        def done(outcome: YarnException | None) -> None:
            if isinstance(outcome, ServerUnavailable):
                self.after(RETRY_MS, Rank.CLIENT, partial(self._send, context, user, submitted))
                return
            self.unfinished -= 1
            submitted(context.application_id, outcome)

        self.call(ApplicationClientProtocol.submit_application, context, done, user)


class SimulatedClient(Submitter):
    """The clients of a plan."""

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        super().__init__(cluster)
        self._history = history
        self._positions: dict[ApplicationId, int] = {}

    def submit_all(self, works: tuple[WorkPlan, ...]) -> None:
        """Submit the applications of all entries, each at its time."""
        for number, work in enumerate(works):
            for index in range(work.applications):
                at_ms = round(1000 * (work.at + index * work.every))
                user = work.users[index % len(work.users)] or USER
                answered = partial(self._answered, work, user)
                self.submit_after(at_ms, user, partial(self._described, number, work, user), answered)

    def _described(
        self, number: int, work: WorkPlan, user: str, application_id: ApplicationId
    ) -> ApplicationSubmissionContext:
        cluster = self.cluster
        cluster.works[application_id] = RunningWork.make(number, work, application_id, cluster.directory)
        submitted = SubmittedApplication(
            application_id,
            work.program,
            user,
            work.tasks,
            self.engine.elapsed_s,
            may_fail=work.may_fail,
            keep_containers=work.keep_containers,
        )
        self._positions[application_id] = len(self._history.submissions)
        self._history.submissions.append(submitted)
        return ApplicationSubmissionContext(
            application_id,
            ContainerLaunchContext((am_rule(work),)),
            SIZE,
            name=f"{work.program.value}-{number}",
            max_app_attempts=work.attempts,
            keep_containers_across_attempts=work.keep_containers,
        )

    def _answered(
        self, work: WorkPlan, user: str, application_id: ApplicationId, refusal: YarnException | None
    ) -> None:
        index = self._positions[application_id]
        submitted = self._history.submissions[index]
        if refusal is not None:
            self._history.submissions[index] = replace(submitted, refusal=refusal.message)
            return
        self._history.submissions[index] = replace(submitted, acknowledged_s=self.engine.elapsed_s)
        if work.killed_after is not None:
            after_ms = round(1000 * work.killed_after)
            self.after(after_ms, Rank.CLIENT, partial(self.kill, application_id, user, KILLED_BY_USER))

    def kill(self, application_id: ApplicationId, user: str, reason: str) -> None:
        """Kill an application; repeat the call until the ResourceManager reports it killed."""

        def done(outcome: KillApplicationResponse | YarnException) -> None:
            if not (isinstance(outcome, KillApplicationResponse) and outcome.is_kill_completed):
                self.after(RETRY_MS, Rank.CLIENT, partial(self.kill, application_id, user, reason))

        self.call(
            ApplicationClientProtocol.force_kill_application, KillApplicationRequest(application_id, reason), done, user
        )
