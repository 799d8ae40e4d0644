"""Reading capacity-scheduler.xml: values as in Hadoop, with all faults reported at once."""

from __future__ import annotations

import pytest

from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from tests.rm.scheduler.cluster import configuration
from yarn.faults import ConfigurationException, Fault, Severity
from yarn.java.binary32 import f32
from yarn.resource import Resource
from yarn.states import QueueState

TWO = {"root.queues": "a,b", "root.a.capacity": "60", "root.b.capacity": "40"}


def read(conf: dict[str, str]) -> CapacitySchedulerConfiguration:
    return CapacitySchedulerConfiguration.read(configuration(conf))


def faults_of(conf: dict[str, str]) -> tuple[Fault, ...]:
    with pytest.raises(ConfigurationException) as caught:
        read(conf)
    return caught.value.faults


def test_defaults_are_those_of_hadoop() -> None:
    settings = read(TWO)
    assert settings.minimum_allocation == Resource(1024, 1)
    assert settings.maximum_allocation == Resource(8192, 4)
    assert (settings.node_locality_delay, settings.rack_locality_additional_delay) == (40, -1)
    assert (settings.maximum_container_assignments, settings.maximum_offswitch_assignments) == (100, 1)
    assert settings.reservations_continue_looking
    a = settings.queues["root.a"]
    share = a.capacities[""]
    assert (share.capacity, share.maximum_capacity, share.maximum_am_percent) == (f32(0.6), 1.0, f32(0.1))
    assert (a.user_limit, a.user_limit_factor, a.maximum_applications) == (100.0, 1.0, -1)
    assert (a.state, a.ordering_policy) == (None, "fifo")


def test_queues_are_listed_parents_first_in_the_order_of_the_file() -> None:
    settings = read({**TWO, "root.a.queues": "z, y", "root.a.z.capacity": "50", "root.a.y.capacity": "50"})
    assert list(settings.queues) == ["root", "root.a", "root.a.z", "root.a.y", "root.b"]


def test_the_capacity_of_root_is_always_100() -> None:
    settings = read({**TWO, "root.capacity": "7", "root.maximum-capacity": "80"})
    assert settings.queues["root"].capacities[""].capacity == 1.0
    assert settings.queues["root"].capacities[""].maximum_capacity == f32(0.8)


def test_a_maximum_of_minus_one_means_everything() -> None:
    assert read({**TWO, "root.a.maximum-capacity": "-1"}).queues["root.a"].capacities[""].maximum_capacity == 1.0


def test_a_queues_own_value_overrides_the_global_one() -> None:
    settings = read(
        {**TWO, "user-limit-factor": "3", "root.b.user-limit-factor": "2", "minimum-user-limit-percent": "9"}
    )
    assert [settings.queues[path].user_limit_factor for path in ("root.a", "root.b")] == [3.0, 2.0]
    assert settings.queues["root.b"].user_limit == 9.0


def test_user_weights_are_inherited() -> None:
    conf = {**TWO, "root.a.queues": "x", "root.a.x.capacity": "100", "root.a.x.minimum-user-limit-percent": "50"}
    settings = read({**conf, "root.a.user-settings.ann.weight": "2", "root.a.x.user-settings.bob.weight": "0.5"})
    assert settings.queues["root.a.x"].user_weights == {"ann": 2.0, "bob": 0.5}


def test_the_ordering_policy_of_a_parent_is_inherited() -> None:
    conf = {**TWO, "root.ordering-policy": "priority-utilization", "root.a.queues": "x", "root.a.x.capacity": "100"}
    settings = read(conf)
    assert settings.queues["root.a"].ordering_policy == "priority-utilization"
    assert settings.queues["root.a.x"].ordering_policy == "fifo"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("memory-mb=4096,vcores=2", Resource(4096, 2)),
        (" memory-mb=4096 , vcores=2 ,", Resource(4096, 2)),
        ("memory-mb=4G,vcores=2", Resource(4096, 2)),
        ("memory-mb=4 g,vcores=2m", Resource(4096, 2)),
        ("memory=512M", Resource(512, 0)),
        ("memory=1073741824", Resource(1024, 0)),
        ("memory=4096", Resource(0, 0)),
    ],
)
def test_a_maximum_allocation_is_read_as_by_hadoop(written: str, expected: Resource) -> None:
    """ResourceUtils.parseResourcesString: units of memory are M and G; without one `memory` counts bytes."""
    assert read({**TWO, "root.a.maximum-allocation": written}).queues["root.a"].maximum_allocation == expected


