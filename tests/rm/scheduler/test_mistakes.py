"""Values that Hadoop accepts and that stop a queue or do nothing: each is a warning that says what Hadoop does."""

from __future__ import annotations

import pytest

from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from tests.rm.scheduler.cluster import configuration
from yarn.configuration import Configuration
from yarn.settings.scheduler import PREFIX

TWO = {"root.queues": "a,b", "root.a.capacity": "75", "root.b.capacity": "25"}
LABELS = {"yarn.node-labels.enabled": "true"}
GPU = {"root.accessible-node-labels.gpu.capacity": "100", "root.a.accessible-node-labels.gpu.capacity": "100"}

STOPS: dict[str, tuple[dict[str, str], str, str]] = {
    "no user may use anything": ({"root.a.user-limit-factor": "0"}, "root.a.user-limit-factor", "no user may use"),
    "a negative factor": ({"root.a.user-limit-factor": "-2"}, "root.a.user-limit-factor", "refuses every application"),
    "the factor for all queues": ({"user-limit-factor": "0"}, "user-limit-factor", "refuses every application"),
    "no share for a user": (
        {"root.a.minimum-user-limit-percent": "0"},
        "root.a.minimum-user-limit-percent",
        "refuses every application",
    ),
    "no applications": ({"root.a.maximum-applications": "0"}, "root.a.maximum-applications", "0 of 0"),
    "no applications in any queue": ({"maximum-applications": "0"}, "maximum-applications", "0 of 0"),
    "no applications for one user": (
        {"root.a.maximum-applications": "5", "root.a.minimum-user-limit-percent": "10"},
        "root.a.maximum-applications",
        "5 x 10 % x user-limit-factor 1 of them, rounded down to 0",
    ),
    "nothing runs": ({"root.a.max-parallel-apps": "0"}, "root.a.max-parallel-apps", "never run"),
    "-1 is not unlimited": ({"root.max-parallel-apps": "-1"}, "root.max-parallel-apps", "also a negative one"),
    "-1 for all queues": ({"max-parallel-apps": "-1"}, "max-parallel-apps", "never run"),
    "nothing runs for a user": ({"user.ann.max-parallel-apps": "0"}, "user.ann.max-parallel-apps", "never run"),
    "AMs above the queue": (
        {"root.a.maximum-am-resource-percent": "50"},
        "root.a.maximum-am-resource-percent",
        "50 times the queue",
    ),
    "no room for AMs": (
        {"root.a.maximum-am-resource-percent": "-0.5"},
        "root.a.maximum-am-resource-percent",
        "one application runs at a time",
    ),
    "labels are off": (
        {"root.a.default-node-label-expression": "gpu", **GPU},
        "root.a.default-node-label-expression",
        "without yarn.node-labels.enabled",
    ),
    "a default label without capacity": (
        {**LABELS, "root.default-node-label-expression": "gpu"},
        "root.default-node-label-expression",
        "has no capacity on the label gpu",
    ),
    "a label that the queue may not use": (
        {**LABELS, **GPU, "root.a.accessible-node-labels": ""},
        "root.a.accessible-node-labels.gpu.capacity",
        "may not use the label gpu",
    ),
    "a largest container below the smallest": (
        {"root.a.maximum-allocation-mb": "512"},
        "root.a.maximum-allocation-mb",
        "below the minimum allocation of 1024 MB",
    ),
    "a parent's user limit": ({"root.user-limit-factor": "2"}, "root.user-limit-factor", "do not inherit"),
    "a key of HDP's file": (
        {"default.minimum-user-limit-percent": "50"},
        "default.minimum-user-limit-percent",
        "starts with root",
    ),
    "keys of a queue that no list has": (
        {"root.c.state": "RUNNING", "root.c.user-limit-factor": "2"},
        "root.c.state",
        "root.queues does not list it; nor has any effect what is set for its user-limit-factor",
    ),
    "vcores that nobody counts": (
        {"yarn.scheduler.minimum-allocation-vcores": "2"},
        "yarn.scheduler.minimum-allocation-vcores",
        "each container gets 1 vcore",
    ),
}
CREATING = {
    "root.queues": "a,b,users",
    **{f"root.{name}.capacity": "1w" for name in ("a", "b", "users")},
    "root.users.auto-queue-creation-v2.enabled": "true",
}
MANAGED = {
    "root.queues": "a,b,users",
    **{f"root.{name}.capacity": capacity for name, capacity in (("a", "50"), ("b", "25"), ("users", "25"))},
    "root.users.auto-create-child-queue.enabled": "true",
    "root.users.leaf-queue-template.capacity": "25",
}
V2 = "root.users.auto-queue-creation-v2."
TEMPLATES: dict[str, tuple[dict[str, str], str, str]] = {
    "for leaves": (
        {**CREATING, f"{V2}leaf-template.user-limit-factor": "0"},
        f"{V2}leaf-template.user-limit-factor",
        "a queue created with it refuses every application",
    ),
    "for all": (
        {**CREATING, f"{V2}template.max-parallel-apps": "0"},
        f"{V2}template.max-parallel-apps",
        "applications are accepted and never run",
    ),
    "with a wildcard": (
        {**CREATING, "root.*.auto-queue-creation-v2.template.maximum-applications": "0"},
        "root.*.auto-queue-creation-v2.template.maximum-applications",
        "a queue created with it refuses every application",
    ),
    "for parents": (
        {**CREATING, f"{V2}parent-template.user-limit-factor": "2"},
        f"{V2}parent-template.user-limit-factor",
        "each queue created by root.users.auto-queue-creation-v2.parent-template is a parent",
    ),
    "for leaves of a managed parent": (
        {**MANAGED, "root.users.leaf-queue-template.maximum-am-resource-percent": "10"},
        "root.users.leaf-queue-template.maximum-am-resource-percent",
        "10 times the queue",
    ),
    "a label without capacity": (
        {**LABELS, **MANAGED, "root.users.leaf-queue-template.default-node-label-expression": "gpu"},
        "root.users.leaf-queue-template.default-node-label-expression",
        "each queue created by root.users.leaf-queue-template has no capacity on the label gpu",
    ),
    "of a queue that creates none": (
        {"root.a.leaf-queue-template.capacity": "25", "root.a.leaf-queue-template.user-limit-factor": "2"},
        "root.a.leaf-queue-template.capacity",
        "has no effect, nor have the 1 other keys of its templates: root.a creates no queues in this way",
    ),
    "of the other way": (
        {**MANAGED, f"{V2}template.capacity": "1w"},
        f"{V2}template.capacity",
        "root.users creates no queues in this way",
    ),
}
SOUND: dict[str, dict[str, str]] = {
    "plain": {},
    "no limit for a user": {"root.a.user-limit-factor": "-1", "root.a.minimum-user-limit-percent": "1"},
    "small limits that allow one": {"root.a.maximum-applications": "10", "root.a.minimum-user-limit-percent": "10"},
    "a default label with a capacity": {**LABELS, **GPU, "root.a.default-node-label-expression": "gpu"},
    "all of the queue for AMs": {"root.a.maximum-am-resource-percent": "1"},
    "keys that queues inherit": {"root.maximum-allocation-mb": "4096", "root.maximum-application-lifetime": "60"},
    "limits for users": {"user.max-parallel-apps": "5", "user.ann.max-parallel-apps": "1"},
    "templates of a managed parent": {**MANAGED, "root.users.leaf-queue-template.user-limit-factor": "2"},
    "templates": {
        **CREATING,
        "root.users.auto-queue-creation-v2.template.user-limit-factor": "2",
        "root.users.ann.user-limit-factor": "3",
    },
}


def warnings(keys: dict[str, str]) -> dict[str, str]:
    conf: Configuration = configuration({**TWO, **keys})
    found = CapacitySchedulerConfiguration.read(conf).warnings
    return {fault.key.removeprefix(PREFIX): fault.problem for fault in found}


@pytest.mark.parametrize("name", STOPS)
def test_a_value_that_stops_a_queue_or_does_nothing_is_a_warning(name: str) -> None:
    keys, key, reason = STOPS[name]
    assert reason in warnings(keys)[key]


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_have_the_same_warnings(name: str) -> None:
    keys, key, reason = TEMPLATES[name]
    found = warnings(keys)
    assert list(found) == [key], found
    assert reason in found[key]


@pytest.mark.parametrize("name", SOUND)
def test_sound_values_have_no_warning(name: str) -> None:
    assert warnings(SOUND[name]) == {}
