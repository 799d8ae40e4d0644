"""Resources: arithmetic, comparison, printing, further types."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarn.errors import ResourceNotFoundException
from yarn.resource import NONE, Resource, ResourceTypes, componentwise_max, componentwise_min

amounts = st.integers(-(1 << 40), 1 << 40)
gpu_resources = st.builds(lambda m, v, g: Resource(m, v, (("yarn.io/gpu", g),)), amounts, amounts, amounts)


@given(gpu_resources, gpu_resources)
def test_subtraction_undoes_addition(a: Resource, b: Resource) -> None:
    assert a + b - b == a


@given(gpu_resources, gpu_resources)
def test_fits_in_means_no_component_is_larger(small: Resource, big: Resource) -> None:
    assert small.fits_in(big) == all(x <= y for x, y in zip(small.values(), big.values(), strict=True))


@given(gpu_resources, gpu_resources)
def test_componentwise_min_fits_in_both_and_both_fit_in_max(a: Resource, b: Resource) -> None:
    low, high = componentwise_min(a, b), componentwise_max(a, b)
    assert low.fits_in(a)
    assert low.fits_in(b)
    assert a.fits_in(high)
    assert b.fits_in(high)


def test_is_sent_to_other_processes() -> None:
    """`simulate compare` sends sizes to the process of each side, also if the class is compiled."""
    amount = Resource(1024, 2, (("gpu", 1),))
    assert pickle.loads(pickle.dumps(amount)) == amount


def test_prints_as_hadoop_does() -> None:
    assert str(Resource(1024, 1)) == "<memory:1024, vCores:1>"
    assert str(Resource(1024, 1, (("yarn.io/gpu", 2),))) == "<memory:1024, vCores:1, yarn.io/gpu: 2>"


def test_by_name_and_back() -> None:
    resource = Resource.of({"yarn.io/gpu": 2, "vcores": 4, "memory-mb": 2048})
    assert resource == Resource(2048, 4, (("yarn.io/gpu", 2),))
    assert Resource.of(resource.amounts()) == resource


def test_multiplied_and_negated() -> None:
    assert Resource(1024, 1, (("gpu", 2),)) * 3 == Resource(3072, 3, (("gpu", 6),))
    assert -Resource(1024, 1) == Resource(-1024, -1)


def test_adds_by_name_when_one_side_has_no_further_types() -> None:
    assert NONE + Resource(1, 1, (("gpu", 2),)) == Resource(1, 1, (("gpu", 2),))
    assert Resource(1, 1, (("gpu", 2),)) - Resource(1, 0) == Resource(0, 1, (("gpu", 2),))


def test_zero_is_none_for_any_types() -> None:
    assert NONE.is_none()
    assert Resource(0, 0, (("gpu", 0),)).is_none()
    assert not Resource(0, 0, (("gpu", 1),)).is_none()


def test_completed_with_all_types_of_the_cluster_in_its_order() -> None:
    types = ResourceTypes(("fpga", "gpu"))
    assert types.complete(Resource(1, 1, (("gpu", 2),))) == Resource(1, 1, (("fpga", 0), ("gpu", 2)))
    assert types.none.is_none()


def test_a_type_that_the_cluster_does_not_know_is_refused_by_name() -> None:
    with pytest.raises(ResourceNotFoundException, match=r"'tpu'.*\[memory-mb, vcores, gpu\]"):
        ResourceTypes(("gpu",)).complete(Resource(1, 1, (("tpu", 2),)))
