"""The order of a leaf's applications as a function of a learner's: lab 2.

def order(applications):
    return sorted(applications, key=lambda each: each.submitted_s)
"""

from __future__ import annotations

import difflib
import inspect
import reprlib
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from am.programs.custom.core import place_in_source
from am.programs.custom.source import run_source
from rm.scheduler.model.application import FiCaSchedulerApp
from yarn.errors import InvalidArgumentException
from yarn.nodes import NO_LABEL
from yarnling.run.wording import cut

NAME = "order"
"""The function that the learner's file defines."""
COMPLETE = "order returns each application once"
REPEATABLE = "the same applications have the same order"
NO_EXCEPTION = "order raises no exception"
MESSAGE_MAX = 200
"""The characters of an exception's message that are shown."""


class LeafApplication(Struct, frozen=True):
    """An application of a leaf queue as `order` gets it.

    `number`: 1 for the first that was submitted. `priority`: higher is more urgent. `submitted_s`: the time of its
    submission, in seconds. `containers` and `used_mb`: those that it holds, its AM's included. `pending_mb`: what it
    has requested and not got; only its AM's container until it holds that.
    """

    number: int
    user: str
    priority: int
    submitted_s: float
    containers: int
    used_mb: int
    pending_mb: int


Order: TypeAlias = Callable[[list[LeafApplication]], object]
"""A learner's function, which may return anything."""


class OrderMistake(Struct, frozen=True):
    """The first mistake of an `order`: the check that fails, and what happened."""

    check: str
    sentence: str


class CheckedOrder:
    """A learner's `order` as the scheduler calls it. After its first mistake, applications keep their order.

    `source`: the name of the learner's file. `began_ms`: the time from which `submitted_s` counts.
    """

    def __init__(self, order: Order, source: str, began_ms: int) -> None:
        self.mistake: OrderMistake | None = None
        self._order = order
        self._source = source
        self._began_ms = began_ms

    def __call__(self, applications: Sequence[FiCaSchedulerApp]) -> Sequence[FiCaSchedulerApp]:
        """The applications in the learner's order. It is asked twice, to see whether it depends on something else."""
        if self.mistake is not None or not applications:
            return applications
        rows = [self._row(application) for application in applications]
        try:
            first, second = self._ordered(rows), self._ordered(rows)
        except Exception as error:
            self.mistake = OrderMistake(
                NO_EXCEPTION,
                f"{type(error).__name__}: {cut(str(error), MESSAGE_MAX)}{place_in_source(error, self._source)}.",
            )
            return applications
        self.mistake = _mistake(rows, first, second)
        if self.mistake is not None:
            return applications
        places = {row: place for place, row in enumerate(first)}
        return sorted(applications, key=lambda application: places[self._row(application)])

    def _ordered(self, rows: list[LeafApplication]) -> list[object]:
        """Return what the learner's function returns, with at most one application too many."""
        returned: object = self._order(list(rows))
        return list(islice(returned, len(rows) + 1)) if isinstance(returned, Iterable) else [returned]

    def _row(self, application: FiCaSchedulerApp) -> LeafApplication:
        used, pending = application.usage.used(NO_LABEL), application.usage.pending(NO_LABEL)
        return LeafApplication(
            application.attempt_id.application_id.id,
            application.user,
            application.priority,
            (application.started_ms - self._began_ms) / 1000,
            len(application.live_containers),
            used.memory_mb,
            pending.memory_mb,
        )


def _mistake(rows: list[LeafApplication], first: list[object], second: list[object]) -> OrderMistake | None:
    other = next((each for each in first if not (isinstance(each, LeafApplication) and each in rows)), rows)
    if other is not rows:
        shown = reprlib.repr(other)
        return OrderMistake(COMPLETE, f"order returned {shown}, which is not one of the applications that it got.")
    for row in rows:
        if first.count(row) == 0:
            return OrderMistake(COMPLETE, f"order left out application {row.number}: it would never get a container.")
        if first.count(row) > 1:
            return OrderMistake(COMPLETE, f"order returned application {row.number} twice.")
    if first != second:
        orders = f"{_numbers(first)} and then {_numbers(second)}"
        return OrderMistake(REPEATABLE, f"for the same applications, order returned {orders} (by their numbers).")
    return None


def _numbers(returned: list[object]) -> str:
    return ", ".join(str(each.number) if isinstance(each, LeafApplication) else reprlib.repr(each) for each in returned)


def load_order(path: Path) -> Order:
    """The function `order` of a file, which is executed each time.

    Raises InvalidArgumentException if the file is not valid Python, or has no such function.
    """
    found = run_source(path)
    order = found.get(NAME)
    if order is None:
        similar = difflib.get_close_matches(NAME, [name for name, value in found.items() if callable(value)], 1, 0.6)
        hint = f" (is {similar[0]!r} meant?)" if similar else ""
        raise InvalidArgumentException(f"{path}: no function {NAME!r}{hint}: write `def {NAME}(applications):`")
    if not callable(order):
        raise InvalidArgumentException(f"{path}: {NAME} is not a function: write `def {NAME}(applications):`")
    try:
        inspect.signature(order).bind([])
    except TypeError as error:
        raise InvalidArgumentException(f"{path}: {NAME} is called as {NAME}(applications): {error}") from None
    return order
