"""Mission case D5: seven kinds of work, each in the queue that was made for it, as examples/archetypes runs them."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "archetypes" / "run.py"
ARCHETYPES = ["exploration", "dashboards", "ad-hoc", "preferred", "machine-learning", "batch", "always-on"]


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.case("D5")
async def test_one_archetype_gets_its_containers() -> None:
    """Only the archetype that grows and shrinks is run. A soak test runs all seven together."""
    example = runpy.run_path(str(EXAMPLE))
    async with example["scene_of_cluster"]() as scene:
        await example["explore"](scene)
    (outcome,) = scene.outcomes
    assert (outcome.archetype, outcome.held) == ("exploration", True), outcome.seen


@pytest.mark.cluster
@pytest.mark.soak
@pytest.mark.timeout(600)  # a minute on two idle cores
@pytest.mark.case("D5")
def test_all_archetypes_get_their_containers() -> None:
    command = [sys.executable, EXAMPLE, "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout, done.stderr
    outcomes = json.loads(done.stdout)
    assert [outcome["archetype"] for outcome in outcomes] == ARCHETYPES
    assert [outcome for outcome in outcomes if not outcome["held"]] == []
    assert done.returncode == 0
