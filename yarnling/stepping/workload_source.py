"""A workload that can be stepped through: the applications of `yarnling simulate --workload`, on a small cluster.

All heartbeats happen here; a what-if leaves out those that change nothing, and decides the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from rm.view import RMView
from yarn.applications import ApplicationSubmissionContext
from yarn.configuration import Configuration
from yarn.errors import InvalidArgumentException, YarnException
from yarn.ids import ApplicationId
from yarn.settings.release import RELEASE
from yarnling.cluster.configuration import definitions
from yarnling.run.names import Names
from yarnling.run.trace import Trace
from yarnling.simulation.account import Account
from yarnling.simulation.client import Submitter
from yarnling.simulation.engine import Engine
from yarnling.simulation.node_events import joining_later
from yarnling.simulation.scaled_nodes import change_nodes
from yarnling.simulation.workload_cluster import WorkloadCluster
from yarnling.stepping.run import SteppedRun, SteppedSubmission
from yarnling.stepping.session import NODES_MAX
from yarnling.stepping.sources import Source
from yarnling.whatif.checks import refuse_if_unfit
from yarnling.whatif.recording import RecordedApplication, Recording
from yarnling.whatif.run import DAY_MS, START_MAX_MS, submission_context, what_if_configuration
from yarnling.workload.formats import read_node_list, read_workload
from yarnling.workload.model import (
    UNCHANGED,
    NodeSchedule,
    TaskGroup,
    Workload,
    WorkloadApplication,
    WorkloadNode,
)

LOOK_MS = 1000
"""The interval at which the run looks whether everything has ended."""


class WorkloadSource(Source):
    """A workload under a configuration."""

    def __init__(
        self,
        workload: Workload,
        nodes: Sequence[WorkloadNode],
        conf: Configuration,
        seed: int,
        *,
        schedule: NodeSchedule = UNCHANGED,
        title: str = "a workload",
        arguments: tuple[str, ...] = (),
    ) -> None:
        """Raises YarnException, with all faults, for a workload that does not fit the configuration."""
        if len(nodes) > NODES_MAX:
            raise InvalidArgumentException(
                f"a cluster of {len(nodes)} nodes is too large to be stepped through: use at most {NODES_MAX}"
            )
        refuse_if_unfit(conf, workload, nodes, schedule=schedule)
        self._workload, self._nodes, self._conf, self._seed = workload, nodes, conf, seed
        self._schedule = schedule
        self.title = title
        self.arguments = arguments

    def start(self, *, checked: bool = True) -> SteppedRun:
        trace = Trace(hashed=False)
        cluster = WorkloadCluster(Engine(self._seed), self._conf, self._nodes, trace=trace, all_heartbeats=True)
        return _WorkloadRun(cluster, self._workload, self._nodes, self._schedule, trace)


class _WorkloadRun(SteppedRun):
    def __init__(
        self,
        cluster: WorkloadCluster,
        workload: Workload,
        nodes: Sequence[WorkloadNode],
        schedule: NodeSchedule,
        trace: Trace,
    ) -> None:
        super().__init__(cluster, trace, Account(cluster, trace, Names()))
        self._cluster = cluster
        self._workload = workload
        self._nodes = nodes
        self._schedule = schedule
        cluster.joining_later = joining_later(schedule)
        self._submitter = Submitter(cluster)
        self._recording: Recording | None = None

    def limits(self) -> Iterator[int]:
        """Run the cluster until all nodes have registered, then the workload to its end; see SteppedRun.limits."""
        engine = self._cluster.engine
        yield from self._cluster.starting()
        latest_ms = engine.now_ms + START_MAX_MS
        expected = len(self._nodes) - len(self._cluster.joining_later)
        while len(self._view().node_ids()) < expected and engine.now_ms < latest_ms:
            yield engine.now_ms + LOOK_MS
        changes = change_nodes(self._cluster, self._schedule, self._nodes, self._view)
        self._recording = recording = Recording(engine, self._nodes, changes)
        for work in self._workload.applications:
            self._plan(recording, work, work.submit_ms)
        while recording.now_ms < DAY_MS and (self._submitter.unfinished or recording.unended):
            yield engine.now_ms + LOOK_MS

    def submit(self, submission: SteppedSubmission) -> None:
        if self._recording is None:
            raise InvalidArgumentException("the cluster is still starting: wait until all nodes have registered")
        lasts_ms = DAY_MS if submission.seconds is None else 1000 * submission.seconds
        tasks = TaskGroup(submission.size, (lasts_ms,) * submission.containers)
        now_ms = self._recording.now_ms
        work = WorkloadApplication(submission.name, now_ms, submission.user, submission.queue, (tasks,))
        self._plan(self._recording, work, 0)

    def _plan(self, recording: Recording, work: WorkloadApplication, delay_ms: int) -> None:
        application = RecordedApplication(recording, work, self._view)

        def described(application_id: ApplicationId) -> ApplicationSubmissionContext:
            self._cluster.applications[application_id] = application
            application.submitted(application_id)
            return submission_context(application_id, work)

        self._submitter.submit_after(delay_ms, work.user, described, partial(_answered, application))

    def _view(self) -> RMView:
        return RMView(self._cluster.rm.core)


def _answered(application: RecordedApplication, _: ApplicationId, refusal: YarnException | None) -> None:
    application.answered(refusal)


def read_workload_source(
    workload: Path,
    nodes: Path,
    conf: Path | None,
    define: Sequence[str],
    seed: int | None,
    release: str | None = None,
) -> WorkloadSource:
    """The workload in these files, by the rules of this release of Hadoop. Raises YarnException with the faults of a
    file.
    """
    seed = 1 if seed is None else seed
    arguments = ["--workload", str(workload), "--nodes", str(nodes)]
    arguments += [] if conf is None else ["--conf", str(conf)]
    for definition in define:
        arguments += ["--define", definition]
    settings = definitions(define)
    if release is not None:
        arguments += ["--release", release]
        settings[RELEASE.key] = release
    listed = read_node_list(nodes)
    return WorkloadSource(
        read_workload(workload),
        listed.nodes,
        what_if_configuration(conf, settings).conf,
        seed,
        schedule=listed.schedule,
        title=f"workload {workload.name}, seed {seed}",
        arguments=(*arguments, "--seed", str(seed)),
    )
