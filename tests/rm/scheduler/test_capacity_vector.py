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
def test_each_resource_type_has_a_unit(text: str, printed: str) -> None:
    """Blanks are ignored, sizes are converted to Mi, an unknown unit counts as none, a missing type is the amount 0."""
    assert str(parse_vector(text, TWO_TYPES)) == printed


@pytest.mark.parametrize(
    "text", ["", "w", "-1", "1e1", "5ww", "5 %", "[]", "[vcores=5]", "[memory=0w]", "[memory=5,vcores=]"]
)
def test_an_unreadable_vector_is_ignored(text: str) -> None:
    """So are brackets without memory."""
    assert parse_vector(text, TWO_TYPES) == NO_VECTOR


@pytest.mark.parametrize("text", ["1.2.3", "[memory=1.2.3%,vcores=1]", "[memory=%,vcores=1]"])
def test_an_invalid_number_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        parse_vector(text, TWO_TYPES)


def test_types_unknown_to_the_cluster_are_kept_separately() -> None:
    vector = parse_vector("[memory=5w,vcores=5w,disks=3]", TWO_TYPES)
    assert vector.unknown == ("disks",)
    assert vector.common_weight is None, "disks have an amount"


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
def test_equal_weights_of_all_types_are_one_weight(text: str, types: ResourceTypes, weight: float | None) -> None:
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


def test_many_types_without_an_end_are_refused_quickly() -> None:
    """Hadoop's own pattern backtracks over every way to split the text."""
    text = "[" + ",".join(f"a-long-resource-name-{n}=123456789%" for n in range(200))
    before = time.process_time()
    assert parse_vector(text, TWO_TYPES) == NO_VECTOR
    assert time.process_time() - before < 1


def test_units_are_in_the_order_of_distribution() -> None:
    assert [unit.name for unit in CapacityUnit] == ["ABSOLUTE", "PERCENTAGE", "WEIGHT"]
