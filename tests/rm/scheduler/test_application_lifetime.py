"""Maximum lifetimes of a queue's applications: QueueAppLifetimeAndLimitSettings, checkAndGetApplicationLifetime."""

from __future__ import annotations

import pytest

from tests.rm.scheduler.conftest import StartCluster
from yarn.faults import ConfigurationException

TREE = {"root.queues": "a", "root.a.capacity": "100", "root.a.queues": "x", "root.a.x.capacity": "100"}
MAXIMUM, DEFAULT = "maximum-application-lifetime", "default-application-lifetime"


@pytest.mark.parametrize(
    ("conf", "without_request", "with_100_requested"),
    [
        ({}, 0, 100),
        ({f"root.a.x.{MAXIMUM}": "60"}, 60, 60),
        ({f"root.a.x.{MAXIMUM}": "60", f"root.a.x.{DEFAULT}": "30"}, 30, 60),
        ({f"root.a.{MAXIMUM}": "60", f"root.a.{DEFAULT}": "30"}, 30, 60),
        ({f"root.a.{MAXIMUM}": "60", f"root.a.x.{MAXIMUM}": "0"}, 0, 100),
        ({f"root.a.{MAXIMUM}": "60", f"root.a.{DEFAULT}": "50", f"root.a.x.{MAXIMUM}": "40"}, 40, 40),
        ({f"root.a.x.{MAXIMUM}": "60", f"root.a.x.{DEFAULT}": "0"}, 60, 60),
        ({f"root.a.x.{DEFAULT}": "30"}, 30, 100),
        ({f"root.a.{DEFAULT}": "30"}, 0, 100),
        ({f"root.{MAXIMUM}": "200", f"root.{DEFAULT}": "150"}, 150, 100),
    ],
)
def test_a_lifetime_comes_from_the_queue(
    start_cluster: StartCluster, conf: dict[str, str], without_request: int, with_100_requested: int
) -> None:
    """A parent's default is dropped if no queue sets a maximum: the smaller of the default and -1 counts
    (QueueAppLifetimeAndLimitSettings.setupInheritedDefaultAppLifetime).
    """
    scheduler = start_cluster({**TREE, **conf}, alone=True).scheduler
    assert (scheduler.application_lifetime("x", 0), scheduler.application_lifetime("x", 100)) == (
        without_request,
        with_100_requested,
    )


def test_only_leaves_limit_a_lifetime(start_cluster: StartCluster) -> None:
    scheduler = start_cluster({**TREE, f"root.a.{MAXIMUM}": "60"}, alone=True).scheduler
    assert scheduler.application_lifetime("a", 100) == 100
    assert scheduler.application_lifetime("nowhere", 100) == 100


def test_a_default_above_the_maximum_is_refused(start_cluster: StartCluster) -> None:
    with pytest.raises(ConfigurationException) as refusal:
        start_cluster({**TREE, f"root.a.x.{MAXIMUM}": "60", f"root.a.x.{DEFAULT}": "70"}, alone=True)
    (fault,) = refusal.value.faults
    assert fault.problem == "Default lifetime 70 can't exceed maximum lifetime 60"
