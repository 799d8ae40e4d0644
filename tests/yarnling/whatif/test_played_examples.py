"""The results of the examples are byte-equal, whether their nodes and AMs are played or send every message."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.yarnling.whatif.small_clusters import MINUTE_MS
from yarnling.whatif.result import WhatIfResult
from yarnling.whatif.result_file import encode_result
from yarnling.whatif.run import RunOptions, run_what_if, what_if_configuration
from yarnling.workload.formats import read_node_list, read_workload

EXAMPLES = Path(__file__).parents[3] / "examples" / "what-if"
SIDES = sorted(conf.relative_to(EXAMPLES) for conf in EXAMPLES.glob("*/*") if conf.is_dir())
SMALL = [side for side in SIDES if side.parts[0] != "day"]


def compare(side: Path, until_ms: int) -> None:
    """Compare the results of one side of an example in all but what the runs cost."""
    full, played = (result_of(side, until_ms, played=played) for played in (False, True))
    assert played.events < full.events
    one, two = (encode_result(replace(result, events=0, wall_s=0.0)) for result in (full, played))
    assert one == two


def result_of(side: Path, until_ms: int, *, played: bool) -> WhatIfResult:
    example = EXAMPLES / side.parts[0]
    conf = what_if_configuration(EXAMPLES / side, {}).conf
    workload = read_workload(example / "workload.yaml")
    listed = read_node_list(next(example.glob("autoscaled.yaml"), example / "nodes.yaml"))
    options = RunOptions(until_ms=until_ms, played=played)
    return run_what_if(conf, workload, listed.nodes, options, schedule=listed.schedule)


def test_all_examples_are_found() -> None:
    assert len(SMALL) >= 6


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("side", SMALL, ids=str)
def test_the_first_half_hour_of_an_example_is_the_same_if_played(side: Path) -> None:
    compare(side, 30 * MINUTE_MS)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("side", SIDES, ids=str)
def test_an_example_is_the_same_if_played(side: Path) -> None:
    compare(side, 120 * MINUTE_MS)