@pytest.mark.parametrize(
    "written",
    [
        " ",
        "memory-mb=1024\nvcores=1",
        "memory-mb =1024",
        "memory-mb= 1024",
        "memory-mb=4T",
        "vcores=1, ,",
        "memory-mb=1024,,vcores=1",
        "memory-mb=-1",
    ],
)
def test_a_maximum_allocation_that_stops_hadoop_is_refused(written: str) -> None:
    with pytest.raises(ConfigurationException) as refusal:
        read({**TWO, "root.a.maximum-allocation": written})
    assert any(fault.key.endswith("root.a.maximum-allocation") for fault in refusal.value.faults)


def test_labels_are_separated_by_commas_alone() -> None:
    """CapacitySchedulerConfiguration.getAccessibleNodeLabels, and FifoOrderingPolicyWithExclusivePartitions."""
    labels = {"root.a.accessible-node-labels": " x\n, y ,, ", "root.b.accessible-node-labels": "x\ny"}
    partitions = {"root.a.ordering-policy.exclusive-enforced-partitions": "x\ny,z"}
    queues = read({**TWO, **labels, **partitions}).queues
    assert queues["root.a"].accessible_labels == ("x", "y")
    assert queues["root.b"].accessible_labels == ("x\ny",)
    assert queues["root.a"].exclusive_partitions == ("x\ny", "z")


def test_a_maximum_allocation_with_one_type_sets_the_others_to_zero() -> None:
    """The older keys replace only their own type."""
    settings = read({**TWO, "root.a.maximum-allocation": "memory-mb=4096", "root.b.maximum-allocation-mb": "2048"})
    assert settings.queues["root.a"].maximum_allocation == Resource(4096, 0)
    assert settings.queues["root.b"].maximum_allocation == Resource(2048, 4)


def test_resource_types_have_their_own_allocation_limits() -> None:
    settings = read(
        {
            **TWO,
            "resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
            "yarn.resource-types": "gpu",
            "yarn.resource-types.gpu.maximum-allocation": "8",
            "yarn.resource-types.memory-mb.minimum-allocation": "512",
        }
    )
    assert settings.minimum_allocation == Resource(512, 1, (("gpu", 0),))
    assert settings.maximum_allocation == Resource(8192, 4, (("gpu", 8),))


def test_the_state_of_a_queue_may_be_upper_or_lower_case() -> None:
    assert read({**TWO, "root.a.state": "stopped"}).queues["root.a"].state is QueueState.STOPPED


@pytest.mark.parametrize(
    ("conf", "key", "problem"),
    [
        (
            {"root.a.capacity": "70"},
            "root.queues",
            "Illegal capacity sum of 1.1 for children of queue root for label=.",
        ),
        ({"root.a.capacity": "101"}, "root.a.capacity", "Illegal capacity of 101.0 for queue root.a"),
        ({"root.a.capacity": "much"}, "root.a.capacity", "not a number"),
        ({"root.a.capacity": "10001w"}, "root.a.capacity", "Illegal weight=10001.0 for queue=root.alabel=. Acceptable"),
        ({"root.a.capacity": "-2w"}, "root.a.capacity", "Illegal weight=-2.0 for queue=root.alabel=."),
        ({"root.a.capacity": "heavyw"}, "root.a.capacity", "not a number"),
        ({"root.queues": ""}, "root.queues", "Queue configuration missing child queue names for root"),
        ({"root.queues": "a,b,a"}, "root.queues", "queue root.a is listed twice"),
        ({"root.a.state": "PAUSED"}, "root.a.state", "Invalid queue state configuration."),
        ({"root.a.ordering-policy": "lifo"}, "root.a.ordering-policy", "Unable to construct ordering policy for: lifo"),
        ({"root.ordering-policy": "fifo"}, "root.ordering-policy", "Unable to construct ordering policy for: fifo"),
        ({"root.a.maximum-allocation-mb": "9000"}, "root.a.maximum-allocation-mb", "cannot be larger than the cluster"),
        ({"root.a.maximum-allocation": "disks=3"}, "root.a.maximum-allocation", "'disks=3' is not one of memory-mb"),
        ({"root.a.user-settings.u.weight": "2"}, "root.a.user-settings.u.weight", 'Weight (2.0) for user "u" must be'),
        ({"node-locality-delay": "soon"}, "node-locality-delay", "not a whole number"),
        ({"resource-calculator": "Best"}, "resource-calculator", "not a known resource calculator"),
        ({"yarn.resource-types": "gpu"}, "resource-calculator", "RM uses DefaultResourceCalculator"),
        (
            {"root.a.accessible-node-labels": "y", "root.a.default-node-label-expression": "x"},
            "root.a.default-node-label-expression",
            "doesn't have permission to access all labels in default label expression.",
        ),
    ],
)
def test_a_fault_names_key_value_bound_and_remedy(conf: dict[str, str], key: str, problem: str) -> None:
    faults = faults_of({**TWO, **conf})
    fault = next(fault for fault in faults if fault.key == f"yarn.scheduler.capacity.{key}")
    assert problem in fault.problem
    assert fault.remedy
    assert fault.origin.source in ("capacity-scheduler.xml", "default")


