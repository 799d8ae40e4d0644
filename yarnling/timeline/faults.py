"""The faults of a chaos run, for a diagram."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from yarn.errors import InvalidArgumentException
from yarn.ids import ContainerId
from yarnling.faults.history import History, InjectedFault
from yarnling.faults.kinds import Scope
from yarnling.timeline.model import Fault

RM_LIFELINE = "rm"


def node_lifeline(number: int) -> str:
    """The name of the lifeline of a node."""
    return f"nm-{number}"


def faults_of(history: History, ms_of: Callable[[float], int]) -> Iterator[Fault]:
    """The faults that were injected. `ms_of`: the run's clock for a time of the history."""
    for one in history.injected:
        if not one.skipped and not one.problem:
            until_ms = None if one.recovered_s is None else ms_of(one.recovered_s)
            yield Fault(one.injection.kind.name, ms_of(one.start_s), until_ms, _hosts(one), one.target)


def _hosts(one: InjectedFault) -> tuple[str, ...]:
    if one.injection.nodes:
        return tuple(map(node_lifeline, one.injection.nodes))
    scope = one.injection.kind.scope
    if scope is Scope.RM:
        return (RM_LIFELINE,)
    # An AM's lifeline has the id of its container, or that of its attempt.
    return (one.target, *attempts_in(one.target)) if scope is Scope.MASTER else ()


def attempts_in(target: str) -> tuple[str, ...]:
    """The attempt of the container that a fault has hit."""
    try:
        return (str(ContainerId.parse(target).attempt_id),)
    except InvalidArgumentException:
        return ()
