"""Samples of a stage that runs: values over time for the pictures of a lesson."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from yarnling.lessons.scene.stage import Stage
from yarnling.report.curves import Curve, Curves, Mark

GB_MB = 1024


class Samples:
    """Samples `measures` {name of a curve: what to measure} while it runs the stage. At the start, before there is a
    ResourceManager, all values are 0.
    """

    def __init__(self, stage: Stage, measures: Mapping[str, Callable[[], float]], every_s: float = 1.0) -> None:
        self.times_ms: list[int] = []
        self.values: dict[str, list[float]] = {name: [] for name in measures}
        self._stage = stage
        self._measures = measures
        self._every_s = every_s

    def run(self, until_s: float) -> None:
        """Run the stage like `Stage.run`, and take a sample every so many seconds."""
        while (at_s := len(self.times_ms) * self._every_s) <= until_s:
            self._stage.run(at_s)
            self.times_ms.append(round(1000 * at_s))
            for name, measure in self._measures.items():
                self.values[name].append(measure() if at_s else 0.0)
        self._stage.run(until_s)

    def curves(
        self,
        title: str,
        unit: str,
        names: Iterable[str] = (),
        *,
        bounds: Mapping[str, float] | None = None,
        marks: tuple[Mark, ...] = (),
        is_stacked: bool = False,
    ) -> Curves:
        """The picture of these curves, by default of all. `bounds`: {name: line to compare the curve with}."""
        drawn = [Curve(name, tuple(self.values[name]), (bounds or {}).get(name, 0.0)) for name in names or self.values]
        return Curves(title, unit, tuple(self.times_ms), tuple(drawn), marks, is_stacked)


def used_gb(stage: Stage, name: str) -> float:
    """Memory of the application's containers, its AM among them, in GB; 0 while it does not run."""
    return sum(each.resource.memory_mb for each in stage.held(name) if each.state != "RESERVED") / GB_MB
