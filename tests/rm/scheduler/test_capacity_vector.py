"""Capacities with a unit for each resource type: QueueCapacityConfigParser."""

from __future__ import annotations

import time

import pytest

from rm.scheduler.config.configured_capacity import NO_VECTOR, CapacityUnit, CapacityVector, parse_vector
from yarn.resource import ResourceTypes

TWO_TYPES = ResourceTypes()
THREE_TYPES = ResourceTypes(("gpu",))


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("50", "[memory-mb=50.0%,vcores=50.0%]"),
        ("33.3", "[memory-mb=33.29999923706055%,vcores=33.29999923706055%]"),
        ("5w", "[memory-mb=5.0w,vcores=5.0w]"),
        ("[memory=50%,vcores=2w]", "[memory-mb=50.0%,vcores=2.0w]"),
        ("[memory-mb=1024,vcores=30%]", "[memory-mb=1024.0,vcores=30.0%]"),
        ("[ memory = 2 w , vcores = 3 ]", "[memory-mb=2.0w,vcores=3.0]"),
        ("[memory=8Gi,vcores=8]", "[memory-mb=8192.0,vcores=8.0]"),
        ("[memory=1.9Gi,vcores=8]", "[memory-mb=1024.0,vcores=8.0]"),
        ("[memory=1G,vcores=8]", "[memory-mb=953.0,vcores=8.0]"),
        ("[memory=50%]", "[memory-mb=50.0%,vcores=0.0]"),
        ("[memory=50%,vcores=,x=1]", "[memory-mb=50.0%,x=1.0,vcores=0.0]"),
        ("[memory=5q,vcores=-3]", "[memory-mb=5.0,vcores=0.0]"),
    ],
)
def test_units_are_by_resource_type(text: str, printed: str) -> None:
    """Blanks do not matter, sizes become Mi, an unknown unit is none, and what is not named is the amount 0."""
    assert str(parse_vector(text, TWO_TYPES)) == printed


@pytest.mark.parametrize(
    "text", ["", "w", "-1", "1e1", "5ww", "5 %", "[]", "[vcores=5]", "[memory=0w]", "[memory=5,vcores=]"]
)
def test_what_is_not_understood_says_nothing(text: str) -> None:
    """Nor do brackets without memory."""
    assert parse_vector(text, TWO_TYPES) == NO_VECTOR


@pytest.mark.parametrize("text", ["1.2.3", "[memory=1.2.3%,vcores=1]", "[memory=%,vcores=1]"])
def test_a_number_that_is_none_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        parse_vector(text, TWO_TYPES)


def test_types_that_the_cluster_does_not_have_are_kept_apart() -> None:
    vector = parse_vector("[memory=5w,vcores=5w,disks=3]", TWO_TYPES)
    assert vector.unknown == ("disks",)
    assert vector.common_weight is None, "disks are an amount"


@pytest.mark.parametrize(
    ("text", "types", "weight"),
    [
        ("5w", TWO_TYPES, 5.0),
        ("[memory=5w,vcores=5w]", TWO_TYPES, 5.0),
        ("[memory=5w,vcores=5w]", THREE_TYPES, None),
        ("[memory=5w,vcores=5w,gpu=5w]", THREE_TYPES, 5.0),
        ("[memory=5w,vcores=4w]", TWO_TYPES, None),
        ("[memory=5,vcores=5]", TWO_TYPES, None),
    ],
)
def test_the_same_weight_of_all_types_is_that_weight(text: str, types: ResourceTypes, weight: float | None) -> None:
    assert parse_vector(text, types).common_weight == weight


def test_amounts_of_all_types_are_absolute() -> None:
    def absolute(text: str) -> bool:
        return parse_vector(text, TWO_TYPES).is_absolute

    assert [absolute(text) for text in ("[memory=5,vcores=5]", "[memory=5]", "[memory=5,vcores=5%]", "5")] == [
        True,
        True,
        False,
        False,
    ]
    assert not CapacityVector({}).is_absolute


def test_many_types_that_do_not_end_are_found_out_quickly() -> None:
    """The pattern as Hadoop writes it tries every way to cut the text up."""
    text = "[" + ",".join(f"a-long-resource-name-{n}=123456789%" for n in range(200))
    before = time.process_time()
    assert parse_vector(text, TWO_TYPES) == NO_VECTOR
    assert time.process_time() - before < 1


def test_units_are_in_the_order_in_which_they_are_handed_out() -> None:
    assert [unit.name for unit in CapacityUnit] == ["ABSOLUTE", "PERCENTAGE", "WEIGHT"]
