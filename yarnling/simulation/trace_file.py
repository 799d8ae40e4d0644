"""Writes what happens in a simulation to a file, one JSON line each, for `yarnling timeline` and `yarnling plot`.

    {"trace": 1, "title": "kill-node, seed 1"}                                  the first line
    [ms, host, event, effects]                                                  a step of a core (simulation.trace)
    {"call": 7, "ms": ..., "is": "called", "from": "nm-1", "link": "tracker-1", "rpc": "nodeHeartbeat", "request": ...,
     "bytes": 84}                                                               of the request, as it would be encoded
    {"call": 7, "ms": ..., "is": "sent", "to": "rm"}                            then "arrived", "replied", "over" with
                                                                                "reply" and its "bytes", or "error";
                                                                                "lost" if the
                                                                                server's answer did not come
    {"decision": {...}}, {"use": {...}}, {"headroom": {...}}                    of the scheduler (timeline.model)
    {"fault": {...}}                                                            injected; written at the end

Requests and replies are without secrets (wire.plain_json).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from rm.core.resource_manager import ResourceManagerCore
from wire.full_disk import full_disk_named
from wire.plain_json import plain
from wire.rpc import Rpc
from yarn.errors import ServerUnavailable, YarnException
from yarnling.faults.history import History
from yarnling.simulation.cluster import SimulatedCluster
from yarnling.simulation.engine import START_MS
from yarnling.simulation.trace import Trace
from yarnling.timeline.decisions import Decisions
from yarnling.timeline.faults import faults_of
from yarnling.timeline.model import Fault

FORMAT = 1


class RunTrace:
    """The lines of one run, each of which `write` gets; a CallObserver. `observe` its cluster before the run, and `end`
    it after the run.
    """

    def __init__(self, write: Callable[[str], object], title: str) -> None:
        self._write_line = write
        self._calls = 0
        self._under_way: dict[int, Rpc[Any, Any]] = {}
        self._cluster: SimulatedCluster
        self._core: ResourceManagerCore | None = None
        self._decisions: Decisions | None = None
        self._write({"trace": FORMAT, "title": title})

    def observe(self, cluster: SimulatedCluster, trace: Trace) -> None:
        """Learn of the calls and steps of this cluster."""
        self._cluster = cluster
        cluster.network.observer = self
        trace.stepped = self.stepped

    def line(self, text: str) -> None:
        """A step of a core, as text."""
        self._write_line(f"{text}\n")

    def stepped(self, now_ms: int, host: str, event: object, effects: Sequence[object]) -> None:
        """The decisions in a step of the ResourceManager's core."""
        rm = self._cluster.rm
        if host != rm.name:
            return
        if self._decisions is None:
            self._core, self._decisions = rm.core, Decisions(rm.core)
        elif self._core is not rm.core:
            self._core = rm.core
            self._decisions.restarted(rm.core)
        for decision in self._decisions.after(event, effects, now_ms):
            self._write({"decision": to_builtins(decision)})
        for use in self._decisions.use(now_ms):
            self._write({"use": to_builtins(use)})
        for headroom in self._decisions.headrooms(now_ms):
            self._write({"headroom": to_builtins(headroom)})

    def end(self, history: History) -> None:
        """Write the faults of the run, which is over."""
        for fault in faults_of(history, lambda seconds: START_MS + round(1000 * seconds)):
            self.fault(fault)
        self._write({"ended": self._cluster.engine.now_ms})

    def fault(self, fault: Fault) -> None:
        self._write({"fault": to_builtins(fault)})

    # Calls

    def called(self, source: str, link: str, rpc: Rpc[Any, Any], request: object) -> int:
        self._calls += 1
        self._under_way[self._calls] = rpc
        fields = {"from": source, "link": link, "rpc": rpc.name, "request": plain(request)}
        self._note(self._calls, "called", {**fields, "bytes": rpc.request.size(request)})
        return self._calls

    def sent(self, call: int, target: str) -> None:
        self._note(call, "sent", {"to": target})

    def arrived(self, call: int) -> None:
        self._note(call, "arrived", {})

    def replied(self, call: int) -> None:
        self._note(call, "replied", {})

    def over(self, call: int, outcome: object) -> None:
        rpc = self._under_way.pop(call)
        if isinstance(outcome, YarnException):
            fields = {"error": plain(outcome)} | ({"lost": True} if isinstance(outcome, ServerUnavailable) else {})
        else:
            fields = {"reply": plain(outcome), "bytes": rpc.reply.size(outcome)}
        self._note(call, "over", fields)

    def _note(self, call: int, what: str, fields: dict[str, Any]) -> None:
        self._write({"call": call, "ms": self._cluster.engine.now_ms, "is": what, **fields})

    def _write(self, line: dict[str, Any]) -> None:
        self._write_line(json.dumps(line, separators=(",", ":")) + "\n")


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
