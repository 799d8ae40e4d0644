"""Changes of the scheduler's configuration, from a list of changed queues to new values."""

from __future__ import annotations

import pytest

from rm.scheduler.config import mutation
from rm.scheduler.config.mutation import (
    MutationRefused,
    QueueConfigInfo,
    SchedConfUpdateInfo,
    changed,
    values_of,
    with_values,
)
from yarn.configuration import Configuration

P = "yarn.scheduler.capacity."
VALUES = {
    f"{P}root.queues": "a,b",
    f"{P}root.a.capacity": "60",
    f"{P}root.b.capacity": "40",
    f"{P}root.b.queues": "only",
    f"{P}root.b.only.capacity": "100",
    f"{P}root.b.ordering-policy": "priority-utilization",
}


def removed(*paths: str) -> SchedConfUpdateInfo:
    return SchedConfUpdateInfo(removed=paths)


def added(path: str, **params: str | None) -> SchedConfUpdateInfo:
    return SchedConfUpdateInfo(added=(QueueConfigInfo(path, params),))


def test_a_removed_queue_goes_with_the_keys_of_all_queues_below_it() -> None:
    assert changed(VALUES, removed("root.b")) == {f"{P}root.queues": "a", f"{P}root.a.capacity": "60"}


def test_a_parent_without_children_loses_the_ordering_policy_of_a_parent() -> None:
    assert changed(VALUES, removed("root.b.only")) == {
        f"{P}root.queues": "a,b",
        f"{P}root.a.capacity": "60",
        f"{P}root.b.capacity": "40",
    }


def test_a_leaf_with_a_first_child_loses_the_ordering_policy_of_a_leaf() -> None:
    values = {**VALUES, f"{P}root.a.ordering-policy": "fair"}
    after = changed(values, added("root.a.x", capacity="100"))
    assert f"{P}root.a.ordering-policy" not in after
    assert after[f"{P}root.a.queues"] == "x"


def test_the_list_of_queues_may_refer_to_another_key() -> None:
    values = {**VALUES, "names": "a,b", f"{P}root.queues": "${names}"}
    assert changed(values, added("root.c"))[f"{P}root.queues"] == "a,b,c"


def test_a_queue_may_be_removed_and_added_in_one_change() -> None:
    change = SchedConfUpdateInfo(removed=("root.b",), added=(QueueConfigInfo("root.b", {"capacity": "40"}),))
    assert changed(VALUES, change) == {
        f"{P}root.queues": "a,b",
        f"{P}root.a.capacity": "60",
        f"{P}root.b.capacity": "40",
    }


def test_an_empty_value_unsets_a_key_of_a_queue_and_is_kept_for_the_whole_scheduler() -> None:
    change = SchedConfUpdateInfo(
        updated=(QueueConfigInfo("root.a", {"capacity": ""}),),
        global_params={f"{P}queue-mappings": "", f"{P}root.b.capacity": None},
    )
    after = changed(VALUES, change)
    assert f"{P}root.a.capacity" not in after
    assert f"{P}root.b.capacity" not in after
    assert after[f"{P}queue-mappings"] == ""


@pytest.mark.parametrize("change", [removed("root.c"), removed("root"), added("root.a"), added("c")])
def test_what_does_not_fit_is_refused_and_changes_nothing(change: SchedConfUpdateInfo) -> None:
    before = dict(VALUES)
    with pytest.raises(MutationRefused):
        changed(before, change)
    assert before == VALUES


def test_a_change_of_too_many_queues_is_refused() -> None:
    names = tuple(f"root.q{number}" for number in range(mutation.QUEUES_MAX + 1))
    with pytest.raises(MutationRefused, match="must be at most 1000"):
        changed(VALUES, removed(*names))


def test_keys_of_the_site_keep_their_values() -> None:
    """As in Hadoop, where yarn-site.xml is loaded over the stored values."""
    key = "yarn.scheduler.minimum-allocation-mb"
    conf = Configuration.of({**VALUES, key: "512"})
    merged = with_values(conf, {f"{P}root.queues": "a", key: "1024", "yarn.scheduler.other": "1"})
    assert {name: merged.get(name) for name in merged} == {
        f"{P}root.queues": "a",
        key: "512",
        "yarn.scheduler.other": "1",
    }
    assert values_of(conf) == VALUES
