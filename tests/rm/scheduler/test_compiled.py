"""scripts/test tests the sources, scripts/test --compiled what mypyc made of them."""

from __future__ import annotations

import os
import sys
from copy import deepcopy

from msgspec import Struct

import yarn.resource
from tests.rm.scheduler.cluster import ONE_QUEUE, Cluster
from yarnling.cli.version import scheduler_is_compiled

COMPILED = os.environ.get("YARNLING_SCHEDULER") == "compiled"


def test_the_core_is_the_one_that_was_asked_for() -> None:
    assert scheduler_is_compiled() == COMPILED
    assert (yarn.resource.__file__ or "").endswith(".py") == (not COMPILED)
    loaded = [
        module.__file__ or "" for name, module in sys.modules.items() if name.startswith("rm.scheduler.placement.")
    ]
    assert all(path.endswith(".py") != COMPILED for path in loaded if not path.endswith("__init__.py"))


def test_a_copy_of_the_scheduler_shares_nothing_that_changes() -> None:
    """A trial of `explain` on a copy leaves the scheduler as it was."""
    cluster = Cluster(ONE_QUEUE)
    cluster.node("n1", 8192)
    cluster.submit("app1", queue="a")
    cluster.heartbeat("n1")
    copied = deepcopy(cluster.scheduler)
    used = cluster.scheduler.context.root_usage.used("")
    assert copied.context.root_usage.used("") == used
    cluster.request("app1", count=2)
    assert cluster.heartbeat("n1")
    assert copied.context.root_usage.used("") == used != cluster.scheduler.context.root_usage.used("")
    total = cluster.scheduler.context.partition_resource("")
    copied.update_node_resource(next(iter(copied.nodes)), total + total, 0)
    assert copied.context.partition_resource("") == total + total
    assert cluster.scheduler.context.partition_resource("") == total


def test_records_of_the_scheduler_are_immutable() -> None:
    """mypyc drops keyword arguments of a class, such as frozen=True: a module with a record must not be compiled."""
    records = [
        kind
        for name, module in sys.modules.items()
        if name.startswith("rm.scheduler.")
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Struct) and kind.__module__ == name
    ]
    assert len(records) > 20
    assert [kind for kind in records if not kind.__struct_config__.frozen and not kind.__name__.startswith("_")] == []
