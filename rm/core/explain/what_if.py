"""Adds to verdicts what would get their requests the next containers, tried on copies of the scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from rm.core.context import RMContext
from rm.core.explain.changes import Budget, DownNode, Tried, changes_of
from rm.core.explain.preemption_outlook import outlook_of
from rm.core.explain.verdict import Verdict
from rm.core.explain.verdict_wording import nodes_down
from rm.scheduler.model.application import FiCaSchedulerApp
from yarn.ids import ContainerId
from yarn.protocols.inspection import VerdictReport
from yarn.times import duration

NOTHING_HELPS = "no single change that was tried would get it a container"
UNTRIED = "further changes were not tried: copying the scheduler so often would take too long"


def with_changes(
    context: RMContext, attempt: FiCaSchedulerApp, verdicts: Iterable[tuple[Verdict, VerdictReport]]
) -> tuple[VerdictReport, ...]:
    """The reports with the changes that work, and with what preemption does. All share one budget of trials."""
    trials = _Trials(context, attempt)
    return tuple(trials.of(verdict, report) for verdict, report in verdicts)


class _Trials:
    """The trials for one attempt."""

    def __init__(self, context: RMContext, attempt: FiCaSchedulerApp) -> None:
        self._scheduler = context.scheduler
        self._attempt = attempt
        self._budget = Budget(context.scheduler)
        self._down = {
            node.node_id: DownNode(node.node_id, node.rack, node.original_capability or node.capability)
            for node in nodes_down(context)
        }

    def of(self, verdict: Verdict, report: VerdictReport) -> VerdictReport:
        if self._budget.left <= 0:
            return replace(report, notes=(*report.notes, UNTRIED))
        tried = changes_of(self._scheduler, self._attempt, verdict, report.settings, self._down, self._budget)
        outlook = outlook_of(self._scheduler, self._attempt, verdict, self._down, self._budget)
        changes = [_in_words(change) for change in tried]
        if outlook is not None and outlook.victims:
            changes.insert(0, f"in {duration(outlook.wait_ms)} by preemption of {_containers(outlook.victims)}")
        notes = report.notes if outlook is None or not outlook.note else (*report.notes, outlook.note)
        if self._budget.left < 0:
            notes = (*notes, UNTRIED)
        elif not changes:
            notes = (NOTHING_HELPS, *notes)
        return replace(report, changes=tuple(changes), notes=notes)


def _in_words(change: Tried) -> str:
    """The change, with the node that then gives the container unless the change names it."""
    host = change.node_id.host
    return change.text if host in change.text.split() else f"{change.text} (on {host})"


def _containers(ids: Sequence[ContainerId]) -> str:
    """Containers by their applications: `2 containers of application_1_0001`."""
    counts = Counter(str(container_id.application_id) for container_id in ids)
    parts = [f"{count} container{'' if count == 1 else 's'} of {app}" for app, count in sorted(counts.items())]
    return " and ".join(parts)
