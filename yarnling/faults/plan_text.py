"""Writes plans in the grammar of plan files (yarnling.faults.plan_file), without what has its default. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import yaml
from pydantic import BaseModel

from yarnling.faults.kinds import FaultScope
from yarnling.faults.plan import FaultPlan, Plan
from yarnling.faults.plan_file import PARAMETER_DEFAULTS

_WIDTH_MAX = 1_000_000
"""PyYAML breaks lines that are longer; each entry of a plan stays on one."""


def plan_text(plan: Plan) -> str:
    """The plan as a file. `parse_plan` reads an equal plan from it, except for its name."""
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    if plan.about:
        yield f"about: {_flow(plan.about)}"
    if plan.seed is not None:
        yield f"seed: {plan.seed}"
    if cluster := _changed(plan.cluster):
        yield f"cluster: {_flow(cluster)}"
    yield "work:"
    for work in plan.work:
        yield f"  - {_flow({'program': work.program.value, **_changed(work)})}"
    if plan.faults:
        yield "faults:"
        for fault in plan.faults:
            yield f"  - {_flow(_fault(fault))}"
    yield f"lasts: {_plain(plan.lasts)}"
    if not plan.awaits_work:
        yield "begins: at once"
    if expect := _changed(plan.expect):
        yield f"expect: {_flow(expect)}"


def _changed(section: BaseModel) -> dict[str, object]:
    """The fields that differ from their defaults, by their keys in the file."""
    values = section.model_dump(mode="json", exclude_defaults=True)
    return {key: _plain(value) for key, value in values.items()}


def _fault(fault: FaultPlan) -> dict[str, object]:
    kind = fault.kind
    plain: dict[str, object] = {"fault": kind.name, "at": _plain(fault.at)}
    if kind.has_end:
        plain["for"] = _plain(fault.lasts)
    if fault.times > 1:
        plain |= {"times": fault.times, "every": _plain(fault.every)}
    if kind.scope is FaultScope.NODE and fault.node != "any":
        plain["node"] = _nodes(fault.node)
    if fault.count > 1:
        plain["count"] = fault.count
    if fault.pick is not None:
        plain["pick"] = fault.pick
    options = {name: _plain(value) for name, value in fault.options.items()}
    plain |= {name: value for name, value in options.items() if value != _plain(PARAMETER_DEFAULTS[name])}
    return {**plain, "optional": True} if fault.optional else plain


def _nodes(node: str) -> object:
    """A number, several, or a word."""
    numbers = node.split(",")
    if not all(number.strip().isdecimal() for number in numbers):
        return node
    return int(node) if len(numbers) == 1 else [int(number) for number in numbers]


def _plain(value: object) -> object:
    """A range whose bounds are equal is one number, and a whole number has no decimal point."""
    if isinstance(value, list | tuple):
        is_one = len(value) == 2 and value[0] == value[1] and not isinstance(value[0], str)
        return _plain(value[0]) if is_one else [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _flow(value: Mapping[str, object] | str) -> str:
    """Write a value in YAML's flow style, on one line."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=_WIDTH_MAX, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
