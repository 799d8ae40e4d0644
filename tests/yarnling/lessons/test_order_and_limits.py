"""Claims of lessons 13 to 17, against their runs: ordering, vcores, labels, mapping, limits of applications."""

from __future__ import annotations

import pytest

from rm.scheduler.config.queue_configuration import FAIR, FIFO, FIFO_FOR_PENDING, FIFO_WITH_PARTITIONS
from yarn.resource import NONE, Resource
from yarn.settings.scheduler import MAXIMUM_AM_RESOURCE_PERCENT
from yarnling.lessons.catalogue import find_lesson
from yarnling.lessons.chapters import limits, ordering
from yarnling.lessons.chapters.ordering import POLICIES
from yarnling.lessons.scene.story import Rows, Story, Text


def measured(name: str, *setting: int | str) -> dict[str, int | float | str]:
    return find_lesson(name).play(*setting).measured


def numbers(name: str, *setting: int | str) -> dict[str, float]:
    return {key: value for key, value in measured(name, *setting).items() if not isinstance(value, str)}


def tables(story: Story) -> list[tuple[tuple[str, ...], ...]]:
    return [part.rows for part in story.parts if isinstance(part, Rows)]


def words(story: Story) -> str:
    return " ".join(part.text for part in story.parts if isinstance(part, Text))


# Lesson 13: cases D1, A2; recordings orders-512, priorities-512, gap-3-fair-tie-by-start


def test_the_policies_are_all_that_a_leaf_may_have() -> None:
    assert set(POLICIES) == {FIFO, FAIR, FIFO_FOR_PENDING, FIFO_WITH_PARTITIONS}


def test_fifo_shuts_the_late_application_out_and_fair_serves_it_next() -> None:
    fifo, fair = numbers("ordering", "fifo"), numbers("ordering", "fair")
    assert (fifo["late_am_ms"], fair["late_am_ms"]) == (51517, 20517)
    assert fifo["early_end_ms"] < fair["early_end_ms"]
    assert fifo["late_end_ms"] > fair["late_end_ms"]


def compared(policy: str) -> dict[tuple[str, str], tuple[str, ...]]:
    """{(ordering-policy, priority of late): (AM of late, early ends, late ends)}."""
    return {(row[0], row[1]): row[2:] for row in tables(find_lesson("ordering").play(policy))[-1]}


def test_fifo_for_pending_apps_serves_what_was_recovered_before_a_higher_priority() -> None:
    seen = compared(FIFO_FOR_PENDING)
    assert seen[FIFO, "0"] == seen[FIFO_FOR_PENDING, "0"] == seen[FIFO_FOR_PENDING, "5"]
    assert float(seen[FIFO, "5"][0].removesuffix(" s")) + 20 < float(seen[FIFO_FOR_PENDING, "5"][0].removesuffix(" s"))


def test_fifo_with_partitions_keeps_the_labelled_node_for_the_application_with_the_label() -> None:
    seen = compared(FIFO_WITH_PARTITIONS)
    (fifo_am, fifo_end, _), (am, end, _) = (
        [float(cell.removesuffix(" s")) for cell in seen[policy, "0"]] for policy in (FIFO, FIFO_WITH_PARTITIONS)
    )
    assert am < 22 < fifo_am
    assert end > fifo_end


@pytest.mark.parametrize("policy", [FIFO_FOR_PENDING, FIFO_WITH_PARTITIONS])
def test_without_a_restart_and_without_labels_the_two_are_fifo(policy: str) -> None:
    assert ordering.seen(policy, 0, scene=FIFO) == measured("ordering", FIFO)


def test_a_higher_priority_goes_before_age_with_fifo_and_is_ignored_by_fair() -> None:
    assert int(measured("ordering", FIFO, 5)["late_am_ms"]) < 21_000
    assert measured("ordering", FAIR, 5) == measured("ordering", FAIR, 0)


def test_requests_of_the_lower_number_are_served_first() -> None:
    (_, _, by_priority) = tables(find_lesson("ordering").play("fifo"))
    assert [row[:2] for row in by_priority] == [("1", "40"), ("2", "8")]
    last_of_first, first_of_second = by_priority[0][3], by_priority[1][2]
    assert float(last_of_first.removesuffix(" s")) <= float(first_of_second.removesuffix(" s"))


# Lesson 14: case D2


