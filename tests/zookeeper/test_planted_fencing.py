"""Each planted bug of the fencing in ZooKeeper is found by a contest."""

from __future__ import annotations

import pytest

from tests.mutants.bug import PlantedBug, planted
from tests.mutants.fencing import FENCING_BUGS
from tests.zookeeper.contest import contest

SEEDS = 40


def test_there_are_at_least_twenty() -> None:
    assert len({bug.name for bug in FENCING_BUGS}) == len(FENCING_BUGS) >= 20


@pytest.mark.parametrize("bug", FENCING_BUGS, ids=[bug.name for bug in FENCING_BUGS])
def test_a_planted_bug_is_found(bug: PlantedBug) -> None:
    reached = 0
    for seed in range(1, SEEDS + 1):
        with planted(bug) as planting:
            wrong = contest(seed)
        reached += planting.count
        if wrong:
            return
    pytest.fail(f"{bug.name}: not found in {SEEDS} contests; its code ran {reached} times")
