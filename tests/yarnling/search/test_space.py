"""The configurations that a search may try: sums of siblings hold, and differences become smaller."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

from yarnling.search.space import Dimension, Siblings, Space


def percentages(name: str, first: int, last: int, before: int, step: int = 10) -> Dimension:
    values = tuple(map(str, range(first, last + 1, step)))
    return Dimension(name, values, str(before), Decimal(step), "", Decimal(before))


THREE = Space(
    (percentages("a", 30, 70, 60), percentages("b", 10, 50, 20), percentages("c", 10, 30, 20)),
    (Siblings((0, 1, 2), 5),),
)


def test_each_wish_becomes_a_valid_configuration_and_each_of_these_can_be_wished() -> None:
    found = {THREE.nearest(wishes) for wishes in product(range(5), range(5), range(3))}
    sums = {
        sum(int(each.values[number]) for each, number in zip(THREE.dimensions, point, strict=True)) for point in found
    }
    assert sums == {100}
    assert sorted(found) == THREE.all_points(100)
    assert all(THREE.nearest(point) == point for point in found)


def test_the_configuration_before_is_a_point_unless_it_is_out_of_bounds() -> None:
    assert THREE.point_before() == (3, 1, 1)
    assert Space((percentages("a", 30, 70, 20),)).point_before() is None


def test_settings_are_the_keys_that_differ() -> None:
    assert THREE.settings((3, 1, 1)) == {}
    assert THREE.settings((2, 2, 1)) == {"a": "50", "b": "30"}


def test_a_value_that_is_written_otherwise_is_the_same() -> None:
    dimension = Dimension("a", ("50", "60"), "60.0", Decimal(10), "", Decimal("60.0"))
    assert Space((dimension,)).settings((1,)) == {}


def test_a_large_space_is_not_enumerated() -> None:
    assert THREE.all_points(3) is None


def test_what_siblings_gave_is_given_back_wholly_or_in_part() -> None:
    assert list(THREE.reductions({"a": "30", "b": "50"})) == [{}, {"a": "40", "b": "40"}]
    assert list(THREE.reductions({"a": "70", "c": "10"})) == [{}]


def test_other_changes_are_taken_back_wholly_or_in_part() -> None:
    space = Space((percentages("a", 10, 90, 10), Dimension("p", ("true", "false"), "true")))
    assert list(space.reductions({"a": "90", "p": "false"})) == [
        {"p": "false"},
        {"a": "90"},
        {"a": "50", "p": "false"},
        {"a": "80", "p": "false"},
    ]


def test_the_size_counts_keys_first() -> None:
    assert THREE.size({}) < THREE.size({"a": "70"}) < THREE.size({"a": "30"}) < THREE.size({"a": "50", "b": "30"})
