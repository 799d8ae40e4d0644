"""Any order of events keeps the promises: answered once, told once, never too much on a node, no event out of place."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rm.events import UnregisterNode
from rm.lifecycles.rm_container import RMContainer, RMContainerState
from rm.lifecycles.states import RMAppState
from tests.rm.builders import RM, ask, done
from yarn.ids import ApplicationId, ContainerId
from yarn.protocols.master import AllocateResponse
from yarn.states import NodeAction

HOSTS = ("n1", "n2", "n3")


class ResourceManagerMachine(RuleBasedStateMachine):
    """Nodes come, beat, fall silent and leave; masters register, ask, release, finish and crash; users kill."""

    @initialize()
    def start(self) -> None:
        self.rm = RM(
            {
                "yarn.scheduler.capacity.root.queues": "a,default",
                "yarn.scheduler.capacity.root.a.capacity": "50",
                "yarn.scheduler.capacity.root.default.capacity": "50",
            }
        )
        self.apps: list[ApplicationId] = []
        self.told: set[ContainerId] = set()
        for host in HOSTS:
            self.rm.node(host)

    def running(self) -> list[ApplicationId]:
        """Applications whose current attempt's master has registered."""
        return [app for app in self.apps if self.rm.attempt_state(app) == "RUNNING"]

    def pick(self, apps: list[ApplicationId], number: int) -> ApplicationId:
        return apps[number % len(apps)]

    def live(self, app: ApplicationId, *, master: bool = False) -> list[RMContainer]:
        containers = self.rm.core.scheduler.containers_of(app).values()
        return [c for c in containers if c.is_am == master and c.state is not RMContainerState.ALLOCATED]

    @rule(keep=st.booleans(), queue=st.sampled_from(["a", "default"]), user=st.sampled_from(["ann", "bob"]))
    def submit(self, keep: bool, queue: str, user: str) -> None:
        self.apps.append(self.rm.submit(user, queue, keep_containers_across_attempts=keep, max_app_attempts=2))

    @rule(host=st.sampled_from(HOSTS))
    def beat(self, host: str) -> None:
        if self.rm.beat(host).action is NodeAction.RESYNC:
            self.rm.node(host)

    @rule(number=st.integers(0, 9))
    def start_master(self, number: int) -> None:
        waiting = [app for app in self.apps if self.rm.attempt_state(app) == "ALLOCATED"]
        if waiting:
            app = self.pick(waiting, number)
            self.rm.launch(app)
            self.rm.register(app)

    @precondition(lambda self: self.running())
    @rule(number=st.integers(0, 9), count=st.integers(0, 5), size_mb=st.sampled_from([512, 1024, 3000]))
    def allocate(self, number: int, count: int, size_mb: int) -> None:
        reply = self.rm.allocate(self.pick(self.running(), number), [ask(count, size_mb)])
        self.note_told(reply)
        self.rm.run(*(c for c in reply.allocated if c.node_id.host in self.rm.nodes))

    @precondition(lambda self: self.running())
    @rule(number=st.integers(0, 9), which=st.integers(0, 9))
    def release(self, number: int, which: int) -> None:
        app = self.pick(self.running(), number)
        live = self.live(app)
        if live:
            self.note_told(self.rm.allocate(app, release=[live[which % len(live)].id]))

    @precondition(lambda self: self.running())
    @rule(
        number=st.integers(0, 9),
        which=st.integers(0, 9),
        master=st.booleans(),
        exit_status=st.sampled_from([0, 1, -100]),
    )
    def end(self, number: int, which: int, master: bool, exit_status: int) -> None:
        live = self.live(self.pick(self.running(), number), master=master)
        if live:
            container = live[which % len(live)]
            nm = self.rm.nodes[container.node_id.host]
            if container.id in nm.running:
                self.rm.beat(container.node_id.host, ended=[done(container.id, exit_status)])

    @precondition(lambda self: self.running())
    @rule(number=st.integers(0, 9))
    def finish(self, number: int) -> None:
        self.rm.finish(self.pick(self.running(), number))

    @precondition(lambda self: self.apps)
    @rule(number=st.integers(0, 9))
    def kill(self, number: int) -> None:
        self.rm.kill(self.pick(self.apps, number))

    @rule(host=st.sampled_from(HOSTS), healthy=st.booleans())
    def lose_or_sicken(self, host: str, healthy: bool) -> None:
        if healthy:
            self.rm.send(UnregisterNode(self.rm.call(), self.rm.nodes[host].node_id))
        else:
            self.rm.beat(host, healthy=False)

    @rule(seconds=st.sampled_from([1, 60, 400]))
    def wait(self, seconds: int) -> None:
        self.rm.wait(seconds * 1000)

    def note_told(self, reply: AllocateResponse) -> None:
        for status in reply.completed:
            assert status.container_id not in self.told, "an end was told twice"
            self.told.add(status.container_id)

    @invariant()
    def steps_come_to_rest(self) -> None:
        assert not self.rm.core.context.has_work

    @invariant()
    def nodes_hold_no_more_than_they_have(self) -> None:
        for node in self.rm.core.scheduler.nodes.values():
            held = sum(container.resource.memory_mb for container in node.containers.values())
            assert held == node.allocated.memory_mb <= node.total.memory_mb

    @invariant()
    def queues_add_up(self) -> None:
        queues = self.rm.core.scheduler.queues
        leaves = [queues["root.a"], queues["root.default"]]
        assert sum(leaf.usage.used("").memory_mb for leaf in leaves) == queues["root"].usage.used("").memory_mb
        live = [c for app in self.apps for c in self.rm.core.scheduler.containers_of(app).values()]
        reserved = sum(leaf.usage.reserved("").memory_mb for leaf in leaves)
        assert sum(c.resource.memory_mb for c in live) + reserved == queues["root"].usage.used("").memory_mb

    @invariant()
    def what_is_over_holds_nothing(self) -> None:
        for app in self.apps:
            if self.rm.core.context.apps[app].state in (RMAppState.FAILED, RMAppState.KILLED, RMAppState.FINISHED):
                assert not self.rm.core.scheduler.containers_of(app)


ResourceManagerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
TestResourceManager = ResourceManagerMachine.TestCase
