"""kill -9 of the ResourceManager at any moment, again and again: nothing acknowledged is lost, nothing runs twice.

When it is killed, and what users do meanwhile, is drawn from a seed. A few kills always, more with `-m soak`; many
runs, and the figures of all of them:

    scripts/soak --seed 1 --runs 40 --kills 25
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.rm_soak.soak import soak, storm_soak

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.case("I4")]

KILLS = pytest.mark.parametrize("kills", [4, pytest.param(25, marks=pytest.mark.soak)])


@KILLS
async def test_every_submission_survives_the_resource_managers(seed: int, kills: int, tmp_path: Path) -> None:
    figures = await soak(seed, kills, tmp_path)
    assert figures.wrong == []
    assert sum(figures.kills.values()) == kills
    assert figures.submissions > 0
    assert figures.containers > 0


@KILLS
async def test_a_storm_of_submissions_is_stored_as_acknowledged(seed: int, kills: int, tmp_path: Path) -> None:
    figures = await storm_soak(seed, kills, tmp_path)
    assert figures.wrong == []
    assert sum(figures.kills.values()) == kills
    assert figures.submissions > kills
