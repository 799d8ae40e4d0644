"""scripts/test tests the sources, scripts/test --compiled what mypyc made of them."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from copy import deepcopy
from pathlib import Path

from msgspec import Struct

from hatch_build import compiled_sources
from tests.rm.scheduler.cluster import ONE_QUEUE, Cluster
from yarn.resource import Resource
from yarnling.cli.version import scheduler_is_compiled

ROOT = Path(__file__).resolve().parent.parent.parent
COMPILED = os.environ.get("YARNLING_SCHEDULER") == "compiled"


def test_the_core_is_the_one_that_was_asked_for() -> None:
    """Every module of the list is compiled in the wheel that runs, and none in the checkout."""
    assert scheduler_is_compiled() == COMPILED
    names = [source.removesuffix(".py").replace("/", ".") for source in compiled_sources(ROOT)]
    assert {"yarn.resource", "yarn.machine.delivery", "rm.core.resource_manager"} < set(names)
    files = [importlib.import_module(name).__file__ or "" for name in names]
    assert [path for path in files if path.endswith(".py") == COMPILED] == []


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


def test_records_of_the_core_are_immutable() -> None:
    """mypyc drops keyword arguments of a class, such as frozen=True: a module with a record must not be compiled."""
    records = [
        kind
        for name, module in sys.modules.items()
        if name.startswith(("rm.scheduler.", "rm.core.", "yarn.machine."))
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Struct) and kind.__module__ == name
    ]
    assert len(records) > 20
    assert [kind for kind in records if not kind.__struct_config__.frozen and not kind.__name__.startswith("_")] == []


def test_the_garbage_collector_does_not_visit_compiled_resources() -> None:
    """Two dozen are made for each placement, and a Resource refers to no object that could refer to it."""
    assert gc.is_tracked(Resource(1, 1)) != COMPILED
