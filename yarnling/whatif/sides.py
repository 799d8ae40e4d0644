"""The two sides of a comparison: each is a configuration, under which the workload is run, or the result of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.settings.release import RELEASE
from yarnling.cluster.configuration import ClusterConfiguration
from yarnling.whatif.checks import NO_QUEUE_MAP, QueueMap, refuse_if_unfit
from yarnling.whatif.figures import Figures, figures_of
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.result_file import RESULT_JSON, read_result
from yarnling.whatif.run import InputNames, Progress, RunOptions, run_what_if, what_if_configuration
from yarnling.workload.model import UNCHANGED, NodeSchedule, Workload, WorkloadNode


class Side(Struct, frozen=True):
    """The runs of one configuration. `result`: of the first seed, from which pictures are made; `figures`: of each."""

    result: WhatIfResult
    figures: tuple[Figures, ...]


class Experiment(Struct, frozen=True):
    """Inputs of the runs of one side. `name`: of the workload. `settings`: keys that are set in the configuration.

    `queue_map`: what was applied to the workload already; the remedies of errors name it.
    """

    name: str
    workload: Workload
    nodes: Sequence[WorkloadNode]
    seeds: Sequence[int]
    until_ms: int
    settings: Mapping[str, str]
    queue_map: QueueMap = NO_QUEUE_MAP
    schedule: NodeSchedule = UNCHANGED


class SideRun(Struct, frozen=True):
    """Inputs of a simulation of a side. `configuration`: {key: value}; whole, because it may happen in another process.

    `keeps_result`: without it only the figures come back.
    """

    title: str
    configuration: Mapping[str, str]
    workload: Workload
    nodes: Sequence[WorkloadNode]
    options: RunOptions
    keeps_result: bool
    schedule: NodeSchedule = UNCHANGED


def result_path(side: Path) -> Path | None:
    """The file of the result that a side names: a .json file, or a directory with result.json; None: it names a
    configuration.
    """
    if side.suffix == ".json":
        return side
    return side / RESULT_JSON if (side / RESULT_JSON).is_file() else None


def read_side(path: Path) -> Side:
    """A side from the result of an earlier run. Raises YarnException if the file is not one."""
    result = read_result(path)
    if not result.is_complete:
        raise YarnException(f"{path}: the simulation was interrupted (run it to its end to compare it)")
    return Side(result, (figures_of(result),))


def configuration_of(directory: Path, settings: Mapping[str, str]) -> ClusterConfiguration:
    """The configuration in a directory. Raises YarnException with all its faults, each with the directory."""
    if not directory.exists():
        raise YarnException(f"{directory}: no such directory (name one with *-site.xml files, or a result.json)")
    with _naming(directory):
        return what_if_configuration(directory, settings)


def runs_of(directory: Path, experiment: Experiment) -> list[SideRun]:
    """The runs of the configuration in a directory, one with each seed.

    Raises YarnException if the configuration is not valid or the workload does not fit it; each fault names the
    directory, because that of the other side may have the same.
    """
    configuration = configuration_of(directory, experiment.settings)
    with _naming(directory):
        refuse_if_unfit(
            configuration.conf,
            experiment.workload,
            experiment.nodes,
            experiment.queue_map,
            schedule=experiment.schedule,
        )
    version = experiment.settings.get(RELEASE.key)
    side = str(directory) if version is None else f"{directory} (Hadoop {version})"
    names = InputNames(Path(experiment.name).stem, side, experiment.name)
    seeds = experiment.seeds
    return [
        SideRun(
            f"{side} ({number} of {len(seeds)})" if len(seeds) > 1 else side,
            dict(configuration.conf.values()),
            experiment.workload,
            experiment.nodes,
            RunOptions(seed=seed, until_ms=experiment.until_ms, names=names, warnings=configuration.report.warnings),
            keeps_result=number == 1,
            schedule=experiment.schedule,
        )
        for number, seed in enumerate(seeds, 1)
    ]


@contextmanager
def _naming(directory: Path) -> Iterator[None]:
    """Prefix each line of a YarnException's message with the directory."""
    try:
        yield
    except YarnException as error:
        raise YarnException("\n".join(f"{directory}: {line}" for line in error.message.splitlines())) from None


def run_once(run: SideRun, progress: Progress) -> tuple[Figures, WhatIfResult | None]:
    """Simulate. Raises InternalError if a core fails."""
    conf = Configuration.of(run.configuration)
    result = run_what_if(conf, run.workload, run.nodes, run.options, progress, schedule=run.schedule)
    return figures_of(result), result if run.keeps_result else None


def side_of(outcomes: Sequence[tuple[Figures, WhatIfResult | None]]) -> Side:
    """Make a side from the outcomes of its runs, in the order of their seeds."""
    first = outcomes[0][1]
    assert first is not None, "the result of the first seed is kept"
    return Side(first, tuple(figures for figures, _ in outcomes))
