"""What cluster a test wants: options, markers over them, and all that is wrong with markers."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarn.errors import InvalidArgumentException
from yarnling.testing.spec import ClusterSpec, Wish, spec_of

DEFAULTS = ClusterSpec(nodes=2, settings=(("a", "1"), ("b", "1")))


def wish(*positional: object, **named: object) -> Wish:
    return Wish(positional, named, Path("/tests"))


def test_a_later_wish_wins_and_settings_are_taken_key_by_key() -> None:
    spec = spec_of(DEFAULTS, [wish(nodes=3, conf={"b": "2"}), wish(memory_mb=512, settings={"c": "3"})])
    assert spec == ClusterSpec(nodes=3, memory_mb=512, settings=(("a", "1"), ("b", "2"), ("c", "3")))


def test_a_directory_is_meant_from_where_the_test_is() -> None:
    assert spec_of(DEFAULTS, [wish(conf="conf")]).conf == "/tests/conf"
    assert spec_of(DEFAULTS, [wish(conf=Path("/etc/hadoop"))]).conf == "/etc/hadoop"


def test_equal_wishes_are_one_spec_whatever_their_order() -> None:
    one, other = wish(conf={"x": "1", "y": "2"}), wish(conf={"y": "2", "x": "1"})
    assert len({spec_of(DEFAULTS, [one]), spec_of(DEFAULTS, [other])}) == 1


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (wish(4), "yarn_cluster: 4: name it, such as nodes=4"),
        (wish(node=4), r"node: there is no such argument \(there are nodes, memory_mb"),
        (wish(nodes="4"), "nodes = '4': must be a number"),
        (wish(racks=True), "racks = True: must be a number"),
        (wish(fast=1), "fast = 1: must be True or False"),
        (wish(scope="package"), "scope = 'package': must be one of function, class, module, session"),
        (wish(conf={"a": 1}), r"conf: 'a' = 1: must be texts \(write 'a': '1'\)"),
        (wish(settings="a=1"), "settings = 'a=1': must be {key: value}"),
    ],
)
def test_what_is_wrong_is_told(wrong: Wish, told: str) -> None:
    with pytest.raises(InvalidArgumentException, match=told):
        spec_of(DEFAULTS, [wrong])


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(InvalidArgumentException) as refusal:
        spec_of(DEFAULTS, [wish(1, nodes="2", fast=3)])
    assert len(refusal.value.message.splitlines()) == 3
