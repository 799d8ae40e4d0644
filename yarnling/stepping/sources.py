"""The sources of stepping: the lessons' scenes and chaos plans. (Workloads: yarnling.stepping.workload_source.)"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ContainerLaunchContext
from yarn.errors import InvalidArgumentException
from yarn.ids import ApplicationId
from yarn.java.versions import HADOOP_VERSION
from yarn.settings.release import RELEASE
from yarn.suggestions import did_you_mean
from yarnling.faults.history import InjectedFault
from yarnling.faults.plan import Plan
from yarnling.faults.plan_file import find_plan, plan_names
from yarnling.lessons.catalogue import LESSONS
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Setting
from yarnling.lessons.scene.stage import AM_SIZE, LENGTH_RULES, Stage, submit_now
from yarnling.run.names import Names
from yarnling.run.trace import Trace
from yarnling.simulation.account import Account
from yarnling.simulation.cluster import SimulatedCluster
from yarnling.simulation.engine import START_MS
from yarnling.simulation.runner import Options, PlanRun, TimeOver
from yarnling.simulation.workload import AM_RULE
from yarnling.stepping.run import SteppedRun, SteppedSubmission
from yarnling.stepping.steps import RUN

SCENE_LASTS_MS = 300_000
"""A scene ends after five minutes: its applications are over, or wait for ever."""
DEFAULT_SCENE = "allocate"


class Source(ABC):
    """The definition of a run that can be started any number of times, always with the same events.

    `arguments`: the words of the command line that name it.
    """

    title: str
    arguments: tuple[str, ...]

    @abstractmethod
    def start(self, *, checked: bool = True) -> SteppedRun:
        """A run in which nothing has happened yet. Without `checked`, invariants are not checked."""


class Scene(Source):
    """The cluster of a lesson, with all that is done to it there."""

    def __init__(self, lesson: Lesson, setting: Setting | None = None) -> None:
        self._lesson = lesson
        self._setting = lesson.defaults if setting is None else setting
        self.title = lesson.title
        self.arguments = (lesson.name,)

    def start(self, *, checked: bool = True) -> SteppedRun:
        return _SceneRun(self._lesson.set_up(*self._setting))


class _SceneRun(SteppedRun):
    def __init__(self, stage: Stage) -> None:
        # Nobody looks at the bytes of the messages, and making them takes half of the time.
        stage.cluster.network.encode = False
        super().__init__(stage.cluster, stage.trace, stage.account)

    def limits(self) -> Iterator[int]:
        yield START_MS + SCENE_LASTS_MS

    def submit(self, submission: SteppedSubmission) -> None:
        _submit(self.cluster, self.names, submission)


class PlanSource(Source):
    """A chaos plan: the same run as that of `yarnling simulate PLAN --seed N --release VERSION`."""

    def __init__(self, plan: Plan, name: str, seed: int, release: str | None = None) -> None:
        self._plan = plan if release is None else plan.with_settings({RELEASE.key: release})
        self._seed = seed
        self.title = f"chaos plan {plan.name}, seed {seed}"
        self.arguments = (name, "--seed", str(seed), *(() if release is None else ("--release", release)))

    def start(self, *, checked: bool = True) -> SteppedRun:
        directory = TemporaryDirectory(prefix="yarnling-stepping-")
        trace = Trace(hashed=False)
        options = Options(encode=False, rules=LENGTH_RULES, checked=checked)
        running = PlanRun(self._plan, self._seed, options, trace, Path(directory.name))
        return _PlanSteppedRun(running, trace, directory)


class _PlanSteppedRun(SteppedRun):
    def __init__(self, running: PlanRun, trace: Trace, directory: TemporaryDirectory[str]) -> None:
        super().__init__(running.cluster, trace, Account(running.cluster, trace, Names()))
        self._running = running
        self._directory = directory
        self._told: list[InjectedFault] = []

    def limits(self) -> Iterator[int]:
        try:
            yield from self._running.phases()
        except TimeOver as over:
            self.note(f"the run ends: {over}", RUN)

    def happened(self) -> list[str]:
        """The faults that were injected or undone since the last look."""
        injected = self._running.history.injected
        if injected == self._told:
            return []
        texts: list[str] = []
        for index, fault in enumerate(injected):
            before = self._told[index] if index < len(self._told) else None
            if before != fault:
                texts += _fault_words(fault, before)
        self._told = list(injected)
        return texts

    def submit(self, submission: SteppedSubmission) -> None:
        _submit(self.cluster, self.names, submission)

    def close(self) -> None:
        self._directory.cleanup()


def _fault_words(fault: InjectedFault, before: InjectedFault | None) -> Iterator[str]:
    name = fault.injection.kind.name
    if fault.target and (before is None or not before.target):
        yield f"fault {name} on {fault.target}"
    if fault.skipped:
        yield f"fault {name} is skipped: it has no target"
    elif fault.recovered_s is not None and fault.target:
        yield f"fault {name} on {fault.target} is over"


def _submit(cluster: SimulatedCluster, names: Names, submission: SteppedSubmission) -> None:
    context = ApplicationSubmissionContext(
        ApplicationId(0, 0),
        ContainerLaunchContext((AM_RULE,)),
        AM_SIZE,
        name=submission.name,
        queue=submission.queue,
    )
    wanted = Wanted(submission.containers, submission.size, seconds=submission.seconds)

    def named(application_id: ApplicationId) -> None:
        names.applications[application_id] = submission.name

    submit_now(cluster, context, submission.user, (wanted,), named)


def find_source(which: str, seed: int | None, release: str | None = None) -> Source:
    """The scene or the plan of that name, or the plan in that file; without a name the scene of lesson 4.

    `release`: of Hadoop, whose rules a plan follows. Raises YarnException if there is none, or its file has faults.
    """
    name = (which or DEFAULT_SCENE).removeprefix("lesson-")
    for lesson in LESSONS:
        if name in {str(lesson.number), lesson.name}:
            if seed is not None:
                raise InvalidArgumentException(f"--seed {seed}: the scene {lesson.name} draws nothing; leave it out")
            if release is not None:
                raise InvalidArgumentException(
                    f"--release {release}: the scene {lesson.name} follows Hadoop {HADOOP_VERSION}; leave it out"
                )
            return Scene(lesson)
    names = [*(lesson.name for lesson in LESSONS), *plan_names()]
    if which not in names and not Path(which).exists():
        raise InvalidArgumentException(
            f"{which}: neither a scene, a ready-made plan nor a file ({did_you_mean(name, names)}"
            "yarnling lesson --list and yarnling chaos --list show them)"
        )
    plan = find_plan(which)
    seed = seed if seed is not None else plan.seed if plan.seed is not None else 1
    return PlanSource(plan, which, seed, release)
