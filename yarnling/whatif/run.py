"""Runs a workload in virtual time under a configuration: "what would happen?"

    result = run_what_if(conf, workload, nodes, until_ms=24 * 3_600_000)

The cores of the ResourceManager, the NodeManagers and the AMs' clients are the product's (yarnling.simulation). No
invariant is checked and no message becomes bytes: this is the fast way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from rm.view import RMView
from wire.garbage_collection import seldom_collected
from yarn.applications import ApplicationSubmissionContext
from yarn.configuration import Configuration
from yarn.containers import ContainerLaunchContext
from yarn.errors import InternalError, YarnException
from yarn.ids import ApplicationId, ContainerId
from yarn.resource import Resource
from yarn.settings import logs, resourcemanager
from yarn.settings.release import RELEASE
from yarn.settings.report import shown_value
from yarn.settings.yarnling import CHECK_INVARIANTS
from yarnling.cluster.configuration import ClusterConfiguration, compose
from yarnling.cluster.silent_logs import without_logs
from yarnling.run.trace import Line, Trace
from yarnling.simulation.client import Submitter
from yarnling.simulation.cluster import SimulatedCluster
from yarnling.simulation.engine import Engine
from yarnling.simulation.node_events import joining_later
from yarnling.simulation.scaled_nodes import change_nodes
from yarnling.simulation.workload import AM_RULE
from yarnling.simulation.workload_cluster import WorkloadCluster
from yarnling.whatif.checks import assumed_of_nodes, assumed_of_starts, refuse_if_unfit, warnings_about
from yarnling.whatif.judged import JUDGED
from yarnling.whatif.recording import RecordedApplication, Recording
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.sampling import Sampler
from yarnling.workload.model import UNCHANGED, NodeSchedule, Workload, WorkloadApplication, WorkloadNode

DAY_MS = 24 * 3_600_000
START_MAX_MS = 600_000
"""The time in which the nodes must register before the workload starts."""
SIMULATED_SETTINGS = {
    resourcemanager.RECOVERY_ENABLED.key: "false",
    logs.AGGREGATION_ENABLED.key: "false",
}
"""Settings of all simulations: nothing restarts, and containers write no logs."""


class HowFar(Struct, frozen=True):
    """The progress of a run: `now_ms` of `until_ms`, since the start, and so many `completed` of all `containers`."""

    now_ms: int
    until_ms: int
    completed: int
    containers: int

    @property
    def fraction(self) -> float:
        """The part that is done, 0..1: of the containers, or of the time if that is over sooner."""
        return max(self.now_ms / self.until_ms, self.completed / self.containers if self.containers else 0.0)


Progress = Callable[[HowFar], bool]
"""Called once a virtual minute, more often at first; False ends the simulation."""


class InputNames(Struct, frozen=True):
    """The names of its inputs in the result."""

    title: str = "what if"
    configuration: str = ""
    workload: str = ""


class RunOptions(Struct, frozen=True):
    """Options of a run.

    `until_ms`: the simulation ends then, or when all applications have ended. `hashed`: compute the trace's hash.
    `line`: gets the text of each step of the trace; then there is a hash, too. `played`: without a trace, nodes and AMs
    are played: the ResourceManager gets the same, and the rest takes less time. `observe`, if there is a hash, gets the
    cluster and its trace before the run, in which no heartbeat is left out. `began` gets the cluster when its nodes
    have registered, before the workload starts.
    """

    seed: int = 1
    until_ms: int = DAY_MS
    hashed: bool = False
    names: InputNames = InputNames()
    warnings: tuple[str, ...] = ()
    line: Line | None = None
    played: bool = True
    observe: Callable[[SimulatedCluster, Trace], None] | None = None
    began: Callable[[SimulatedCluster], None] | None = None


DEFAULTS = RunOptions()


def what_if_configuration(conf_dir: Path | None, settings: Mapping[str, str]) -> ClusterConfiguration:
    """The configuration of a simulation. Raises ConfigurationException with all its faults."""
    return compose(conf_dir, {**SIMULATED_SETTINGS, **settings}).accepted()


def run_what_if(
    conf: Configuration,
    workload: Workload,
    nodes: Sequence[WorkloadNode],
    options: RunOptions = DEFAULTS,
    progress: Progress = lambda _: True,
    *,
    schedule: NodeSchedule = UNCHANGED,
) -> WhatIfResult:
    """Run the workload, with the nodes' changes. Their times are since the start of the workload.

    Raises YarnException, with all faults, for a workload that does not fit the configuration, and for events that do
    not fit the nodes.
    """
    refuse_if_unfit(conf, workload, nodes, schedule=schedule)
    started_s = time.perf_counter()
    with without_logs(), seldom_collected():
        running = _Running(conf, workload, nodes, options, schedule)
        is_complete = running.go(progress)
    warnings = (*warnings_about(conf, workload, nodes), *options.warnings)
    return running.result(warnings, wall_s=round(time.perf_counter() - started_s, 3), is_complete=is_complete)


def may_be_played(conf: Configuration) -> bool:
    """False if the ResourceManager stores its state, or invariants are checked: then all steps are taken."""
    return not resourcemanager.RECOVERY_ENABLED.of(conf) and not CHECK_INVARIANTS.of(conf)


class _Running:
    """A run in progress. The cluster has started, and all nodes have registered, before the workload starts."""

    def __init__(
        self,
        conf: Configuration,
        workload: Workload,
        nodes: Sequence[WorkloadNode],
        options: RunOptions,
        schedule: NodeSchedule,
    ) -> None:
        self._conf = conf
        self._workload = workload
        self._nodes = nodes
        self._options = options
        self._engine = Engine(options.seed)
        self._trace = Trace(options.line) if options.hashed or options.line is not None else None
        is_observed = options.observe is not None
        played = options.played and self._trace is None and may_be_played(conf)
        self._cluster = WorkloadCluster(
            self._engine, conf, nodes, trace=self._trace, all_heartbeats=is_observed, played=played
        )
        if options.observe is not None and self._trace is not None:
            options.observe(self._cluster, self._trace)
        self._schedule = schedule
        self._cluster.joining_later = joining_later(schedule)
        self._start()
        changes = change_nodes(self._cluster, schedule, nodes, self._view)
        self._recording = Recording(self._engine, nodes, changes)
        if options.began is not None:
            options.began(self._cluster)
        self._recording.scheduled = self._scheduled_ms
        labels = tuple(dict.fromkeys(("", *(node.label for node in nodes))))
        self._sampler = Sampler(self._view(), self._recording, labels, options.until_ms)
        self._submitter = Submitter(self._cluster)
        for work in workload.applications:
            self._plan(RecordedApplication(self._recording, work, self._view))

    def go(self, progress: Progress) -> bool:
        """Run to the end; returns False if `progress` stopped the run early."""
        until_ms, began_ms = self._options.until_ms, self._recording.began_ms
        containers = sum(1 + application.containers for application in self._workload.applications)
        while (now_ms := self._recording.now_ms) < until_ms and not self._is_over():
            self._engine.run(began_ms + min(now_ms + self._sampler.interval_ms, until_ms))
            self._sampler.sample()
            if self._cluster.crashed:
                raise InternalError("; ".join(self._cluster.crashed))
            if not progress(HowFar(self._recording.now_ms, until_ms, self._recording.completed, containers)):
                return self._is_over()
        return True

    def result(self, warnings: tuple[str, ...], *, wall_s: float, is_complete: bool) -> WhatIfResult:
        names, recording, sampler = self._options.names, self._recording, self._sampler
        return WhatIfResult(
            names.title,
            names.configuration,
            names.workload,
            self._options.seed,
            recording.now_ms,
            sum((node.resource for node in self._nodes), Resource(0, 0)),
            len(self._nodes),
            sampler.leaf_queues(),
            tuple(application.outcome() for application in recording.applications),
            recording.containers,
            tuple(sampler.samples),
            sampler.longest_waits(),
            (
                *self._workload.assumptions,
                *assumed_of_starts(self._workload),
                *assumed_of_nodes(self._nodes, self._schedule),
                JUDGED,
            ),
            warnings,
            self._engine.events,
            wall_s,
            sampler.interval_ms,
            is_complete,
            self._trace.hexdigest() if self._trace is not None else "",
            self._view().counted_types(),
            {key: shown_value(key, value) for key, value in self._conf.values().items()},
            sampler.waiting_time.reasons(),
            recording.node_counts(),
            self._workload.calibration,
            self._workload.evidence,
            release=RELEASE.of(self._conf).version,
        )

    def _start(self) -> None:
        """Start the cluster and wait until all nodes have registered."""
        self._cluster.start()
        until_ms = self._engine.now_ms + START_MAX_MS
        expected = len(self._nodes) - len(self._cluster.joining_later)
        while len(self._view().node_ids()) < expected:
            if self._engine.now_ms >= until_ms:
                registered = len(self._view().node_ids())
                raise YarnException(
                    f"only {registered} of {expected} nodes registered within {START_MAX_MS // 60_000} minutes"
                    " (the ResourceManager refuses nodes below yarn.scheduler.minimum-allocation-mb and -vcores)"
                )
            self._engine.run(self._engine.now_ms + 1000)

    def _view(self) -> RMView:
        return RMView(self._cluster.rm.core)

    def _scheduled_ms(self, container_id: ContainerId) -> int | None:
        """The time since the start at which the scheduler placed a container; None if it has already ended."""
        container = self._view().container(container_id)
        return None if container is None else container.started_ms - self._recording.began_ms

    def _is_over(self) -> bool:
        """True once all applications have been submitted and have ended."""
        is_all_submitted = not self._submitter.unfinished
        return is_all_submitted and not self._recording.unended

    def _plan(self, application: RecordedApplication) -> None:
        work = application.work

        def described(application_id: ApplicationId) -> ApplicationSubmissionContext:
            self._cluster.applications[application_id] = application
            application.submitted(application_id)
            return submission_context(application_id, work)

        self._submitter.submit_after(work.submit_ms, work.user, described, partial(_answered, application))


def _answered(application: RecordedApplication, application_id: ApplicationId, refusal: YarnException | None) -> None:
    application.answered(refusal)


def submission_context(application_id: ApplicationId, work: WorkloadApplication) -> ApplicationSubmissionContext:
    """The submission of an application of a workload."""
    return ApplicationSubmissionContext(
        application_id,
        ContainerLaunchContext((AM_RULE,)),
        work.am_resource,
        name=work.name,
        queue=work.queue,
        type=work.kind,
        priority=work.priority,
        node_label_expression=work.label or None,
    )
