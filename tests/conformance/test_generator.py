"""Random scenarios: the same from the same seed, whole, and of the features that were asked for."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.generated.features import CHANCES, NEEDS, NOTATIONS, SETS, parse
from tests.conformance.generator import ACTIONS, generate
from tests.conformance.scenario import Scenario

_DIGEST = """
import hashlib, json
from tests.conformance.generator import generate
from tests.conformance.generated.features import SETS
scenarios = [generate(seed, 60, SETS["all"]).as_json() for seed in range(20)]
print(hashlib.sha256(json.dumps(scenarios).encode()).hexdigest())
"""


def test_the_same_seed_gives_the_same_scenario_in_every_process() -> None:
    """Whatever order that process gives to its sets."""
    here = [generate(seed, 60, SETS["all"]).as_json() for seed in range(20)]
    there = subprocess.run(
        [sys.executable, "-c", _DIGEST],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "4711"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert there.stdout.strip() == hashlib.sha256(json.dumps(here).encode()).hexdigest()


@pytest.mark.parametrize("allowed", SETS)
def test_scenarios_are_whole(allowed: str) -> None:
    for seed in range(15):
        scenario = generate(seed, 120, SETS[allowed])
        assert len(scenario.steps) == 120
        assert scenario.hangs_together
        assert all(isinstance(value, str) for value in scenario.configuration.values())


@pytest.mark.parametrize("allowed", SETS)
def test_only_what_is_allowed_is_used(allowed: str) -> None:
    needed = {NEEDS[feature] for feature in SETS[allowed] & NEEDS.keys()}
    for seed in range(15):
        features = set(generate(seed, 20, SETS[allowed]).about["features"])
        assert features <= SETS[allowed] | needed
        assert len(features & set(NOTATIONS)) == 1


def test_basic_scenarios_have_percentages_and_memory_alone() -> None:
    for seed in range(15):
        scenario = generate(seed, 100, SETS["basic"])
        assert "DefaultResourceCalculator" in scenario.configuration["yarn.scheduler.capacity.resource-calculator"]
        assert not _ops(scenario) & {"refresh_queues", "label_nodes", "preempt", "move", "fail_am", "lose_node"}


@pytest.mark.parametrize(
    ("feature", "op"),
    [
        ("refresh", "refresh_queues"),
        ("queues", "refresh_queues"),
        ("states", "refresh_queues"),
        ("autocreate", "remove_idle_queues"),
        ("moves", "move"),
        ("priority", "set_priority"),
        ("faults", "lose_node"),
        ("keep", "fail_am"),
        ("labels", "label_nodes"),
        ("expiry", "expire_container"),
        ("preemption", "preempt"),
        ("restart", "restart_rm"),
    ],
)
def test_a_feature_shows_in_the_steps(feature: str, op: str) -> None:
    allowed = parse(f"{feature},weight")
    assert any(op in _ops(generate(seed, 400, allowed, every=True)) for seed in range(4))


@pytest.mark.parametrize(
    ("feature", "notation", "key", "value"),
    [
        ("zero", "percent", r"\.capacity$", "0"),
        ("zero", "weight", r"\.capacity$", "0w"),
        ("zero", "percent", r"user-limit-factor$", "-1"),
        ("priorityacls", "percent", r"\.acl_application_max_priority$", r"\[user=.*max_priority=\d.*"),
        ("appnames", "percent", r"queue-placement-rules\.app-name$", r"a\d+:root\..*"),
        ("partitions", "percent", r"\.ordering-policy$", "fifo-with-partitions"),
        ("labels", "percent", r"accessible-node-labels\.x\.maximum-capacity$", r"[\d.]+"),
        ("labels", "weight", r"accessible-node-labels\.x\.maximum-am-resource-percent$", r"[\d.]+"),
        ("amblacklist", "percent", r"am-scheduling\.node-blacklisting-enabled$", "true"),
        ("limits", "percent", r"root\..*\.maximum-allocation$", r"memory-mb=\d+,vcores=\d"),
    ],
)
def test_a_feature_shows_in_the_configuration(feature: str, notation: str, key: str, value: str) -> None:
    allowed = parse(f"{feature},{notation}")
    configurations = [generate(seed, 20, allowed, every=True).configuration for seed in range(20)]
    values = [text for found in configurations for name, text in found.items() if re.search(key, name)]
    assert any(re.fullmatch(value, text) for text in values)


@pytest.mark.parametrize("notation", NOTATIONS)
def test_capacities_are_written_in_one_notation(notation: str) -> None:
    written_as = {
        "percent": r"[\d.]+",
        "weight": r"[\d.]+w",
        "absolute": r"\[memory=\d+,vcores=\d+\]",
        "vectors": r"[\d.]+w?|\[.*=.*\]",
    }[notation]
    for seed in range(10):
        configuration = generate(seed, 10, parse(f"{notation},deep")).configuration
        written = [value for key, value in configuration.items() if key.endswith(".capacity")]
        assert written
        assert all(re.fullmatch(written_as, value) for value in written)


def test_percentages_of_siblings_add_up() -> None:
    for seed in range(20):
        configuration = generate(seed, 10, parse("percent,deep")).configuration
        for key, names in configuration.items():
            if key.endswith(".queues"):
                parent = key.removesuffix(".queues")
                total = sum(float(configuration[f"{parent}.{name}.capacity"]) for name in names.split(","))
                assert total == pytest.approx(100)


def test_a_wrong_name_lists_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"no such feature: gpus \(sets: basic,.*types"):
        parse("percent,gpus")


def test_every_action_belongs_to_a_feature_that_there_is() -> None:
    assert {feature for _, feature, _ in ACTIONS} <= {None, *CHANCES}


def test_restarts_are_unquiet() -> None:
    """Nodes come back in all ways, and a restart may bring another configuration."""
    steps = [step for seed in range(60) for step in generate(seed, 200, parse("restart,reconfigured")).steps]
    assert any("properties" in step for step in steps if step["op"] == "restart_rm")
    assert any(step.get("healthy") is False for step in steps if step["op"] == "register_node")
    assert any(step["op"] == "resync" for step in steps)


def test_nothing_is_kept_across_attempts_without_work_preserving_recovery() -> None:
    for seed in range(40):
        scenario = generate(seed, 200, parse("restart,keep"))
        if scenario.configuration["yarn.resourcemanager.work-preserving-recovery.enabled"] == "false":
            assert not any("keep_containers" in step for step in scenario.steps)


def _ops(scenario: Scenario) -> set[str]:
    return {step["op"] for step in scenario.steps}
