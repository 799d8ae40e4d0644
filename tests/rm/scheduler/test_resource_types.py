"""Resource types are checked as Hadoop's ResourceUtils checks them."""

import pytest

from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from tests.rm.scheduler.cluster import check_scheduler
from yarn.configuration import Configuration
from yarn.faults import Severity

TYPES = "yarn.resource-types"
TREE = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
}


@pytest.mark.parametrize("name", ["memory", "memory-mb", "vcores"])
def test_mandatory_types_are_not_defined_again(name: str) -> None:
    (fault,) = check_scheduler(Configuration.of({**TREE, TYPES: f"foo,{name}"}))
    assert (fault.key, fault.severity) == (TYPES, Severity.ERROR)
    assert f"Attempt to re-define mandatory resource '{name}'" in fault.problem


@pytest.mark.parametrize("name", ["1foo", "a b", "-a", "foo$", "/foo", "-x/foo", "a..b/foo", "a/b/c"])
def test_an_invalid_name_is_refused(name: str) -> None:
    (fault,) = check_scheduler(Configuration.of({**TREE, TYPES: name}))
    assert fault.problem.startswith(f"{name!r} is not a valid resource name")


@pytest.mark.parametrize("name", ["foo", "a.b-c_d", "yarn.io/gpu", "nvidia.com/gpu-a100.shared", "1a/foo"])
def test_a_valid_name_is_accepted(name: str) -> None:
    conf = Configuration.of({**TREE, TYPES: name, f"{TYPES}.{name}.minimum-allocation": "-1"})
    settings = CapacitySchedulerConfiguration.read(conf)
    assert settings.warnings == ()
    assert settings.minimum_allocation.extra == ((name, -1),)


@pytest.mark.parametrize(
    ("attribute", "value", "problem"),
    [
        ("units", "zz", "Unknown unit 'zz'"),
        ("units", "G ", "Unknown unit 'G '"),
        ("type", "LIMIT", "No enum constant ResourceTypes.LIMIT"),
        ("type", "COUNTABLE\n", "No enum constant ResourceTypes.COUNTABLE"),
    ],
)
def test_an_unknown_unit_or_type_is_refused(attribute: str, value: str, problem: str) -> None:
    (fault,) = check_scheduler(Configuration.of({**TREE, TYPES: "foo", f"{TYPES}.foo.{attribute}": value}))
    assert fault.severity is Severity.ERROR
    assert fault.problem.startswith(problem)


def test_a_gpu_has_no_unit() -> None:
    conf = Configuration.of({**TREE, TYPES: "yarn.io/gpu", f"{TYPES}.yarn.io/gpu.units": "G"})
    (fault,) = check_scheduler(conf)
    assert fault.severity is Severity.ERROR


def test_units_and_tags_are_warned_of() -> None:
    attributes = {f"{TYPES}.foo.units": "G", f"{TYPES}.foo.tags": "a,b", f"{TYPES}.foo.type": "COUNTABLE"}
    faults = check_scheduler(Configuration.of({**TREE, TYPES: "foo", **attributes}))
    assert [(fault.key, fault.severity) for fault in faults] == [
        (f"{TYPES}.foo.units", Severity.WARNING),
        (f"{TYPES}.foo.tags", Severity.WARNING),
    ]
    assert all(fault.effect for fault in faults)


def test_all_faults_are_named_at_once() -> None:
    faults = check_scheduler(Configuration.of({**TREE, TYPES: "foo,vcores,1x,foo", f"{TYPES}.foo.units": "zz"}))
    assert len(faults) == 4
