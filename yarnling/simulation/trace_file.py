"""Records a simulation: its steps, calls, decisions and samples while it runs, and its faults at the end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from rm.core.resource_manager import ResourceManagerCore
from rm.view import RMView
from wire.event_log import LoggedStep
from wire.files.full_disk import full_disk_named
from wire.files.plain_json import plain
from wire.rpc import Rpc
from yarn.errors import ServerUnavailable, YarnException
from yarnling.faults.history import History
from yarnling.faults.recorded_faults import faults_of
from yarnling.run.decisions import Decisions
from yarnling.run.names import RM_LIFELINE, node_lifeline
from yarnling.run.records import Call, RecordedFault
from yarnling.run.trace import Trace
from yarnling.run.writer import RunWriter
from yarnling.simulation.call_observer import CallObserver
from yarnling.simulation.cluster import SimulatedCluster
from yarnling.simulation.engine import START_MS

_TO_NODE = "node-"


class _UnderWay(NamedTuple):
    rpc: Rpc[Any, Any]
    call: Call


class RunTrace(CallObserver):
    """The records of one run, each of which is a line for `write`. `observe` its cluster before the
    run, and `end` it after the run.
    """

    def __init__(self, write: Callable[[str], object], title: str) -> None:
        self._writer = RunWriter(write, title)
        self.line = self._writer.step
        """Gets each step of a core, as text."""
        self._calls = 0
        self._under_way: dict[int, _UnderWay] = {}
        self._cluster: SimulatedCluster
        self._core: ResourceManagerCore | None = None
        self._decisions: Decisions | None = None

    def observe(self, cluster: SimulatedCluster, trace: Trace) -> None:
        """Learn of the calls and steps of this cluster."""
        self._cluster = cluster
        cluster.network.observer = self
        trace.observers.append(self._stepped)

    def _stepped(self, step: LoggedStep) -> None:
        """Write the decisions in a step of the ResourceManager's core, and what can be seen after it."""
        rm = self._cluster.rm
        if step.host != rm.name:
            return
        if self._decisions is None:
            self._core, self._decisions = rm.core, Decisions(RMView(rm.core))
        elif self._core is not rm.core:
            self._core = rm.core
            self._decisions.restarted(RMView(rm.core))
        for decision in self._decisions.after(step.event, step.effects, step.now_ms):
            self._writer.record(decision)
        for sample in self._decisions.samples(step.now_ms):
            self._writer.record(sample)

    def end(self, history: History) -> None:
        """Write the faults of the run, which is over, and the calls that are still under way."""
        for under_way in self._under_way.values():
            self._writer.record(under_way.call)
        for fault in faults_of(history, lambda seconds: START_MS + round(1000 * seconds)):
            self.fault(fault)
        self._writer.ended(self._now_ms)

    def fault(self, fault: RecordedFault) -> None:
        """Write a fault."""
        self._writer.record(fault)

    @property
    def _now_ms(self) -> int:
        return self._cluster.engine.now_ms

    def called(self, source: str, link: str, rpc: Rpc[Any, Any], request: object) -> int:
        self._calls += 1
        to_node = link.startswith(_TO_NODE)
        target = node_lifeline(int(link.removeprefix(_TO_NODE))) if to_node else RM_LIFELINE
        call = Call(source, target, rpc.name, self._now_ms, plain(request), is_sent=False, number=self._calls)
        call.request_bytes = rpc.request.size(request)
        self._under_way[self._calls] = _UnderWay(rpc, call)
        return self._calls

    def sent(self, call: int, target: str) -> None:
        if (known := self._under_way.get(call)) is not None:
            known.call.is_sent, known.call.target = True, target

    def arrived(self, call: int) -> None:
        """Note an arrival. A request that arrives after its caller has given up is not noted."""
        if (known := self._under_way.get(call)) is not None:
            known.call.arrivals += 1
            if known.call.arrived_ms is None:
                known.call.arrived_ms = self._now_ms

    def replied(self, call: int) -> None:
        if (known := self._under_way.get(call)) is not None:
            known.call.replied_ms = self._now_ms

    def over(self, call: int, outcome: object) -> None:
        rpc, known = self._under_way.pop(call)
        known.over_ms = self._now_ms
        if isinstance(outcome, YarnException):
            error = plain(outcome)
            known.error = f"{error['exception'].rpartition('.')[2]}: {error['message']}"
            known.is_refused = not isinstance(outcome, ServerUnavailable)
        else:
            known.reply, known.reply_bytes = plain(outcome), rpc.reply.size(outcome)
        self._writer.record(known)


class TraceFile(RunTrace):
    """A trace in a file."""

    def __init__(self, path: Path, title: str) -> None:
        """Raises YarnException if the file cannot be written."""
        try:
            self._file = path.open("w", encoding="utf-8")
        except OSError as error:
            raise YarnException(f"{path}: cannot be written: {error.strerror} (name another file)") from None
        self._path = path
        super().__init__(self._append, title)

    def _append(self, text: str) -> None:
        with full_disk_named(self._path):
            self._file.write(text)

    def __enter__(self) -> TraceFile:
        return self

    def __exit__(self, *_: object) -> None:
        with full_disk_named(self._path):
            self._file.close()
