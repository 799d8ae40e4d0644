"""Steps and moments as the page of stepping reads them, from a server or from its own file."""

from __future__ import annotations

from typing import Any

from yarnling.stepping.moments import StepMoment
from yarnling.stepping.steps import Step


def moment_object(moment: StepMoment) -> dict[str, Any]:
    """A moment as JSON."""
    return {"step": moment.step, "atMs": moment.at_ms, "kind": moment.kind.value, "text": moment.text}


def short_step_object(step: Step) -> dict[str, Any]:
    """A step in a line, as JSON."""
    return {
        "number": step.number,
        "atMs": step.at_ms,
        "place": step.place,
        "title": step.title,
        "isChange": step.is_change,
    }


def step_object(step: Step) -> dict[str, Any]:
    """A step with all that happened in it, as JSON."""
    lines = [{"kind": line.kind.value, "text": line.text} for line in step.lines]
    return {**short_step_object(step), "fields": step.fields, "lines": lines, "node": step.node}
