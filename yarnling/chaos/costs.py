"""What each fault cost: how long until a node was LOST, until it was back, until there was a next attempt. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from yarn.ids import ContainerId
from yarnling.chaos.history import Change, History, Injected, Role
from yarnling.chaos.plan import Scope

BACK = "RUNNING"


def cost_of(injected: Injected, history: History) -> str:
    """Such as `lost after 3.1 s, back 0.4 s after its end`; empty if nothing was to be seen."""
    scope = injected.blow.kind.scope
    parts: list[str] = []
    if scope is Scope.NODE:
        parts = [part for number in injected.blow.nodes for part in _of_node(injected, history, f"nm-{number}")]
    elif scope is Scope.RM:
        parts = _of_rm(injected, history)
    elif scope is Scope.MASTER and injected.whom:
        parts = _of_master(injected, history)
    return ", ".join(dict.fromkeys(parts))


def times_to_lost(history: History) -> list[tuple[Injected, float]]:
    """How long it took until nodes that were killed or hung were LOST: those that were not are left out."""
    found = []
    for one in history.injected:
        if one.blow.kind.name in ("kill-node", "pause-node") and not one.skipped:
            for number in one.blow.nodes:
                lost = _first(history.changes_of(f"nm-{number}"), one.start_s, _end(one, history), "LOST")
                if lost is not None:
                    found.append((one, lost.at_s - one.start_s))
    return found


def nodes_lost(history: History) -> int:
    """How often a node was LOST."""
    return sum(1 for change in history.changes if change.state == "LOST" and change.subject.startswith("nm-"))


def _of_node(injected: Injected, history: History, name: str) -> list[str]:
    changes, parts = list(history.changes_of(name)), []
    end_s = _end(injected, history)
    away = next((one for one in changes if injected.start_s <= one.at_s <= end_s and one.state != BACK), None)
    if away is None:
        return []
    parts.append(f"{away.state} after {away.at_s - injected.start_s:.1f} s")
    back = _first(changes, away.at_s, float("inf"), BACK)
    if back is not None and injected.healed_s is not None and back.at_s >= injected.healed_s:
        parts.append(f"back {back.at_s - injected.healed_s:.1f} s after its end")
    return parts


def _of_rm(injected: Injected, history: History) -> list[str]:
    silent = _first(history.changes_of("rm"), injected.start_s, _end(injected, history), "SILENT")
    if silent is None:
        return []
    answers = _first(history.changes_of("rm"), silent.at_s, float("inf"), "ANSWERS")
    return [] if answers is None else [f"silent for {answers.at_s - injected.start_s:.1f} s"]


def _of_master(injected: Injected, history: History) -> list[str]:
    container = ContainerId.parse(injected.whom)
    masters = history.of(container.application_id, Role.MASTER)
    following = [master for master in masters if master.attempt > container.attempt_id.attempt]
    return [f"next attempt after {following[0].start_s - injected.start_s:.1f} s"] if following else []


def _first(changes: Iterable[Change], from_s: float, to_s: float, state: str) -> Change | None:
    return next((change for change in changes if from_s <= change.at_s <= to_s and change.state == state), None)


def _end(injected: Injected, history: History) -> float:
    return history.ended_s if injected.healed_s is None else injected.healed_s