def test_the_remedy_for_an_ordering_policy_says_which_kind_of_queue_has_which() -> None:
    """fifo and fair are the policies of most files; they order applications, which a parent queue has not."""
    faults = faults_of({**TWO, "root.ordering-policy": "fair", "root.a.ordering-policy": "utilization"})
    remedies = {fault.key.removeprefix("yarn.scheduler.capacity."): fault.remedy for fault in faults}
    assert remedies["root.ordering-policy"].startswith("root is a parent queue: write one of utilization, priority-")
    assert remedies["root.a.ordering-policy"].startswith("root.a is a leaf queue: write one of fifo, fair")


def test_a_fault_of_a_key_that_is_not_set_does_not_look_like_one_of_a_file() -> None:
    (fault,) = (one for one in faults_of({"root.a.capacity": "90"}) if one.key.endswith(".root.queues"))
    assert str(fault).startswith("yarn.scheduler.capacity.root.queues (not set): Queue configuration missing")


UNSUPPORTED: dict[str, tuple[dict[str, str], str]] = {
    "placement over several nodes": ({"multi-node-placement-enabled": "true"}, "multi-node-placement-enabled"),
    "priorities of workflows": ({"workflow-priority-mappings": "w:root.a:5"}, "workflow-priority-mappings"),
    "a managed parent without legacy queue mode": (
        {"root.a.auto-create-child-queue.enabled": "true", "legacy-queue-mode.enabled": "false"},
        "root.a.auto-create-child-queue.enabled",
    ),
    "a parent that creates queues in both ways": (
        {"root.a.auto-create-child-queue.enabled": "true", "root.a.auto-queue-creation-v2.enabled": "true"},
        "root.a.auto-create-child-queue.enabled",
    ),
    "a policy for managed parents": (
        {
            "root.a.auto-create-child-queue.enabled": "true",
            "root.a.auto-create-child-queue.management-policy": "org.example.Mine",
        },
        "root.a.auto-create-child-queue.management-policy",
    ),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_the_scheduler_does_not_do_is_a_warning_with_its_effect(name: str) -> None:
    conf, key = UNSUPPORTED[name]
    (fault,) = read({**TWO, **conf}).warnings
    assert fault.key == f"yarn.scheduler.capacity.{key}"
    assert fault.effect
    assert fault.remedy


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_a_strict_configuration_refuses_what_the_scheduler_does_not_do(name: str) -> None:
    conf, key = UNSUPPORTED[name]
    (fault,) = faults_of({**TWO, **conf, "yarn.yarnling.strict": "true"})
    assert fault.key == f"yarn.scheduler.capacity.{key}"


def test_labels_below_a_managed_parent_are_a_warning() -> None:
    conf = {**TWO, "root.a.auto-create-child-queue.enabled": "true"}
    for name in ("root.a", "root.a.leaf-queue-template"):
        conf[f"{name}.accessible-node-labels.gpu.capacity"] = "100"
    warnings = read(conf).warnings
    assert [warning.key.removeprefix("yarn.scheduler.capacity.") for warning in warnings] == [
        "root.a.accessible-node-labels.gpu.capacity",
        "root.a.leaf-queue-template.accessible-node-labels.gpu.capacity",
    ]
    assert all("no guarantee on the label" in warning.effect for warning in warnings)


def test_a_monitor_that_does_not_run_is_a_warning() -> None:
    key = "yarn.resourcemanager.scheduler.monitor.policies"
    conf = {**TWO, key: "org.example.Mine", "yarn.resourcemanager.scheduler.monitor.enable": "true"}
    (fault,) = read(conf).warnings
    assert (fault.key, fault.problem) == (key, "the policy org.example.Mine does not run")
    (fault,) = faults_of({**conf, "yarn.yarnling.strict": "true"})
    assert fault.key == key


@pytest.mark.parametrize(
    ("low", "high"), [("0", "8192"), ("9000", "8192")], ids=["minimum of zero", "minimum above maximum"]
)
def test_sizes_that_contradict_each_other_are_refused(low: str, high: str) -> None:
    """CapacitySchedulerConfigValidator.validateMemoryAllocation."""
    conf = {"yarn.scheduler.minimum-allocation-mb": low, "yarn.scheduler.maximum-allocation-mb": high}
    (fault,) = faults_of({**TWO, **conf})
    assert fault.problem.startswith("Invalid resource scheduler memory allocation configuration")
    assert fault.value == low


def test_all_faults_are_reported_at_once() -> None:
    faults = faults_of(
        {
            **TWO,
            "root.a.state": "PAUSED",
            "root.b.capacity": "50",
            "node-locality-delay": "soon",
            "yarn.scheduler.minimum-allocation-vcores": "0",
        }
    )
    assert len(faults) == 4


@pytest.mark.parametrize(
    ("conf", "problem"),
    [
        ({"root.a.x.capacity": "0"}, "It is set to 0, but parent percent != 0"),
        (
            {"root.a.x.capacity": "100", "root.a.capacity": "0"},
            "queue=a has zero capacity, but childqueues have positive",
        ),
        ({"root.a.x.capacity": "0", "root.a.allow-zero-capacity-sum": "true"}, None),
        ({"root.a.x.capacity": "0", "root.a.capacity": "0"}, None),
        ({"root.a.x.capacity": "100.04"}, "Illegal capacity of 100.04"),
        ({"root.a.x.capacity": "99.96"}, None),
    ],
)
def test_capacities_of_children_add_up_to_100_or_0(conf: dict[str, str], problem: str | None) -> None:
    """testQueueCapacitySettingChildZero, ...ParentZero, ...ZeroSumAllowed; within 0.0005."""
    base = {"root.queues": "a,b", "root.a.capacity": "60", "root.a.queues": "x", **conf}
    base["root.b.capacity"] = str(100 - int(base["root.a.capacity"]))
    if problem is None:
        read(base)
    else:
        assert any(problem in fault.problem for fault in faults_of(base))


def test_a_tree_with_a_cycle_is_refused() -> None:
    conf, path = {"root.queues": "q"}, "root.q"
    for _ in range(80):
        conf |= {f"{path}.capacity": "100", f"{path}.queues": "q"}
        path += ".q"
    assert any("levels of queues" in fault.problem for fault in faults_of(conf))


@pytest.mark.parametrize(("text", "children"), [("", ()), (",", ()), ("x,,y", ("x", "y")), (" x ,\n y", ("x", "y"))])
def test_empty_entries_of_a_list_of_queues_are_ignored(text: str, children: tuple[str, ...]) -> None:
    """StringUtils.getStrings: a tokenizer never returns an empty token."""
    below = {f"root.a.{name}.capacity": "50" for name in children}
    assert read({**TWO, "root.a.queues": text, **below}).queues["root.a"].children == children


@pytest.mark.parametrize("text", [" ", "x, ,y"])
def test_a_blank_entry_of_a_list_of_queues_is_refused(text: str) -> None:
    """A blank names a queue with an empty name, which stops the start (recorded: bug-3 and bug-5)."""
    first = faults_of({**TWO, "root.a.queues": text, "root.a.x.capacity": "50", "root.a.y.capacity": "50"})[0]
    assert first.key.endswith("root.a.queues")
    assert first.problem == "a blank is not a valid queue name"


def test_the_name_of_a_queue_may_contain_dots() -> None:
    """A queue below root may be named `a.b`; checks and inheritance use the real parent (bug-6-queue-name-with-dot)."""
    conf = {"root.queues": "a.b,c", "root.a.b.capacity": "50", "root.c.capacity": "50"}
    queue = read({**conf, "root.a.b.queues": "d", "root.a.b.d.capacity": "100"}).queues["root.a.b"]
    assert (queue.name, queue.parent_path, queue.children) == ("a.b", "root", ("d",))
    assert "Illegal capacity sum of 0.9" in faults_of({**conf, "root.c.capacity": "40"})[0].problem
    both = {**conf, "root.queues": "a,a.b,c", "root.a.queues": "b", "root.a.capacity": "50", "root.a.b.capacity": "100"}
    assert "queue root.a.b is listed twice" in [fault.problem for fault in faults_of(both)]


@pytest.mark.parametrize(
    ("names", "order"),
    [("yarn.io/gpu,fpga", ("fpga", "yarn.io/gpu")), ("fpga,yarn.io/gpu", ("fpga", "yarn.io/gpu"))],
)
def test_resource_types_are_in_the_order_of_hadoops_map(names: str, order: tuple[str, ...]) -> None:
    """ResourceUtils.updateKnownResources numbers them as a HashMap of their names returns them."""
    conf = {**TWO, "resource-calculator": "DominantResourceCalculator"}
    settings = read({**conf, "yarn.resource-types": names})
    assert settings.resource_types.extra_names == order


def test_a_refusal_reports_the_warnings_too() -> None:
    """Hadoop stops at the first error, here the sum of the capacities; that one comes first."""
    conf = {
        "root.queues": "a,b",
        "root.a.capacity": "70",
        "root.a.maximum-capacity": "50",
        "root.b.capacity": "40",
        "root.b.minimum-user-limit-percent": "400",
        "root.c.capacity": "10",
        "root.c.d.capacity": "100",
    }
    with pytest.raises(ConfigurationException) as caught:
        read(conf)
    first, *others = caught.value.faults
    assert first.problem.startswith("Illegal capacity sum of 1.1 for children of queue root")
    assert [(fault.key.removeprefix("yarn.scheduler.capacity."), fault.severity) for fault in others] == [
        ("root.b.minimum-user-limit-percent", Severity.WARNING),
        ("root.a.maximum-capacity", Severity.WARNING),
        ("root.c.capacity", Severity.WARNING),
    ]
    lines = str(caught.value).splitlines()
    assert [line.startswith("warning: capacity-scheduler.xml: ") for line in lines] == [False, True, True, True]


def test_a_queue_that_no_list_contains_is_a_warning() -> None:
    """Its keys are ignored but for its state, which allows the queue to be removed (validateQueueHierarchy)."""
    (warning,) = read({**TWO, "root.a.x.capacity": "100", "root.d.state": "STOPPED"}).warnings
    assert warning.key == "yarn.scheduler.capacity.root.a.x.capacity"
    assert warning.problem == "there is no queue root.a.x: yarn.scheduler.capacity.root.a.queues does not list it"
    assert warning.remedy == "add x to that list, or remove the keys of the queue"


@pytest.mark.parametrize(
    "conf",
    [
        {"root.accessible-node-labels.x.capacity": "100", "root.a.accessible-node-labels.x.capacity": "100"},
        {
            "root.a.capacity": "1w",
            "root.b.capacity": "1w",
            "root.a.auto-queue-creation-v2.enabled": "true",
            "root.a.auto-queue-creation-v2.template.capacity": "1w",
            "root.a.x.capacity": "1w",
        },
        {"root.a.auto-create-child-queue.enabled": "true", "root.a.leaf-queue-template.capacity": "10"},
    ],
    ids=["labels", "dynamic queues", "the template of a managed parent"],
)
def test_keys_of_labels_and_templates_are_not_taken_for_missing_queues(conf: dict[str, str]) -> None:
    assert read({**TWO, **conf}).warnings == ()


@pytest.mark.parametrize("key", ["minimum-user-limit-percent", "root.a.minimum-user-limit-percent"])
def test_an_invalid_value_is_reported_once(key: str) -> None:
    """A key for all queues is read for each of them."""
    (fault,) = faults_of({**TWO, key: "many"})
    assert fault.key == f"yarn.scheduler.capacity.{key}"


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ("gpu,fpga,gpu", "Error in config, key 'gpu' specified twice"),
        ("gpu,,fpga", "Incomplete configuration for resource type ''"),
    ],
)
def test_a_resource_type_must_be_listed_once(names: str, problem: str) -> None:
    """ResourceUtils.getResourceInformationMapFromConfig."""
    (fault,) = faults_of({**TWO, "resource-calculator": "DominantResourceCalculator", "yarn.resource-types": names})
    assert fault.problem == problem
