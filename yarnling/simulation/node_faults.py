"""Faults of a machine: its disk, its clock, its version, and a message of its killed NodeManager that arrives late."""

from __future__ import annotations

from msgspec.structs import replace

from wire.protocols.tracker import ResourceTracker
from yarn.java.versions import HADOOP_VERSION
from yarn.protocols.tracker import NodeHeartbeatRequest
from yarnling.simulation.fault_action import FaultAction, names
from yarnling.simulation.machine_clock import PPM

OLD_VERSION = "3.3.6"
MORE_HEARTBEATS = 1_000_000
"""The number of heartbeats more than it that did a killed NodeManager seems to have sent."""


class FullDisk(FaultAction):
    """The NodeManager reports that it is unhealthy, and gets no containers until there is room again."""

    def inject(self) -> str:
        self._set(is_full=True)
        return names(self.injection.nodes)

    def recover(self) -> None:
        self._set(is_full=False)

    def _set(self, *, is_full: bool) -> None:
        for number in self.injection.nodes:
            self.cluster.machine(number).fill_disk(is_full=is_full)


class LoseNodeDisk(FaultAction):
    """The next NodeManager knows nothing of the containers before it."""

    def inject(self) -> str:
        running = self.running_nodes()
        for number in running:
            self.cluster.machine(number).kill(containers=True)
            self.cluster.machine(number).lose_disk()
        return names(running)

    def recover(self) -> None:
        for number in self.injection.nodes:
            self.cluster.start_node(number)


class LateHeartbeat(FaultAction):
    """A heartbeat of a killed NodeManager must not harm the next one, which may have the same node id.

    Its response id is one that the next one does not reach. Nothing else in a heartbeat tells the two apart: a late one
    whose response id happens to be the expected one is accepted, as by ResourceTrackerService.nodeHeartbeat.
    """

    def inject(self) -> str:
        running = self.running_nodes()
        self.late: dict[int, NodeHeartbeatRequest] = {}
        for number in running:
            machine = self.cluster.machine(number)
            last = machine.nm.last_heartbeat
            if last is not None:
                self.late[number] = replace(last, response_id=last.response_id + MORE_HEARTBEATS)
            machine.kill(containers=True)
            self.cluster.start_node(number)
        return names(running)

    def recover(self) -> None:
        for number, request in self.late.items():
            machine = self.cluster.machine(number)
            self.cluster.network.call(
                machine.kernel,
                f"tracker-{number}",
                self.cluster.rm.served,
                ResourceTracker.node_heartbeat,
                request,
                lambda _: None,
                token=machine.nm.token_of(request.node_id),
            )


class DriftingClock(FaultAction):
    """The timers of the machine's NodeManager run too fast or too slow. What the clock gains or loses stays."""

    def inject(self) -> str:
        running, drift = self.running_nodes(), self.injection.options["drift"]
        assert isinstance(drift, float)
        self._set(round(drift * PPM))
        return names(running)

    def recover(self) -> None:
        self._set(0)

    def _set(self, drift_ppm: int) -> None:
        for number in self.injection.nodes:
            self.cluster.machine(number).nm.set_drift(drift_ppm)


class OldNode(FaultAction):
    """The NodeManager is of an older version, so the ResourceManager may refuse it: then it ends."""

    def inject(self) -> str:
        running = self.running_nodes()
        self._restart(running, OLD_VERSION)
        return names(running)

    def recover(self) -> None:
        self._restart(list(self.injection.nodes), HADOOP_VERSION)

    def _restart(self, numbers: list[int], version: str) -> None:
        for number in numbers:
            machine = self.cluster.machine(number)
            machine.version = version
            machine.kill(containers=False)
            self.cluster.start_node(number)


class WrongClock(FaultAction):
    """Only the expiry of tokens depends on a machine's clock; it is read when the NodeManager starts."""

    def inject(self) -> str:
        running, ahead_s = self.running_nodes(), self.injection.options["ahead"]
        assert isinstance(ahead_s, float)
        self._restart(running, round(ahead_s * 1000))
        return names(running)

    def recover(self) -> None:
        self._restart(list(self.injection.nodes), 0)

    def _restart(self, numbers: list[int], ahead_ms: int) -> None:
        for number in numbers:
            machine = self.cluster.machine(number)
            machine.nm.clock_ahead_ms = ahead_ms
            machine.forget_starts()
            machine.kill(containers=False)
            self.cluster.start_node(number)
