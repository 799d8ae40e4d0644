"""A simulated run of a chaos plan: the phases of yarnling.faults.phases, in virtual time, and the same verdict.

While faults are injected only safety is checked: invariants after every step, and the history. Then everything is
undone, and the cluster must recover and drain: all nodes run, all applications end, everything is released.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct
from msgspec.structs import replace

from nm.core.emulation import EmulationTable, Rule
from rm.core.reports.applications import application_state, final_status
from rm.core.rm_node import RMNode
from wire.garbage_collection import seldom_collected
from yarn.ids import ApplicationId
from yarn.resource import Resource
from yarn.settings import scaled
from yarn.settings.pace import FAST_TIME_FACTOR
from yarn.settings.yarnling import CHECK_INVARIANTS
from yarn.states import FINAL_APPLICATION_STATES, NodeState
from yarnling.cluster.configuration import composed, node_sizes
from yarnling.faults.history import History, InjectedFault, ProcessRole, ReportedEnd
from yarnling.faults.notes import FRESH_S
from yarnling.faults.phases import POLL_S
from yarnling.faults.plan import Plan, WorkProgram
from yarnling.faults.runner import SETTINGS
from yarnling.faults.schedule import FaultInjection, schedule
from yarnling.faults.target import POLL_S as TARGET_POLL_S
from yarnling.faults.target import WAIT_S, NoTarget
from yarnling.faults.verdict import Judgement, judge
from yarnling.faults.workload import KILLED_AT_THE_END
from yarnling.run.trace import Line, Trace
from yarnling.simulation import cross_checks, workload
from yarnling.simulation.client import SimulatedClient
from yarnling.simulation.cluster import ClusterShape, InvariantBroken, SimulatedCluster
from yarnling.simulation.conditions import USUAL, Conditions
from yarnling.simulation.engine import Engine, Rank
from yarnling.simulation.faults import ACTIONS
from yarnling.simulation.machine import running_containers
from yarnling.simulation.target import SimulatedTarget, at_once

START_WAIT_S = 60.0
"""The time the cluster may take to start."""


class Options(Struct, frozen=True):
    """Options of a simulated run.

    `encode`: messages become bytes on their way. `traced`: hash every step; `line` gets the text of each.
    `observe` gets the cluster and its trace before the run.
    `rules`: what containers do that the plan does not have, but somebody may submit.
    `checked`: False checks no invariants, for a run that is only repeated.
    """

    encode: bool = True
    traced: bool = False
    line: Line | None = None
    conditions: Conditions = USUAL
    observe: Callable[[SimulatedCluster, Trace], None] | None = None
    rules: tuple[Rule, ...] = ()
    checked: bool = True


DEFAULTS = Options()


class SimulatedRun(Struct, frozen=True):
    """The result of one run. `trace`: the hash of all steps, "" if they were not traced."""

    plan: Plan
    seed: int
    injections: tuple[FaultInjection, ...]
    history: History
    judgement: Judgement
    trace: str
    events: int
    virtual_s: float


def simulate(plan: Plan, seed: int, options: Options = DEFAULTS) -> SimulatedRun:
    """Run a plan once. Raises YarnException if its settings are not valid."""
    with TemporaryDirectory(prefix="yarnling-simulation-") as directory, seldom_collected():
        return _simulate(plan, seed, options, Path(directory))


def _simulate(plan: Plan, seed: int, options: Options, directory: Path) -> SimulatedRun:
    trace = Trace(options.line) if options.traced else None
    running = PlanRun(plan, seed, options, trace, directory)
    if options.observe is not None and trace is not None:
        options.observe(running.cluster, trace)
    history = running.history
    try:
        running.go()
    except TimeOver as over:
        history.problem = str(over)
    except InvariantBroken as broken:
        history.crashed.append(f"an invariant is broken: {broken}")
        history.problem = "the run was aborted"
    except Exception as bug:
        history.crashed.append(f"{type(bug).__name__} after {running.engine.elapsed_s:.3f} s: {bug}")
        history.problem = "the run was aborted"
    history.ended_s = running.engine.elapsed_s
    running.cluster.recorder.close_spans()
    return SimulatedRun(
        plan,
        seed,
        running.injections,
        history,
        judge(plan, history),
        trace.hexdigest() if trace is not None else "",
        running.engine.events,
        running.engine.elapsed_s,
    )


class TimeOver(Exception):
    """A phase has lasted too long."""


class PlanRun:
    """A run in progress. `go` drives its engine; `phases` leaves that to the caller."""

    def __init__(self, plan: Plan, seed: int, options: Options, trace: Trace | None, directory: Path) -> None:
        self.plan = plan
        self.injections = schedule(plan, seed)
        self.history = History()
        self.engine = Engine(seed)
        settings = {**SETTINGS, **plan.cluster.settings}
        if not options.checked:
            settings[CHECK_INVARIANTS.key] = "false"
        conf = scaled(
            composed(None, settings, node_sizes(plan.cluster.memory_mb, plan.cluster.vcores)), FAST_TIME_FACTOR
        )
        planned: EmulationTable = workload.emulation_table(plan.work, seed)
        table = replace(planned, rules=(*planned.rules, *options.rules))
        shape = ClusterShape(
            plan.cluster.nodes,
            plan.cluster.racks,
            Resource(plan.cluster.memory_mb, plan.cluster.vcores),
        )
        self.cluster = SimulatedCluster(
            self.engine,
            conf,
            shape.machines(),
            table,
            self.history,
            directory=directory,
            same_ports=plan.cluster.same_ports,
            conditions=options.conditions,
            encode=options.encode,
            trace=trace,
        )
        if CHECK_INVARIANTS.of(conf):
            self.cluster.rm.after_step = self._compare_hosts
        self.client = SimulatedClient(self.cluster, self.history)
        self._target = SimulatedTarget(self.cluster)
        self._faults_over = 0

    def go(self) -> None:
        """Run all phases of the plan. Raises what a core raises."""
        for until_ms in self.phases():
            self.engine.run(until_ms)

    def phases(self) -> Iterator[int]:
        """Carry out the phases of the plan; yields the times up to which the caller must run the engine."""
        self.cluster.start()
        if not (yield from self._until(lambda: self._missing_nodes() == [], START_WAIT_S)):
            raise TimeOver(f"the cluster did not start within {START_WAIT_S:g} s: {'; '.join(self._missing_nodes())}")
        yield from self._inject_faults()
        yield from self._recover()
        yield from self._drain()

    def _compare_hosts(self) -> None:
        for check in cross_checks.OF_EACH_STEP:
            for violation in check(self.cluster):
                raise InvariantBroken(violation)

    def _inject_faults(self) -> Iterator[int]:
        """Submit the work and inject the faults; returns when all faults are over and all submissions answered."""
        history, most_s = self.history, self.plan.lasts + self.plan.expect.heal
        history.started_s = began_s = self.engine.elapsed_s
        self.client.submit_all(self.plan.work)
        if self.plan.awaits_work:
            running = partial(self.cluster.recorder.running, ProcessRole.CONTAINER, ProcessRole.TASK)
            yield from self._until(lambda: bool(running()), most_s)
            history.started_s = self.engine.elapsed_s
        for injection in self.injections:
            at_ms = self.engine.now_ms + injection.at_ms
            self.engine.at(at_ms, Rank.FAULT, injection.number, partial(self._begin, injection))
        left_s = most_s - (self.engine.elapsed_s - began_s)

        def is_over() -> bool:
            return self._faults_over == len(self.injections) and not self.client.unfinished

        if not (yield from self._until(is_over, left_s)):
            history.not_recovered.append(f"a fault or a submission is still not over after {most_s:g} s")

    def _begin(self, injection: FaultInjection) -> None:
        index = len(self.history.injected)
        self.history.injected.append(InjectedFault(injection, self.engine.elapsed_s))
        self._try(injection, index, self.engine.elapsed_s + (0.0 if injection.optional else WAIT_S))

    def _try(self, injection: FaultInjection, index: int, deadline_s: float) -> None:
        """Inject the fault; without a target wait for one, unless it is optional."""
        fault, now_s = AsyncExitStack(), self.engine.elapsed_s
        try:
            action = ACTIONS[injection.kind.name](self._target, injection)
            target = at_once(fault.enter_async_context(action))
        except NoTarget as missing:
            if now_s < deadline_s:
                again_ms = self.engine.now_ms + round(TARGET_POLL_S * 1000)
                again = partial(self._try, injection, index, deadline_s)
                self.engine.at(again_ms, Rank.FAULT, injection.number, again)
                return
            problem = "" if injection.optional else missing.message
            self.history.injected[index] = InjectedFault(
                injection, now_s, now_s, problem=problem, skipped=injection.optional
            )
            self._faults_over += 1
            return
        self.history.injected[index] = InjectedFault(injection, now_s, target=target)
        if injection.until_ms is None:
            at_once(fault.aclose())
            self._faults_over += 1
            return
        ends_ms = self.engine.now_ms + injection.until_ms - injection.at_ms
        self.engine.at(ends_ms, Rank.FAULT, injection.number, partial(self._end, fault, index))

    def _end(self, fault: AsyncExitStack, index: int) -> None:
        at_once(fault.aclose())
        injected = self.history.injected
        injected[index] = replace(injected[index], recovered_s=self.engine.elapsed_s)
        self._faults_over += 1

    def _recover(self) -> Iterator[int]:
        """Undo what is left of the faults, and wait until all daemons run."""
        cluster, most_s = self.cluster, self.plan.expect.heal
        cluster.network.recover()
        cluster.resume_rm()
        for machine in cluster.machines:
            machine.nm.resume()
        cluster.start_rm()
        if cluster.leaving:
            cluster.leaving.clear()
            cluster.refresh_leaving(0)

        def all_run() -> bool:
            if missing := self._missing_nodes():
                for machine in cluster.machines:
                    if not machine.nm.is_up:
                        cluster.start_node(machine.number)
            return not missing

        if not (yield from self._until(all_run, most_s)):
            self.history.not_recovered += [f"not within {most_s:g} s", *self._missing_nodes()]
        self.history.recovered_s = self.engine.elapsed_s

    def _drain(self) -> Iterator[int]:
        """Kill the services once the last fencing window is over; wait for all applications to end."""
        history, most_s = self.history, self.plan.expect.drain
        hiding = [one for one in history.injected if one.injection.kind.hides_node and not one.skipped]
        last_s = max((one.recovered_s for one in hiding if one.recovered_s is not None), default=0.0)
        yield self._after(max(0.0, last_s + self.plan.expect.fence + FRESH_S - self.engine.elapsed_s))
        for one in history.submissions:
            if one.acknowledged_s is not None and one.program is WorkProgram.SERVICE:
                self.client.kill(one.application_id, one.user, KILLED_AT_THE_END)
        if (yield from self._until(lambda: self._all_ended() and not self._still_used(), most_s)):
            history.drained_s = self.engine.elapsed_s
        else:
            history.not_drained += [*self._still_used(), f"not within {most_s:g} s"]
        for one in history.submissions:
            app = self.cluster.rm.core.context.apps.get(one.application_id)
            attempt = app.current_attempt if app is not None else None
            history.outcomes[one.application_id] = (
                ReportedEnd(None)
                if app is None
                else ReportedEnd(
                    application_state(app),
                    final_status(app),
                    attempt.attempt_id.attempt if attempt is not None else 0,
                    str(app.diagnostics),
                    self._is_right(one.application_id),
                )
            )

    def _is_right(self, application_id: ApplicationId) -> bool | None:
        """True if the output of a word count is correct; None for other applications."""
        job = self.cluster.works[application_id].job
        return None if job is None else job.is_right()

    def _missing_nodes(self) -> list[str]:
        """A line for each node that is not RUNNING, or one for a ResourceManager that does not answer.

        A NodeManager that was ordered to stop does not count, although the ResourceManager may not know of it yet.
        """
        rm = self.cluster.rm
        if not rm.is_up or rm.is_paused:
            return ["the ResourceManager does not answer"]
        nodes: dict[str, RMNode] = {str(node): node for node in rm.core.context.nodes.values()}
        lines = []
        for machine in self.cluster.machines:
            node = nodes.get(str(machine.nm.node_id))
            runs = machine.nm.is_up and not machine.nm.core.stopping
            if node is None or node.state is not NodeState.RUNNING or not runs:
                lines.append(f"nm-{machine.number} is {node.state.name if node is not None else 'not registered'}")
        return lines

    def _all_ended(self) -> bool:
        apps = self.cluster.rm.core.context.apps
        for one in self.history.submissions:
            app = apps.get(one.application_id)
            if one.acknowledged_s is None or (app is None and self.history.is_forgotten(one)):
                continue
            if app is None or application_state(app) not in FINAL_APPLICATION_STATES:
                return False
        return True

    def _still_used(self) -> list[str]:
        """The amounts that are not released yet: on the nodes, and according to the ResourceManager."""
        lines = [f"{container_id} is still running" for container_id in running_containers(self.cluster.machines)]
        scheduler = self.cluster.rm.core.scheduler
        for node in scheduler.context.nodes.values():
            if not node.allocated.is_none():
                lines.append(f"{node.node_id} has {node.allocated} in use")
        lines += cross_checks.kept_by_nodes(self.cluster, self.history)
        return lines

    def _until(self, is_reached: Callable[[], bool], most_s: float) -> Generator[int, None, bool]:
        """Let time pass until the condition holds or the limit is reached; returns whether it holds."""
        deadline_s = self.engine.elapsed_s + most_s
        while not is_reached():
            if self.engine.elapsed_s >= deadline_s:
                return False
            yield self._after(POLL_S)
        return True

    def _after(self, seconds: float) -> int:
        return self.engine.now_ms + round(seconds * 1000)
