"""Hostile messages over all RPCs, single ones and whole sequences: they are refused or handled, and no daemon crashes.

A few thousand messages here; as many as wanted, with another seed each time:

    scripts/soak --fuzz --seed 1 --messages 200000
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.rpc_fuzz.caller import RPCS
from tests.cluster.rpc_fuzz.run import fuzz

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
MESSAGES = 1500


@pytest.mark.parametrize(
    ("first_seed", "messages"),
    [(1, MESSAGES), (2, MESSAGES), pytest.param(3, 100_000, marks=pytest.mark.soak)],
)
async def test_no_message_crashes_a_daemon(tmp_path: Path, first_seed: int, messages: int) -> None:
    """Seed 1 with the ResourceManager's invariants checked after each step, seed 2 without."""
    figures = await fuzz(first_seed, messages, tmp_path)
    assert figures.wrong == []
    assert figures.outcomes.sent == messages
    by_rpc = figures.outcomes.by_rpc
    assert {rpc.name for rpc in RPCS} <= by_rpc.keys()
    for name in ("submitApplication", "registerApplicationMaster", "allocate", "nodeHeartbeat", "refreshQueues"):
        assert by_rpc[name]["ok"] > 0, name
