"""Writes the history of a simulated run: the same records that a chaos run gathers from real processes.

Times are virtual seconds since the start of the simulation.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from am.programs.gang.core import Member
from yarn.ids import ContainerId
from yarnling.faults.history import History, ObservedChange, ProcessRole, ProcessSpan
from yarnling.simulation.engine import Engine

KILLED = (137, 143)
"""Exit statuses of processes that were killed; they have recorded no end."""


@dataclass
class HistoryWriter:
    """Writes the history of a simulated run; `history` is complete once `close_spans` was called."""

    engine: Engine
    history: History

    def __post_init__(self) -> None:
        self._running: dict[tuple[ContainerId, int], int] = {}
        self._last: dict[str, ObservedChange] = {}

    def started(
        self, container_id: ContainerId, role: ProcessRole, node: int, task: int = 0, *, member: Member | None = None
    ) -> None:
        """Note that a process runs from now on."""
        now_s = self.engine.elapsed_s
        spans = self.history.spans
        self._running[container_id, task] = len(spans)
        spans.append(ProcessSpan(container_id, role, len(spans) + 1, node, now_s, now_s, None, task, member))

    def ended(self, container_id: ContainerId, exit_code: int | None, task: int = 0) -> None:
        """Note its end; a process that was killed has no exit status. Nothing, if it never ran."""
        index = self._running.pop((container_id, task), None)
        if index is not None:
            status = None if exit_code in KILLED else exit_code
            spans = self.history.spans
            spans[index] = replace(spans[index], last_s=self.engine.elapsed_s, status=status)

    def running(self, *roles: ProcessRole) -> list[ProcessSpan]:
        """The processes that run now in these roles, in the order of the containers' ids."""
        spans = [self.history.spans[index] for index in self._running.values()]
        return sorted((span for span in spans if span.role in roles), key=lambda span: (span.container_id, span.task))

    def changed(self, subject: str, state: str, attempt: int = 0) -> None:
        """Record the new state of a node, an application or the ResourceManager."""
        before = self._last.get(subject)
        if before is None or (before.state, before.attempt) != (state, attempt):
            self._last[subject] = change = ObservedChange(self.engine.elapsed_s, subject, state, attempt)
            self.history.changes.append(change)

    def close_spans(self) -> None:
        """End the run: processes that still run have been alive until now."""
        for container_id, task in list(self._running):
            self.ended(container_id, None, task)
