"""The faults of a chaos run, as a recorded run has them: written beside the event logs of its daemons."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from wire.files.full_disk import full_disk_named
from yarn.errors import InvalidArgumentException
from yarn.ids import ContainerId
from yarnling.faults.history import History, InjectedFault
from yarnling.faults.kinds import FaultScope
from yarnling.run.names import RM_LIFELINE, node_lifeline
from yarnling.run.records import RecordedFault
from yarnling.run.writer import RunWriter

NAME = "faults.jsonl"


def write_faults(directory: Path, history: History, ms_of: Callable[[float], int]) -> None:
    """Write the faults of a run. `ms_of`: wall-clock milliseconds for a time of the history."""
    directory.mkdir(exist_ok=True)
    path = directory / NAME
    with full_disk_named(path), path.open("w", encoding="utf-8") as file:
        writer = RunWriter(file.write, "faults")
        for fault in faults_of(history, ms_of):
            writer.record(fault)


def faults_of(history: History, ms_of: Callable[[float], int]) -> Iterator[RecordedFault]:
    """The faults that were injected. `ms_of`: the run's clock for a time of the history."""
    for one in history.injected:
        if not one.skipped and not one.problem:
            until_ms = None if one.recovered_s is None else ms_of(one.recovered_s)
            yield RecordedFault(one.injection.kind.name, ms_of(one.start_s), until_ms, _hosts(one), one.target)


def _hosts(one: InjectedFault) -> tuple[str, ...]:
    if one.injection.nodes:
        return tuple(map(node_lifeline, one.injection.nodes))
    scope = one.injection.kind.scope
    if scope is FaultScope.RM:
        return (RM_LIFELINE,)
    # An AM's lifeline has the id of its container, or that of its attempt.
    return (one.target, *_attempts_in(one.target)) if scope is FaultScope.MASTER else ()


def _attempts_in(target: str) -> tuple[str, ...]:
    """The attempt of the container that a fault has hit."""
    try:
        return (str(ContainerId.parse(target).attempt_id),)
    except InvalidArgumentException:
        return ()
