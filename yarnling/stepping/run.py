"""A run that can be driven one event of the engine at a time: a scene, a chaos plan or a workload."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from rm.view import RMView
from yarn.errors import InvalidArgumentException
from yarn.resource import Resource
from yarnling.run.names import host
from yarnling.run.trace import Trace
from yarnling.simulation.account import Account
from yarnling.simulation.cluster import InvariantBroken, SimulatedCluster
from yarnling.simulation.engine import START_MS
from yarnling.stepping.cluster_view import ClusterView, view_of
from yarnling.stepping.recorder import Noted, Recorder
from yarnling.stepping.steps import PLAN, RUN


class SteppedSubmission(Struct, frozen=True):
    """An application that a user submits while stepping. `seconds`: how long its containers run; None: until killed."""

    name: str
    user: str
    queue: str
    containers: int
    size: Resource
    seconds: int | None


class SteppedRun(ABC):
    """A run from its start. It never goes back: to go back, another one is run up to there."""

    def __init__(self, cluster: SimulatedCluster, trace: Trace, account: Account) -> None:
        self.cluster = cluster
        self.names = account.names
        self.node_names = tuple(host(machine.host) for machine in cluster.machines)
        """In the order of the machines' numbers."""
        self._recorder = Recorder(cluster, trace, account)
        self._limits: Iterator[int] | None = None
        self._until_ms: int | None = None

    @abstractmethod
    def limits(self) -> Iterator[int]:
        """Carry out the run from its start; yields the times up to which the caller must run the engine."""

    @abstractmethod
    def submit(self, submission: SteppedSubmission) -> None:
        """Submit an application now, while the ResourceManager runs."""

    def happened(self) -> list[str]:
        """The actions of the run's plan on the cluster in the last event."""
        return []

    def close(self) -> None:  # noqa: B027  most keep nothing
        """Release the resources of the run that are outside memory, such as files."""

    def default_queue(self) -> str:
        """The path of the first leaf queue."""
        return next(iter(RMView(self.cluster.rm.core).leaf_queues()), "default")

    @property
    def now_ms(self) -> int:
        return self.cluster.engine.now_ms - START_MS

    def note(self, text: str, by: str) -> None:
        """Note an action on the cluster, and who took it."""
        self._recorder.note(text, by)

    def noted(self) -> list[Noted]:
        """The notes since the last call."""
        for text in self.happened():
            self._recorder.note(text, PLAN)
        return self._recorder.take()

    def advance(self) -> list[Noted]:
        """Run events up to the next one with a visible effect; returns its notes, none if the run is over."""
        if self._limits is None:
            self._limits = self.limits()
            self._until_ms = next(self._limits, None)
        while self._until_ms is not None:
            with self.ending_at_a_failure():
                if not self._happen(self._until_ms):
                    self._until_ms = next(self._limits, None)
            if noted := self.noted():
                return noted
        return []

    @contextmanager
    def ending_at_a_failure(self) -> Iterator[None]:
        """End the run if a core fails: the step in which it does is its last one."""
        try:
            yield
        except InvalidArgumentException:
            raise  # a change that the cluster does not allow
        except InvariantBroken as broken:
            self._end(f"an invariant is broken: {broken}")
        except Exception as bug:
            self._end(f"{type(bug).__name__}: {bug}")

    def view(self) -> ClusterView:
        """The cluster now."""
        return view_of(self.cluster, self.names, self.now_ms)

    def _end(self, why: str) -> None:
        """End the run: no further event happens."""
        self._until_ms = None
        self.note(f"the run ends: {why}", RUN)

    def _happen(self, until_ms: int) -> bool:
        """Run one event; without one until the given time, set the clock to that time and return False."""
        engine, before = self.cluster.engine, self.cluster.engine.events
        engine.advance(until_ms, lambda: engine.events > before)
        return engine.events > before
