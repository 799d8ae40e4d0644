"""One application that asks for very much: it costs others little, and what is beyond a limit is refused whole."""

from __future__ import annotations

from typing import ClassVar

import pytest

from rm.scheduler.allocator import KEYS_A_VISIT_MAX
from tests.rm.scheduler.cluster import GB, ONE_QUEUE, Cluster, row
from yarn.asks import ResourceRequest


class CountedInt(int):
    """A priority that counts how often it is compared."""

    comparisons: ClassVar[int] = 0

    def __eq__(self, other: object) -> bool:
        CountedInt.comparisons += 1
        return int(self) == other

    def __lt__(self, other: int) -> bool:
        CountedInt.comparisons += 1
        return int(self).__lt__(other)

    __hash__ = int.__hash__


@pytest.fixture
def cluster() -> Cluster:
    """An application whose master runs on n1; n2 is empty."""
    cluster = Cluster(ONE_QUEUE)
    cluster.node("n1", 16 * GB)
    cluster.node("n2", 16 * GB)
    cluster.run("app1", "n1")
    return cluster


def comparisons_of(cluster: Cluster, rows: list[ResourceRequest]) -> int:
    CountedInt.comparisons = 0
    cluster.send("app1", rows)
    return CountedInt.comparisons


def keyed_rows(count: int, wanted: int = 1) -> list[ResourceRequest]:
    return [row(wanted, priority=CountedInt(number)) for number in range(count)]


@pytest.mark.parametrize("wanted", [1, 0], ids=["asked for", "withdrawn"])
def test_distinct_priorities_cost_n_log_n(cluster: Cluster, wanted: int) -> None:
    """Eight times the keys may cost little more than eight times the comparisons; a scan costs sixty-four times."""
    costs = []
    for count in (500, 4000):
        cluster.send("app1", keyed_rows(count, 1 - wanted))
        costs.append(comparisons_of(cluster, keyed_rows(count, wanted)))
    assert costs[1] < 16 * costs[0]


def strict_rows(count: int) -> list[ResourceRequest]:
    """Keys of which no node ever comes into question."""
    return [row(1, priority=number, relax=False) for number in range(1, count + 1)]


def test_a_visit_looks_at_a_bounded_number_of_keys(cluster: Cluster) -> None:
    cluster.send("app1", strict_rows(3 * KEYS_A_VISIT_MAX))
    looked_at = cluster.attempt("app1").missed_non_partitioned
    cluster.beat("n2")
    assert len(looked_at) == KEYS_A_VISIT_MAX
    cluster.beat("n2")
    assert len(looked_at) == 2 * KEYS_A_VISIT_MAX


def test_a_key_behind_many_others_is_served_by_a_later_visit(cluster: Cluster) -> None:
    last = 2 * KEYS_A_VISIT_MAX + 1
    cluster.send("app1", [*strict_rows(last - 1), row(2, priority=last)])
    assert cluster.beat("n2") == []
    cluster.beat("n1")
    assert cluster.beat("n2") == []
    assert cluster.beat("n2") == ["app1/2 on n2 1024"]
    assert cluster.beat("n2") == ["app1/3 on n2 1024"], "the visit after a placement goes on where that one was"


def test_after_the_last_key_the_first_one_is_looked_at_again(cluster: Cluster) -> None:
    count = KEYS_A_VISIT_MAX + 1
    cluster.send("app1", strict_rows(count))
    cluster.beat("n2", 2)
    cluster.send("app1", [row(1, priority=1)])
    assert cluster.beat("n2") == ["app1/2 on n2 1024"]


def test_few_keys_are_all_looked_at_in_one_visit(cluster: Cluster) -> None:
    cluster.send("app1", [*strict_rows(KEYS_A_VISIT_MAX - 1), row(1, priority=KEYS_A_VISIT_MAX)])
    assert cluster.beat("n2") == ["app1/2 on n2 1024"]
