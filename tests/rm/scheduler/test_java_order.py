"""Hash codes and the order of Java's hash maps, compared with the output of a JVM."""

from __future__ import annotations

import pytest

from rm.scheduler.model.requests import SchedulerKey, key_hash
from yarn.ids import NodeId, node_hash
from yarn.java.hash_order import hash_order, string_hash


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("hello", 99162322),
        ("root.a", -925313451),
        ("root.engineering.development", -1629862444),
        ("ünïcode", -609351766),
    ],
)
def test_a_string_hashes_as_in_java(text: str, expected: int) -> None:
    assert string_hash(text) == expected % 2**32


def test_a_node_hashes_as_in_java() -> None:
    assert node_hash(NodeId("h1", 1)) == 946181087


def test_a_hash_map_iterates_by_bucket() -> None:
    """A HashMap of seven queues, inserted in the order of the list."""
    names = ["a", "b", "c", "default", "engineering", "support", "marketing"]
    ordered = hash_order([f"root.{name}" for name in names], string_hash)
    assert ordered == [f"root.{name}" for name in ("engineering", "support", "default", "a", "b", "c", "marketing")]


def test_a_large_map_has_more_buckets() -> None:
    ordered = hash_order([f"root.q{i}" for i in range(20)], string_hash)
    expected = (0, 2, 1, 4, 3, 6, 18, 5, 19, 8, 7, 14, 9, 15, 16, 17, 10, 11, 12, 13)
    assert ordered == [f"root.q{i}" for i in expected]


def test_nodes_are_iterated_by_bucket() -> None:
    ordered = hash_order([NodeId(f"h{i}", 1) for i in range(1, 9)], node_hash)
    assert [node_id.host for node_id in ordered] == ["h5", "h3", "h7", "h1", "h8", "h2", "h4", "h6"]


def test_keys_of_one_bucket_stay_in_the_order_of_insertion() -> None:
    assert hash_order([33, 1, 17], lambda key: key) == [33, 1, 17]


def test_a_map_that_has_been_large_keeps_its_buckets() -> None:
    """With 16 buckets, 17 shares the bucket of 1; with 32 it does not."""
    assert hash_order([17, 1], lambda key: key) == [17, 1]
    assert hash_order([17, 1], lambda key: key, peak=13) == [1, 17]


def test_a_concurrent_map_grows_one_entry_earlier() -> None:
    """ConcurrentHashMap doubles its table when it becomes three quarters full, HashMap when it exceeds that."""
    names = [f"root.q{i}" for i in range(12)]
    assert [int(name[6:]) for name in hash_order(names, string_hash)] == [6, 5, 8, 7, 9, 10, 11, 0, 2, 1, 4, 3]
    concurrent = hash_order(names, string_hash, concurrent=True)
    assert [int(name[6:]) for name in concurrent] == [0, 2, 1, 4, 3, 6, 5, 8, 7, 9, 10, 11]
    assert hash_order([17, 1], lambda key: key, peak=12) == [17, 1]
    assert hash_order([17, 1], lambda key: key, peak=12, concurrent=True) == [1, 17]


def test_request_keys_hash_by_priority_and_request_id() -> None:
    assert key_hash(SchedulerKey(False, 1, -1)) != key_hash(SchedulerKey(False, 2, -1))
    assert key_hash(SchedulerKey(False, 1, 5)) != key_hash(SchedulerKey(False, 1, 6))
