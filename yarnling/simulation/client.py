"""The client of a simulated run: submits the work of a plan, and kills at the end what never ends by itself.

It calls as yarnling.chaos.workload does: without an answer, the same submission is sent again.
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from wire.protocols.client import ApplicationClientProtocol
from wire.retry import RetryPolicy
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ContainerLaunchContext
from yarn.errors import ServerUnavailable, YarnException
from yarn.ids import ApplicationId
from yarn.protocols.client import GetNewApplicationResponse, KillApplicationRequest, KillApplicationResponse
from yarnling.chaos.history import History, SubmittedApplication
from yarnling.chaos.plan import WorkPlan
from yarnling.chaos.target import RETRY_S
from yarnling.chaos.workload import SIZE
from yarnling.simulation.cluster import SimulatedCluster
from yarnling.simulation.engine import Rank
from yarnling.simulation.process import Process
from yarnling.simulation.workload import AM_RULE, RunningWork

NUMBER = 1 << 20
"""The client's number among hosts: after all machines."""
RETRY_MS = round(RETRY_S * 1000)
USER = "yarn"
"""Who submits what a plan names no user for."""


class Client(Process):
    """The clients of all users. `unfinished`: submissions that are not answered yet."""

    def __init__(self, cluster: SimulatedCluster, history: History) -> None:
        super().__init__(cluster.engine, "client", NUMBER)
        self.unfinished = 0
        self._cluster = cluster
        self._history = history
        self._retry = RetryPolicy.read(cluster.conf)
        self.boot()

    def submit_all(self, works: tuple[WorkPlan, ...]) -> None:
        """Submit the applications of all entries, each at its time."""
        for number, work in enumerate(works):
            for index in range(work.applications):
                self.unfinished += 1
                at_ms = round(1000 * (work.at + index * work.every))
                user = work.users[index % len(work.users)] or USER
                self.after(at_ms, Rank.CLIENT, partial(self._submit, number, work, user, self.engine.now_ms + at_ms))

    def _submit(self, number: int, work: WorkPlan, user: str, started_ms: int) -> None:
        def done(outcome: GetNewApplicationResponse | YarnException) -> None:
            if isinstance(outcome, GetNewApplicationResponse):
                self._submit_as(outcome.application_id, number, work, user)
            else:
                self.after(RETRY_MS, Rank.CLIENT, partial(self._submit, number, work, user, started_ms))

        self._cluster.network.call(
            self,
            "clients",
            self._cluster.rm.served,
            ApplicationClientProtocol.get_new_application,
            None,
            done,
            user=user,
            token=self._cluster.client_token,
            retry=self._retry,
        )

    def _submit_as(self, application_id: ApplicationId, number: int, work: WorkPlan, user: str) -> None:
        cluster = self._cluster
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
        self._history.submissions.append(submitted)
        context = ApplicationSubmissionContext(
            application_id,
            ContainerLaunchContext((AM_RULE,)),
            SIZE,
            name=f"{work.program.value}-{number}",
            max_app_attempts=work.attempts,
            keep_containers_across_attempts=work.keep_containers,
        )
        self._send(len(self._history.submissions) - 1, context, user)

    def _send(self, index: int, context: ApplicationSubmissionContext, user: str) -> None:
        def done(outcome: YarnException | None) -> None:
            submitted = self._history.submissions[index]
            if isinstance(outcome, ServerUnavailable):
                self.after(RETRY_MS, Rank.CLIENT, partial(self._send, index, context, user))
                return
            self.unfinished -= 1
            if isinstance(outcome, YarnException):
                self._history.submissions[index] = replace(submitted, refusal=outcome.message)
            else:
                self._history.submissions[index] = replace(submitted, acknowledged_s=self.engine.elapsed_s)

        self._cluster.network.call(
            self,
            "clients",
            self._cluster.rm.served,
            ApplicationClientProtocol.submit_application,
            context,
            done,
            user=user,
            token=self._cluster.client_token,
            retry=self._retry,
        )

    def kill(self, application_id: ApplicationId, user: str) -> None:
        """Kill an application; repeated until it is killed."""

        def done(outcome: KillApplicationResponse | YarnException) -> None:
            if not (isinstance(outcome, KillApplicationResponse) and outcome.is_kill_completed):
                self.after(RETRY_MS, Rank.CLIENT, partial(self.kill, application_id, user))

        self._cluster.network.call(
            self,
            "clients",
            self._cluster.rm.served,
            ApplicationClientProtocol.force_kill_application,
            KillApplicationRequest(application_id, "Killed at the end of the chaos run."),
            done,
            user=user,
            token=self._cluster.client_token,
            retry=self._retry,
        )
