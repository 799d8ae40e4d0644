"""Unusual features of published capacity-scheduler.xml files, each reduced, and whether Hadoop 3.4.1 accepts them.

The verdicts are those of Hadoop's own ResourceManager, for the reduced and for the original files.
`scripts/oracle configs FOLDER` gets its verdict on other files.
"""

from __future__ import annotations

import pytest

from rm.scheduler.config.configuration import CapacitySchedulerConfiguration
from tests.rm.scheduler.cluster import configuration
from yarn.faults import ConfigurationException

TWO = {"root.queues": "a,b", "root.a.capacity": "75", "root.b.capacity": "25"}

LOADED: dict[str, dict[str, str]] = {
    "percentages with decimals": {"root.queues": "a", "root.a.capacity": "100.000"},
    "blanks in the list of queues": {**TWO, "root.queues": " a , b "},
    "a maximum equal to the capacity": {**TWO, "root.a.maximum-capacity": "75"},
    "a maximum below the capacity": {**TWO, "root.a.maximum-capacity": "50"},
    "a misspelt key": {**TWO, "root.a.maximum-capactiy": "75"},
    "keys of queues that are not in the tree": {**TWO, "root.gone.capacity": "40", "root.gone.state": "STOPPED"},
    "a capacity of the root": {**TWO, "root.capacity": "100"},
    "at most a million applications": {**TWO, "maximum-applications": "1000000"},
    "AMs may use a hundred times the queue": {**TWO, "maximum-am-resource-percent": "100"},
    "a negative AM share, except for one queue": {
        **TWO,
        "maximum-am-resource-percent": "-1.0",
        "root.a.maximum-am-resource-percent": "1.0",
    },
    "a fraction that starts with the point": {**TWO, "root.a.maximum-am-resource-percent": ".25"},
    "a user limit of two percent": {**TWO, "root.a.minimum-user-limit-percent": "2"},
    "an empty list of mappings": {**TWO, "queue-mappings": ""},
    "mappings of users and groups": {
        **TWO,
        "queue-mappings": "u:ann:a,g:staff:b",
        "queue-mappings-override.enable": "true",
    },
    "lifetimes and priorities without a limit": {
        **TWO,
        "root.a.maximum-application-lifetime": "-1",
        "root.a.default-application-lifetime": "-1",
        "root.a.acl_application_max_priority": "*",
    },
    "empty workflow priorities": {**TWO, "workflow-priority-mappings": ""},
    "empty access lists": {**TWO, "root.a.acl_submit_applications": " ", "root.acl_administer_queue": "ann staff"},
    "labels that no node has": {
        **TWO,
        "root.accessible-node-labels": "*",
        "root.a.accessible-node-labels": "*",
    },
    "a blank default label": {**TWO, "root.default-node-label-expression": " "},
    "a fair queue": {**TWO, "root.a.ordering-policy": "fair"},
    "a plan queue": {**TWO, "root.a.reservable": "true", "root.a.show-reservations-as-queues": "true"},
    "no wait for locality": {**TWO, "node-locality-delay": "1", "rack-locality-additional-delay": "-1"},
}

REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "queues without a capacity": (
        {"root.queues": "a,b", "root.a.queues": "x"},
        "Illegal capacity sum of 0.0 for children of queue root for label=. It is set to 0, but parent percent != 0, "
        "and doesn't allow children capacity to set to 0",
    ),
    "no queues": (
        {"root.a.capacity": "90", "root.b.state": "STOPPED"},
        "Queue configuration missing child queue names for root",
    ),
    "a parent with a leaf's ordering policy": (
        {**TWO, "root.a.queues": "x", "root.a.x.capacity": "100", "root.a.ordering-policy": "fifo"},
        "Unable to construct ordering policy for: fifo",
    ),
    "a managed parent with a leaf's ordering policy": (
        {**TWO, "root.a.auto-create-child-queue.enabled": "true", "root.a.ordering-policy": "fair"},
        "Unable to construct ordering policy for: fair",
    ),
    "labels that no node has, with a sum below 100": (
        {
            **TWO,
            "root.default.accessible-node-labels": "*",
            "root.a.accessible-node-labels": "*",
            "root.accessible-node-labels.core.capacity": "100",
            "root.a.accessible-node-labels.core.capacity": "10",
        },
        "Illegal capacity sum of 0.1 for children of queue root for label=core. It should be either 0 or 1.0",
    ),
    "percentages above 100 in sum": (
        {**TWO, "root.c.capacity": "1", "root.queues": "a,b,c"},
        "Illegal capacity sum of 1.01 for children of queue root for label=. It should be either 0 or 1.0",
    ),
}


@pytest.mark.parametrize("name", LOADED)
def test_hadoop_loads_the_configuration(name: str) -> None:
    assert CapacitySchedulerConfiguration.read(configuration(LOADED[name])).queues.keys() >= {"root", "root.a"}


@pytest.mark.parametrize("name", REFUSED)
def test_hadoop_refuses_the_configuration(name: str) -> None:
    conf, reason = REFUSED[name]
    with pytest.raises(ConfigurationException) as refusal:
        CapacitySchedulerConfiguration.read(configuration(conf))
    assert reason in [fault.problem for fault in refusal.value.faults]
