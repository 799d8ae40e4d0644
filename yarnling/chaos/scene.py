"""What the phases of a run have in common."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from yarn.errors import YarnException
from yarnling.chaos.history import History
from yarnling.chaos.notes import Notes
from yarnling.chaos.plan import Plan
from yarnling.chaos.schedule import Blow
from yarnling.chaos.site import Site
from yarnling.chaos.workload import Workload

LOOK_S = 0.1
"""Between two looks at what sets no event."""

Tell = Callable[[str, str], None]
"""Takes what happens, as it happens: a kind ("fault", "healed", "phase", "problem", "state") and a line."""


class Scene(Struct, frozen=True):
    """A cluster that is up, what is to happen to it, and where it is noted."""

    plan: Plan
    blows: tuple[Blow, ...]
    site: Site
    workload: Workload
    notes: Notes
    history: History
    tell: Tell


def told(error: BaseException) -> str:
    """An error, or several, in one line."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(told(inner) for inner in error.exceptions)
    return error.message if isinstance(error, YarnException) else f"{type(error).__name__}: {error}"
