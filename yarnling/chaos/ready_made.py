"""The plans that come with yarnling, one for each fault, found by their names."""

from __future__ import annotations

from pathlib import Path

from yarn.errors import YarnException
from yarnling.chaos.grammar import read_plan
from yarnling.chaos.plan import Plan

DIRECTORY = Path(__file__).with_name("plans")


def names() -> list[str]:
    """Their names, in order."""
    return sorted(path.stem for path in DIRECTORY.glob("*.yaml"))


def find_plan(text: str) -> Plan:
    """The plan of a file, or a ready-made one by its name. Raises YarnException if there is none, or a faulty one."""
    path = Path(text)
    if text in names() and not path.exists():
        return read_plan(DIRECTORY / f"{text}.yaml")
    if not path.exists():
        raise YarnException(f"{text}: there is no such file, nor a ready-made plan (yarnling chaos --list tells them)")
    return read_plan(path)
