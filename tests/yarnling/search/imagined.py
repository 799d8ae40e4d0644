"""A cluster of which the waits are known: each queue waits a minute for each percent that it has less than it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from msgspec.structs import replace

from tests.yarnling.whatif.small_clusters import (
    CS,
    MINUTE_MS,
    TWO_QUEUES,
    application,
    configuration,
    group,
    nodes,
    run,
)
from yarnling.search.goals import Objective
from yarnling.search.goals_file import SearchGoals
from yarnling.search.run_cache import Refused
from yarnling.search.space import Dimension, Siblings, Space
from yarnling.whatif.expectations import KnownNames, parse_expectation, parse_measure, with_paths
from yarnling.whatif.figures import Figures, figures_of
from yarnling.whatif.parallel import Report, Work
from yarnling.whatif.run import RunOptions
from yarnling.whatif.sides import SideRun
from yarnling.whatif.waits import Wait, Waits
from yarnling.workload.model import Workload

KNOWN = KnownNames(("root", "root.etl", "root.adhoc"), ("ann",))
ETL, ADHOC = f"{CS}root.etl.capacity", f"{CS}root.adhoc.capacity"
POLICY = f"{CS}root.adhoc.ordering-policy"
CAPACITIES = Space(
    (
        Dimension(ETL, tuple(map(str, range(10, 91))), "50", Decimal(1), "", Decimal(50)),
        Dimension(ADHOC, tuple(map(str, range(10, 91))), "50", Decimal(1), "", Decimal(50)),
        Dimension(POLICY, ("fifo", "fair"), "fifo"),
    ),
    (Siblings((0, 1), 80),),
)
TEMPLATE = figures_of(run(application(group(1, 1))))


def waits_of(needs: Mapping[str, float]) -> Callable[[SideRun], dict[str, float]]:
    """{queue: minutes} that the queues with these needs wait, in percent of the cluster; each seed adds a second."""

    def minutes(side: SideRun) -> dict[str, float]:
        given = {queue: float(side.configuration[f"{CS}{queue}.capacity"]) for queue in needs}
        return {queue: max(0.0, needs[queue] - given[queue]) + side.options.seed / 60 for queue in needs}

    return minutes


class ImaginedCluster:
    """A runner that computes waits from the configuration. `made`: (configuration, seed) of each run."""

    def __init__(self, minutes: Callable[[SideRun], dict[str, float]]) -> None:
        self._minutes = minutes
        self.made: list[tuple[tuple[tuple[str, str], ...], int]] = []

    def outcomes(
        self, work: Work[Figures | Refused], runs: Sequence[SideRun], report: Report
    ) -> Iterator[tuple[int, Figures | Refused]]:
        for number, side in enumerate(runs):
            self.made.append((tuple(sorted(side.configuration.items())), side.options.seed))
            yield number, self._outcome(side)

    def _outcome(self, side: SideRun) -> Figures | Refused:
        queues = tuple(
            replace(TEMPLATE.cluster, name=name, waits=Waits(1, 0, p95=Wait(round(minutes * MINUTE_MS))))
            for name, minutes in self._minutes(side).items()
        )
        return replace(TEMPLATE, queues=queues)


def sides(seeds: int = 2) -> list[SideRun]:
    """The runs of the configuration before."""
    values = dict(configuration({**TWO_QUEUES, POLICY: "fifo"}).values())
    workload = Workload((application(group(1, 1)),))
    return [SideRun("", values, workload, nodes(), RunOptions(seed=seed), False) for seed in range(1, seeds + 1)]


def goals_of(*texts: str, minimise: str = "", space: Space = CAPACITIES) -> SearchGoals:
    """Goals for the imagined cluster."""
    objective = Objective(minimise, *parse_measure(minimise)) if minimise else None
    return SearchGoals(tuple(with_paths(parse_expectation(text), KNOWN) for text in texts), objective, space)


def write(directory: Path, text: str) -> Path:
    path = directory / "goals.yaml"
    path.write_text(text)
    return path
