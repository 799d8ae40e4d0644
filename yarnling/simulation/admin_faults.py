"""Faults of administrators while applications run: new keys, queues read again from a good or a bad file, applications
moved, nodes resized.
"""

from __future__ import annotations

from functools import partial

from rm.core.events import MoveApplication, UpdateNodeResource
from yarn.errors import YarnException
from yarn.ids import ApplicationId
from yarn.protocols.admin import ResourceOption
from yarn.resource import Resource
from yarn.settings import scheduler
from yarnling.simulation.fault_action import FaultAction, names, picked
from yarnling.simulation.process import run

_ROOT = f"{scheduler.PREFIX}root."
_SHARES = {"good": ("60", "40"), "bad": ("60", "50")}
"""{file: capacities of the queues default and extra in percent}; those of the bad file have the sum 110."""


class RollKeys(FaultAction):
    def inject(self) -> str:
        self.check_rm_is_up()
        self.cluster.rm.roll_keys()
        return "rm"


class ResizeNode(FaultAction):
    """Nodes get half of their memory, and at the end all of it again. A node that is unknown then refuses the call."""

    def inject(self) -> str:
        self.check_rm_is_up()
        running = self.running_nodes()
        for number in running:
            size = self.cluster.machine(number).size
            self._resize(number, Resource(size.memory_mb // 2, size.vcores))
        return names(running)

    def recover(self) -> None:
        for number in self.injection.nodes:
            self._resize(number, self.cluster.machine(number).size)

    def _resize(self, number: int, size: Resource) -> None:
        node_id = self.cluster.machine(number).nm.node_id
        rm = self.cluster.rm
        resizing = partial(UpdateNodeResource, resources=((node_id, ResourceOption(size)),))
        rm.deliver(rm.starts, lambda: run(rm.ask(resizing), lambda _: None))


class RefreshQueues(FaultAction):
    """A good file adds a queue; a bad one is refused and changes nothing."""

    def inject(self) -> str:
        self.check_rm_is_up()
        self.read(str(self.injection.options["file"]))
        return "rm"

    def read(self, file: str) -> None:
        default, extra = _SHARES[file]
        changes = {
            f"{_ROOT}queues": "default,extra",
            f"{_ROOT}default.capacity": default,
            f"{_ROOT}extra.capacity": extra,
            f"{_ROOT}default.maximum-capacity": "100",
        }

        def done(outcome: object) -> None:
            is_refused = isinstance(outcome, YarnException)
            assert is_refused == (file == "bad"), f"refreshQueues with a {file} file: {outcome}"

        self.cluster.rm.refresh_queues(self.cluster.conf.overridden(changes, "refreshQueues"), done)


class MoveRunningApplication(RefreshQueues):
    """Between the queues default and extra, of which the second is added first."""

    def inject(self) -> str:
        self.check_rm_is_up()
        container_id, _ = picked(self.cluster, self.injection)
        application_id = container_id.application_id
        self.read("good")
        self.cluster.rm.deliver(self.cluster.rm.starts, lambda: self._move(application_id))
        return str(container_id)

    def _move(self, application_id: ApplicationId) -> None:
        """The application may have ended, which refuses the move."""
        rm = self.cluster.rm
        app = rm.core.context.apps.get(application_id)
        if app is not None:
            target = "extra" if app.queue.endswith("default") else "default"
            moving = rm.ask(lambda call: MoveApplication(call, app.user, application_id, target))
            run(moving, lambda _: None)
