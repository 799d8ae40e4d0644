"""Makes a differing scenario smaller: removes what it can as long as the scenario still differs.

Delta debugging (Zeller's ddmin, complements only): try without each half, then without each quarter, and so on down to
single items, beginning again with what is left. Steps first, then keys of the configuration, then steps once more.
A scenario stays valid when steps are taken out, because its picks count modulo what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tests.conformance.scenario import Json, Scenario

TRIES_MAX = 600
"""Each try starts one of Hadoop's ResourceManagers, which takes some tenths of a second."""

Item = TypeVar("Item")


class Minimiser:
    """`differs` returns whether a scenario still has the difference. `tries` counts its calls."""

    def __init__(self, differs: Callable[[Scenario], bool], tries_max: int = TRIES_MAX) -> None:
        self.tries = 0
        self._tries_max = tries_max
        self._differs = differs

    def minimise(self, scenario: Scenario, last_step: int | None = None) -> Scenario:
        """The smallest scenario found. `last_step`: the first step that differs, if known; 0 is the start."""
        if last_step is not None and self._still(scenario.with_steps(scenario.steps[:last_step])):
            scenario = scenario.with_steps(scenario.steps[:last_step])
        scenario = self._fewer_steps(scenario)
        return self._fewer_steps(self._fewer_keys(scenario))

    def _fewer_steps(self, scenario: Scenario) -> Scenario:
        steps: Sequence[Json] = shrink(scenario.steps, lambda steps: self._still(scenario.with_steps(steps)))
        return scenario.with_steps(steps)

    def _fewer_keys(self, scenario: Scenario) -> Scenario:
        def still(entries: Sequence[tuple[str, str]]) -> bool:
            return self._still(scenario.with_configuration(dict(entries)))

        return scenario.with_configuration(dict(shrink(list(scenario.configuration.items()), still)))

    def _still(self, scenario: Scenario) -> bool:
        if self.tries == self._tries_max:
            return False
        self.tries += 1
        return self._differs(scenario)


def shrink(items: Sequence[Item], still: Callable[[Sequence[Item]], bool]) -> Sequence[Item]:
    """A list from which no single item can be removed without `still` becoming False."""
    size = len(items) // 2
    while size:
        start, found = 0, False
        while start < len(items):
            rest = [*items[:start], *items[start + size :]]
            if still(rest):
                items, found = rest, True
            else:
                start += size
        # Removing an item may make others superfluous: repeat until no item can be removed.
        size = size if found and size == 1 else min(size, len(items)) // 2
    return items
