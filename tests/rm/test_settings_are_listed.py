"""The keys that the ResourceManager reads are those that yarn.settings lists, with the same defaults."""

from collections.abc import Callable
from typing import Any

import pytest

from rm.core.access_control import QueueAcls
from rm.core.administration import ConfiguredQueues
from rm.core.placement_rules.mapping import MappingPlacement
from rm.core.resource_manager import ResourceManagerCore
from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from rm.scheduler.config.unsupported import FEATURES
from rm.shell.configuration_files import with_mapping_rules
from yarn.configuration import Configuration, Entry
from yarn.faults import OVERRIDE, ConfigurationException
from yarn.settings import scheduler, setting_of
from yarn.settings.kinds import Setting
from yarn.settings.scheduler import PREFIX

TREE = {
    "queues": "a,b,c",
    "a.capacity": "40",
    "b.capacity": "60",
    "a.user-settings.ann.weight": "0.5",
    "b.ordering-policy": "fair",
    "c.auto-create-child-queue.enabled": "true",
    "a.accessible-node-labels.gpu.capacity": "40",
    "b.accessible-node-labels.gpu.capacity": "60",
}
OTHERS = {
    "user.name": "ann",
    "yarn.resource-types": "foo",
    f"{PREFIX}resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
    f"{PREFIX}user.ann.max-parallel-apps": "2",
}


class Recording(Configuration):
    """A configuration that records each key that is read, with the default of the reader."""

    __slots__ = ("asked",)

    def __init__(self, values: dict[str, str]) -> None:
        super().__init__({key: Entry(value, OVERRIDE) for key, value in values.items()})
        self.asked: dict[str, list[object]] = {}

    def get(self, key: str, default: str | None = None) -> str | None:
        self.asked.setdefault(key, [])
        return super().get(key, default)

    def _read(self, key: str, default: Any, parse: Callable[[str], Any], remedy: str) -> Any:
        self.asked.setdefault(key, []).append(default)
        return super()._read(key, default, parse, remedy)


@pytest.fixture
def conf() -> Recording:
    return Recording({f"{PREFIX}root.{name}": value for name, value in TREE.items()} | OTHERS)


def is_only_warned_of(key: str) -> bool:
    """Keys that are read only to report what is not supported."""
    return key in FEATURES


def test_every_setting_that_is_read_is_listed(conf: Recording) -> None:
    ResourceManagerCore(conf, cluster_timestamp=1)
    assert len(conf.asked) > 50
    unlisted = [key for key in conf.asked if setting_of(key) is None and not is_only_warned_of(key)]
    assert unlisted == []


def test_every_listed_setting_is_read(conf: Recording) -> None:
    """Except for the scheduler's class and the source of labels, which are checked but not read."""
    CapacitySchedulerConfiguration.read(conf)
    MappingPlacement(conf, ConfiguredQueues({}))
    QueueAcls(conf, CapacitySchedulerConfiguration.read(conf).queues)
    with_mapping_rules(conf)
    listed = {setting for setting in vars(scheduler).values() if isinstance(setting, Setting)}
    listed |= set(scheduler.QUEUE_SETTINGS)
    asked = {setting_of(key) for key in conf.asked}
    unread = {scheduler.SCHEDULER_CLASS.key, scheduler.NODE_LABELS_CONFIGURATION_TYPE.key}
    assert {s.key for s in listed - asked} == unread


def test_the_defaults_are_those_listed(conf: Recording) -> None:
    """Reader and setting have the same default where both have one; a queue's may be the value of another key."""
    CapacitySchedulerConfiguration.read(conf)
    for key, defaults in conf.asked.items():
        setting = setting_of(key)
        if setting is None or setting.default is None or not defaults:
            continue
        assert {setting.parse(setting.default)} == set(defaults), key


SHIPPED = {
    "root.default.acl_application_max_priority": "*",
    "root.default.maximum-application-lifetime": "-1",
    "root.default.default-application-lifetime": "-1",
    "queue-mappings": "",
    "queue-mappings-override.enable": "false",
    "legacy-queue-mode.enabled": "true",
}


def test_the_file_that_hadoop_ships_is_accepted() -> None:
    """That file contains defaults of features that are not supported here, which they do not enable."""
    values = {"root.queues": "default", "root.default.capacity": "100", **SHIPPED}
    conf = Configuration.of({f"{PREFIX}{name}": value for name, value in values.items()})
    assert list(CapacitySchedulerConfiguration.read(conf).queues) == ["root", "root.default"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("multi-node-placement-enabled", "true"),
    ],
)
def test_a_strict_configuration_refuses_unsupported_settings_by_name(name: str, value: str) -> None:
    tree = {"root.queues": "default", "root.default.capacity": "100"}
    values = {f"{PREFIX}{key}": text for key, text in {**tree, name: value}.items()}
    conf = Configuration.of({**values, "yarn.yarnling.strict": "true"}, "x.xml")
    with pytest.raises(ConfigurationException) as refusal:
        CapacitySchedulerConfiguration.read(conf)
    (fault,) = refusal.value.faults
    assert (fault.key, fault.value) == (PREFIX + name, value)
    assert "not supported" in fault.problem


def test_labels_that_do_not_exist_yet_are_accepted() -> None:
    """A queue may have a capacity on a label that an administrator adds later."""
    values = {
        "root.queues": "default",
        "root.default.capacity": "100",
        "root.default.accessible-node-labels": "gpu",
        "root.default.accessible-node-labels.gpu.capacity": "100",
    }
    conf = Configuration.of({f"{PREFIX}{name}": value for name, value in values.items()})
    assert list(CapacitySchedulerConfiguration.read(conf).queues["root.default"].capacities) == ["", "gpu"]
