"""Faults of the ResourceManager's state store, and of the ResourceManager while it writes."""

from __future__ import annotations

from yarnling.simulation.fault_action import FaultAction
from yarnling.simulation.state_store import StateStore


class FullStore(FaultAction):
    """Nothing that cannot be stored is promised: new applications are refused, those that run continue."""

    def inject(self) -> str:
        self.store().is_full = True
        return "the state store"

    def recover(self) -> None:
        self.store().is_full = False


class SlowStore(FaultAction):
    """Nothing else waits for the store: only what must be durable is answered later."""

    def inject(self) -> str:
        delay_s = self.injection.options["delay"]
        assert isinstance(delay_s, float)
        self.store().delay_ms = round(delay_s * 1000)
        return "the state store"

    def recover(self) -> None:
        self.store().delay_ms = 0


class LoseStore(FaultAction):
    """The next ResourceManager knows no application: NodeManagers end their containers, and AMs exit."""

    def inject(self) -> str:
        self.check_rm_is_up()
        self.cluster.kill_rm()
        self.cluster.rm.store = StateStore()
        return "rm"

    def recover(self) -> None:
        self.cluster.start_rm()


class KillAtWrite(FaultAction):
    """The ResourceManager is killed at a write: before anything is on the disk, or before anybody learns of it."""

    def inject(self) -> str:
        self.check_rm_is_up()
        nth, when = self.injection.options["nth"], self.injection.options["write"]
        assert isinstance(nth, int)
        self._left, self._is_on_disk = nth, when == "after"
        self.store().at_write = self._count
        return "rm"

    def _count(self) -> bool | None:
        self._left -= 1
        if self._left:
            return None
        self.store().at_write = None
        self.cluster.kill_rm()
        return self._is_on_disk

    def recover(self) -> None:
        self.store().at_write = None
        self.cluster.start_rm()
