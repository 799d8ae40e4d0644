"""Hadoop's own clients see the same on yarnling's cluster as on Hadoop's: each scene of java/scenes, step by step.

recordings/ has what Hadoop's cluster showed (scripts/record-hadoop), differences.py what differs and why.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hadoop import scenes
from tests.hadoop.conftest import Shared
from tests.hadoop.differences import DIFFERENCES, RACES, differences

RECORDED = {
    name: (configuration, steps)
    for configuration, topics in scenes.TOPICS.items()
    for topic in topics
    for name, steps in scenes.read(scenes.RECORDINGS / f"{topic}.jsonl").items()
}


@pytest.mark.hadoop
@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("scene", RECORDED)
def test_scene_is_as_on_hadoop(scene: str, client_jars: Path, shared: Shared) -> None:
    configuration, recorded = RECORDED[scene]

    def play(work: Path) -> None:
        scenes.write(work / "all.jsonl", scenes.play(work, configuration, scenes.TOPICS[configuration]))

    played = scenes.read(shared(configuration, play) / "all.jsonl")
    found = differences(recorded, played[scene])
    allowed = {**DIFFERENCES.get(scene, {}), **RACES.get(scene, {})}
    unexpected = [str(each) for each in found if not each.is_in(allowed)]
    assert not unexpected, "\n".join(unexpected)
    listed = DIFFERENCES.get(scene, {})
    stale = [key for key in listed if not any(each.is_in({key: listed[key]}) for each in found)]
    assert not stale, f"differences.py lists what no longer differs: {stale}"


def test_there_are_forty_scenes() -> None:
    assert len(RECORDED) >= 40


def test_no_scene_failed_when_it_was_recorded() -> None:
    assert [name for name, (_, steps) in RECORDED.items() if any(step == "the scene failed" for step, _ in steps)] == []


def test_every_listed_difference_belongs_to_a_recorded_step() -> None:
    steps = {(name, step) for name, (_, recorded) in RECORDED.items() for step, _ in recorded}
    for listed in (DIFFERENCES, RACES):
        assert {(name, key[0]) for name, keys in listed.items() for key in keys} <= steps


def test_a_change_is_found_wherever_it_stands() -> None:
    recorded: scenes.Steps = [("one", {"a": [1, {"b": "x"}]}), ("two", 2)]
    assert differences(recorded, recorded) == []
    assert [
        (each.step, each.path) for each in differences(recorded, [("one", {"a": [1, {"b": "y"}]}), ("two", 2)])
    ] == [("one", "a.1.b")]
    assert [each.step for each in differences(recorded, recorded[:1])] == ["two"]
    assert [(each.step, each.path) for each in differences(recorded, [("one", {}), ("two", 2)])] == [("one", "a")]
