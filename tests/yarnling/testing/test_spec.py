"""The cluster that a test requests: options, markers that override them, and faults in markers."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarn.errors import InvalidArgumentException
from yarnling.testing.spec import ClusterRequest, ClusterSpec, spec_of

DEFAULTS = ClusterSpec(nodes=2, settings=(("a", "1"), ("b", "1")))


def request(*positional: object, **named: object) -> ClusterRequest:
    return ClusterRequest(positional, named, Path("/tests"))


def test_a_later_request_wins_and_settings_are_merged_by_key() -> None:
    spec = spec_of(DEFAULTS, [request(nodes=3, conf={"b": "2"}), request(memory_mb=512, settings={"c": "3"})])
    assert spec == ClusterSpec(nodes=3, memory_mb=512, settings=(("a", "1"), ("b", "2"), ("c", "3")))


def test_a_directory_is_relative_to_the_test() -> None:
    assert spec_of(DEFAULTS, [request(conf="conf")]).conf == "/tests/conf"
    assert spec_of(DEFAULTS, [request(conf=Path("/etc/hadoop"))]).conf == "/etc/hadoop"


def test_the_order_of_settings_does_not_matter() -> None:
    one, other = request(conf={"x": "1", "y": "2"}), request(conf={"y": "2", "x": "1"})
    assert len({spec_of(DEFAULTS, [one]), spec_of(DEFAULTS, [other])}) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (request(4), "yarn_cluster: 4: use a keyword, for example nodes=4"),
        (request(node=4), r"node: unknown argument \(known: nodes, memory_mb"),
        (request(nodes="4"), "nodes = '4': must be a number"),
        (request(racks=True), "racks = True: must be a number"),
        (request(fast=1), "fast = 1: must be True or False"),
        (request(scope="package"), "scope = 'package': must be one of function, class, module, session"),
        (request(conf={"a": 1}), r"conf: 'a' = 1: must be strings \(write 'a': '1'\)"),
        (request(settings="a=1"), "settings = 'a=1': must be {key: value}"),
    ],
)
def test_faults_are_reported(wrong: ClusterRequest, message: str) -> None:
    with pytest.raises(InvalidArgumentException, match=message):
        spec_of(DEFAULTS, [wrong])


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(InvalidArgumentException) as refusal:
        spec_of(DEFAULTS, [request(1, nodes="2", fast=3)])
    assert len(refusal.value.message.splitlines()) == 3
