"""An application with very many requests costs others little; a call above a limit is refused as a whole."""

from __future__ import annotations

from typing import ClassVar

import pytest

from rm.scheduler.placement.allocator import KEYS_A_VISIT_MAX
from tests.compiled import only_interpreted
from tests.rm.scheduler.cluster import GB, ONE_QUEUE, Cluster, row
from yarn.containers import ResourceRequest, UpdateContainerRequest
from yarn.ids import ContainerId
from yarn.resource import Resource
from yarn.states import ContainerUpdateType

LABELLED = {
    **ONE_QUEUE,
    "yarn.node-labels.enabled": "true",
    "root.a.accessible-node-labels.x.capacity": "100",
}


class CountedInt(int):
    """A priority that counts its comparisons."""

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
    """An application whose AM runs on n1; n2 is empty."""
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


@only_interpreted
@pytest.mark.parametrize("wanted", [1, 0], ids=["requested", "withdrawn"])
def test_distinct_priorities_cost_n_log_n(cluster: Cluster, wanted: int) -> None:
    """Eight times the keys may cost little more than eight times the comparisons; a scan costs 64 times as many."""
    costs = []
    for count in (500, 4000):
        cluster.send("app1", keyed_rows(count, 1 - wanted))
        costs.append(comparisons_of(cluster, keyed_rows(count, wanted)))
    assert costs[1] < 16 * costs[0]


def strict_rows(count: int) -> list[ResourceRequest]:
    """Keys that no node can ever serve."""
    return [row(1, priority=number, relax=False) for number in range(1, count + 1)]


def test_a_visit_looks_at_a_bounded_number_of_keys(cluster: Cluster) -> None:
    cluster.send("app1", strict_rows(3 * KEYS_A_VISIT_MAX))
    looked_at = cluster.attempt("app1").missed_non_partitioned
    cluster.heartbeat("n2")
    assert len(looked_at) == KEYS_A_VISIT_MAX
    cluster.heartbeat("n2")
    assert len(looked_at) == 2 * KEYS_A_VISIT_MAX


def test_a_key_behind_many_others_is_served_by_a_later_visit(cluster: Cluster) -> None:
    last = 2 * KEYS_A_VISIT_MAX + 1
    cluster.send("app1", [*strict_rows(last - 1), row(2, priority=last)])
    assert cluster.heartbeat("n2") == []
    cluster.heartbeat("n1")
    assert cluster.heartbeat("n2") == []
    assert cluster.heartbeat("n2") == ["app1/2 on n2 1024"]
    assert cluster.heartbeat("n2") == ["app1/3 on n2 1024"], (
        "the next visit continues after the key of the last placement"
    )


def test_after_the_last_key_the_first_one_is_looked_at_again(cluster: Cluster) -> None:
    count = KEYS_A_VISIT_MAX + 1
    cluster.send("app1", strict_rows(count))
    cluster.heartbeat("n2", 2)
    cluster.send("app1", [row(1, priority=1)])
    assert cluster.heartbeat("n2") == ["app1/2 on n2 1024"]


def test_few_keys_are_all_looked_at_in_one_visit(cluster: Cluster) -> None:
    cluster.send("app1", [*strict_rows(KEYS_A_VISIT_MAX - 1), row(1, priority=KEYS_A_VISIT_MAX)])
    assert cluster.heartbeat("n2") == ["app1/2 on n2 1024"]


def test_keys_of_another_partition_do_not_block_later_keys() -> None:
    """Skipping them changes nothing else, so the visit must count as one with an effect."""
    cluster = Cluster(LABELLED)
    cluster.node("n1", 16 * GB)
    cluster.label("n3", "x")
    cluster.run("app1", "n1")
    elsewhere = [row(1, priority=number, label="x") for number in range(1, 2 * KEYS_A_VISIT_MAX + 1)]
    cluster.send("app1", [*elsewhere, row(1, priority=len(elsewhere) + 1)])
    assert cluster.heartbeat("n1", 2) == []
    assert cluster.heartbeat("n1") == ["app1/2 on n1 1024"]


def test_updates_of_different_containers_are_not_compared(cluster: Cluster) -> None:
    cluster.request("app1", 12)
    cluster.heartbeat("n2", 12)
    cluster.poll("app1")
    attempt = cluster.attempt("app1")
    updates = [
        UpdateContainerRequest(
            ContainerId(attempt.attempt_id, CountedInt(number)),
            0,
            ContainerUpdateType.INCREASE_RESOURCE,
            Resource(2 * GB, 1),
        )
        for number in range(2, 14)
    ]
    CountedInt.comparisons = 0
    accepted, errors = cluster.scheduler.check_updates("a", updates)
    assert (len(accepted), errors) == (12, [])
    assert CountedInt.comparisons < 4 * len(updates), "each lookup takes one or two comparisons"
