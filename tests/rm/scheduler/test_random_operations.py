"""Random operations in random order: all invariants hold after each step and at each booking.

An invariant that Hadoop violates too is exempt once a step that can violate it has been taken, so that a run without
such a step is checked against every invariant.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rm.scheduler.invariants.state import BROKEN_BY_HADOOP
from rm.scheduler.model.rm_container import RMContainer, RMContainerState
from tests.rm.scheduler.cluster import GB, Cluster, row
from yarn.errors import YarnException
from yarn.nodes import NodeLabel

TREE = {
    "root.queues": "a,p",
    "root.a.capacity": "40",
    "root.a.maximum-capacity": "70",
    "root.a.minimum-user-limit-percent": "50",
    "root.p.capacity": "60",
    "root.p.queues": "b,c",
    "root.p.b.capacity": "50",
    "root.p.b.user-limit-factor": "2",
    "root.p.c.capacity": "50",
    "root.p.c.ordering-policy": "fair",
    "maximum-am-resource-percent": "0.5",
    "node-locality-delay": "2",
    "yarn.node-labels.enabled": "true",
    "root.accessible-node-labels.x.capacity": "100",
    "root.accessible-node-labels.y.capacity": "100",
    "root.a.accessible-node-labels": "x,y",
    "root.a.accessible-node-labels.x.capacity": "30",
    "root.a.accessible-node-labels.y.capacity": "100",
    "root.p.accessible-node-labels": "x",
    "root.p.accessible-node-labels.x.capacity": "70",
    "root.p.b.accessible-node-labels.x.capacity": "100",
    "root.p.c.accessible-node-labels.x.capacity": "0",
    "yarn.cluster.max-application-priority": "9",
}
CHANGES: tuple[Mapping[str, str], ...] = (
    {},
    {"root.a.capacity": "20", "root.p.capacity": "80"},
    {"root.a.maximum-capacity": "45", "root.p.maximum-capacity": "80"},
    {"root.a.max-parallel-apps": "1", "max-parallel-apps": "3"},
    {"root.p.b.state": "STOPPED"},
    {"root.a.ordering-policy": "fair", "root.p.c.ordering-policy": "fifo"},
    {"root.a.user-settings.u1.weight": "2", "root.a.user-limit-factor": "0.5"},
    {"reservations-continue-look-all-nodes": "false"},
    {"per-node-heartbeat.maximum-offswitch-assignments": "5", "root.ordering-policy": "priority-utilization"},
    {"root.a.capacity": "2w", "root.p.capacity": "1w"},
    {"root.p.capacity": "150"},
)
"""Each is a refresh that overrides keys of TREE; the last one is refused."""
NODES = ("n1", "n2", "n3", "n4")
RACKS = {"n1": "/r1", "n2": "/r1", "n3": "/r2", "n4": "/r2"}
LEAVES = ("a", "b", "c")
APPS_MAX = 8
AM_GB_MAX = 3

nodes = st.sampled_from(NODES)


class SchedulerMachine(RuleBasedStateMachine):
    """`violated`: invariants that a step taken so far violates in Hadoop too."""

    @initialize(dominant=st.booleans())
    def start(self, dominant: bool) -> None:
        name = "DominantResourceCalculator" if dominant else "DefaultResourceCalculator"
        self.conf = {**TREE, "resource-calculator": f"org.apache.hadoop.yarn.util.resource.{name}"}
        self.cluster = Cluster(self.conf)
        self.violated: set[str] = set()
        self.apps: list[str] = []
        self.cluster.scheduler.labels.add([NodeLabel("x", True), NodeLabel("y", False)])
        for node in NODES[:3]:
            self.cluster.node(node, 8 * GB, rack=RACKS[node])
        for index, leaf in enumerate(LEAVES):
            self.submit(f"u{index}", leaf, 1)

    def live_applications(self) -> list[str]:
        """Applications whose attempt is not over."""
        return [app for app in self.apps if self._is_live(app)]

    def with_running_am(self) -> list[str]:
        """Applications whose AM runs, so that it can send requests."""
        return [app for app in self.live_applications() if self.cluster.attempt(app).has_master]

    def held(self, app: str, *states: RMContainerState) -> list[RMContainer]:
        """Containers of the current attempt except its AM's."""
        attempt = self.cluster.attempt(app)
        return [
            container
            for container in attempt.live_containers.values()
            if container.id.attempt_id == attempt.attempt_id
            and not container.is_am
            and (not states or container.state in states)
        ]

    # Nodes

    @rule(node=nodes, times=st.integers(1, 4))
    def heartbeat(self, node: str, times: int) -> None:
        if self._is_registered(node):
            self.cluster.heartbeat(node, times)

    @rule()
    def heartbeat_from_all_nodes(self) -> None:
        for node in NODES:
            self.heartbeat(node, 1)

    @rule(node=nodes, size=st.integers(4, 12))
    def join(self, node: str, size: int) -> None:
        if not self._is_registered(node):
            self.cluster.node(node, size * GB, rack=RACKS[node])

    @rule(node=nodes)
    def lose(self, node: str) -> None:
        if self._is_registered(node):
            self.violated |= {"I-08"}
            self.cluster.lose(node)

    @rule(node=nodes, size=st.integers(AM_GB_MAX, 12))
    def resize(self, node: str, size: int) -> None:
        """The ResourceManager refuses an AM that fits no node, before the scheduler knows of the application."""
        if self._is_registered(node):
            self.violated |= {"I-02", "I-08"}
            self.cluster.resize(node, size * GB)

    @rule(node=nodes, label=st.sampled_from(["x", "y", None]))
    def relabel(self, node: str, label: str | None) -> None:
        """CapacityScheduler.updateLabelsOnNode keeps containers, also of finished applications and above new limits."""
        if self._is_registered(node):
            self.violated |= {"I-04", "I-06", "I-08", "I-10"}
            self.cluster.label(node, *[label] if label else [])

    # Applications

    @precondition(lambda self: len(self.apps) < APPS_MAX)
    @rule(user=st.sampled_from(["u0", "u1"]), leaf=st.sampled_from(LEAVES), master_gb=st.integers(1, AM_GB_MAX))
    def submit(self, user: str, leaf: str, master_gb: int) -> None:
        self.apps.append(f"app{len(self.apps) + 1}")
        self.cluster.submit(self.apps[-1], user, leaf, master_gb * GB)

    @precondition(lambda self: self.live_applications())
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        app = data.draw(st.sampled_from(self.live_applications()))
        self.violated |= self._violated_by_dropped_user_entry(app)
        self.cluster.end(app)

    @precondition(lambda self: self.live_applications())
    @rule(data=st.data(), keep=st.booleans())
    def fail_the_attempt(self, data: st.DataObject, keep: bool) -> None:
        app = data.draw(st.sampled_from(self.live_applications()))
        self.violated |= {"I-06"} if keep else self._violated_by_dropped_user_entry(app)
        self.cluster.retry(app, keep_containers=keep)

    @precondition(lambda self: self.live_applications())
    @rule(data=st.data(), leaf=st.sampled_from(LEAVES))
    def move(self, data: st.DataObject, leaf: str) -> None:
        """The target may be smaller than what the application uses: only its number of applications is checked."""
        self.violated |= {"I-05", "I-06", "I-08"}
        self._try(lambda: self.cluster.move(data.draw(st.sampled_from(self.live_applications())), leaf))

    @precondition(lambda self: self.live_applications())
    @rule(data=st.data(), priority=st.integers(0, 9))
    def prioritize(self, data: st.DataObject, priority: int) -> None:
        app = data.draw(st.sampled_from(self.live_applications()))
        if not self.cluster.attempt(app).is_runnable:
            self.violated |= {"I-10"}
        self.cluster.prioritize(app, priority)

    @rule(change=st.sampled_from(CHANGES))
    def refresh(self, change: Mapping[str, str]) -> None:
        self.violated |= {"I-08"}
        self._try(lambda: self.cluster.refresh({**self.conf, **change}))

    # Actions of AMs. Each size has a priority: Hadoop also allocates at a request's old size after it changed.

    @precondition(lambda self: self.with_running_am())
    @rule(
        data=st.data(),
        count=st.integers(0, 6),
        size=st.integers(1, 6),
        place=st.sampled_from(["*", "host", "strict host", "rack"]),
        node=nodes,
        label=st.sampled_from([None, None, "x", "y"]),
    )
    def request(self, data: st.DataObject, count: int, size: int, place: str, node: str, label: str | None) -> None:
        names = {"*": [], "rack": [RACKS[node]]}.get(place, [node, RACKS[node]]) if label is None else []
        relax = place != "strict host"
        rows = [
            row(
                count,
                size * GB,
                vcores=size % 3 + 1,
                priority=size,
                name=name,
                relax=relax or name == node,
                label=label,
            )
            for name in [*names, "*"]
        ]
        self._try(lambda: self.cluster.send(data.draw(st.sampled_from(self.with_running_am())), rows))

    @precondition(lambda self: self.with_running_am())
    @rule(data=st.data())
    def poll(self, data: st.DataObject) -> None:
        self.cluster.poll(data.draw(st.sampled_from(self.with_running_am())))

    @precondition(lambda self: self.with_running_am())
    @rule(data=st.data(), place=st.sampled_from(["n1", "n2", "/r2"]), back=st.booleans())
    def change_the_blacklist(self, data: st.DataObject, place: str, back: bool) -> None:
        change = self.cluster.remove_from_blacklist if back else self.cluster.blacklist
        change(data.draw(st.sampled_from(self.with_running_am())), place)

    @precondition(lambda self: self.with_running_am())
    @rule(data=st.data(), how=st.sampled_from(["release", "finish", "finish", "expire", "grow", "shrink"]))
    def change_a_container(self, data: st.DataObject, how: str) -> None:
        app = data.draw(st.sampled_from(self.with_running_am()))
        states = {
            "release": (),
            "finish": (RMContainerState.ACQUIRED, RMContainerState.RUNNING),
            "expire": (RMContainerState.ACQUIRED,),
        }
        held = self.held(app, *states.get(how, (RMContainerState.RUNNING,)))
        if not held:
            return
        container = data.draw(st.sampled_from(held))
        if how in ("grow", "shrink"):
            self.violated |= {"I-11 (miscounted)"}
            memory_mb = container.resource.memory_mb + (GB if how == "grow" else -GB)
            if GB <= memory_mb <= 8 * GB:
                self._try(lambda: self.cluster.resize_container(app, container.id.number, memory_mb))
        else:
            getattr(self.cluster, how)(app, container.id.number)

    @invariant()
    def invariants_hold(self) -> None:
        assert self.violated <= BROKEN_BY_HADOOP.keys()
        found = self.cluster.violations(self.violated)
        assert not found, found

    def _try(self, step: Callable[[], object]) -> None:
        """Run a step; a refused one must leave every invariant intact."""
        with contextlib.suppress(YarnException):
            step()

    def _is_registered(self, node: str) -> bool:
        return any(known.host == node for known in self.cluster.scheduler.nodes)

    def _is_live(self, app: str) -> bool:
        try:
            return not self.cluster.attempt(app).is_stopped
        except KeyError:
            return False

    def _violated_by_dropped_user_entry(self, app: str) -> set[str]:
        """Invariants that the end of a held back attempt violates: its user's count is decremented once too often."""
        return set() if self.cluster.attempt(app).is_runnable else {"I-06"}


SchedulerMachine.TestCase.settings = settings(max_examples=50, stateful_step_count=50, deadline=None, derandomize=True)
TestScheduler = pytest.mark.slow(SchedulerMachine.TestCase)