def test_the_default_calculator_shows_one_vcore_a_container_and_fills_nodes_by_memory() -> None:
    assert measured("dominant", "default") == {"shown": 4, "busiest": 20, "memory_mb": 32768, "etl": 25}


def test_the_dominant_calculator_stops_at_the_vcores_of_the_nodes() -> None:
    facts = measured("dominant", "dominant")
    assert (facts["shown"], facts["busiest"], facts["etl"]) == (13, 8, 3)


@pytest.mark.parametrize(("calculator", "vcores", "counts"), [("default", "25%", "22%"), ("dominant", "81%", "81%")])
def test_an_application_counts_by_its_memory_or_by_its_dominant_share(
    calculator: str, vcores: str, counts: str
) -> None:
    assert tables(find_lesson("dominant").play(calculator))[2][0] == ("spark", "22%", vcores, counts)


# Lesson 15: cases G1, G2, E7; recording labels-511


def test_an_exclusive_label_is_not_lent() -> None:
    facts = measured("labels", "exclusive")
    assert (facts["borrowed"], facts["bob"]) == (0, "ended")


def test_a_shared_label_is_lent_and_given_back_only_by_preemption() -> None:
    kept, taken = measured("labels", "shared"), measured("labels", "shared-with-preemption")
    assert (kept["borrowed"], kept["killed"], kept["bob"]) == (8, 0, "waits")
    assert (taken["borrowed"], taken["left"], taken["killed"], taken["bob"]) == (8, 3, 5, "ended")


# Lesson 16: cases C5, C4; recordings mappings-512, rules-512


@pytest.mark.parametrize(
    ("rules", "queues"),
    [
        ("user-first", ("root.etl", "root.adhoc", "root.default", "root.x.dev", "none")),
        ("group-first", ("root.adhoc", "root.adhoc", "root.default", "root.x.dev", "none")),
        ("group-first-override", ("root.adhoc", "root.adhoc", "root.default", "root.adhoc", "root.adhoc")),
        ("json", ("root.etl", "root.adhoc", "none", "root.x.dev", "none")),
    ],
)
def test_the_first_rule_that_matches_decides(rules: str, queues: tuple[str, ...]) -> None:
    facts = measured("mapping", rules)
    assert tuple(facts[name] for name in ("import", "query", "backup", "test", "trial")) == queues


def test_a_json_rule_matches_the_name_of_an_application() -> None:
    assert measured("mapping", "json")["report"] == "root.x.dev"


def test_a_short_name_of_two_leaves_is_ambiguous_and_a_rule_that_rejects_says_so() -> None:
    told = words(find_lesson("mapping").play("json"))
    assert "ambiguous queue: dev please use full queue path instead" in told
    assert "backup: refused: Application submission have been rejected by a mapping rule" in told


# Lesson 17: cases C1, C2


def test_the_default_share_of_ams_is_ten_percent() -> None:
    lesson = find_lesson("limits")
    assert lesson.option.default == 10
    assert MAXIMUM_AM_RESOURCE_PERCENT.default == "0.1"


@pytest.mark.parametrize(
    ("percent", "running", "waiting", "limits_mb"),
    [(1, (1, 0), (4, 5), (1024, 1024)), (10, (2, 2), (3, 3), (4096, 2048)), (20, (4, 4), (1, 1), (8192, 4096))],
)
def test_ams_above_the_share_of_queue_or_user_wait(
    percent: int, running: tuple[int, int], waiting: tuple[int, int], limits_mb: tuple[int, int]
) -> None:
    facts = measured("limits", percent)
    assert (facts["ann_runs"], facts["bob_runs"]) == running
    assert (facts["ann_waits"], facts["bob_waits"]) == waiting
    assert (facts["queue_limit_mb"], facts["user_limit_mb"]) == limits_mb


def test_a_parent_has_no_am_limits() -> None:
    stage = limits.set_up(10)
    stage.run(10)
    assert stage.view.am_limits("root") == (NONE, NONE)
    assert stage.view.am_limits("root.b")[0] == Resource(4096, 1)


def test_applications_above_the_limit_of_a_user_or_a_queue_are_refused() -> None:
    story = find_lesson("limits").play(10)
    assert (story.measured["ann_refused"], story.measured["bob_refused"]) == (2, 1)
    reasons = {row[0]: row[2] for row in tables(story)[1]}
    assert reasons["ann-6"] == "Queue root.a already has 5 applications from user ann"
    assert reasons["bob-6"] == "Queue root.a already has 10 applications"
