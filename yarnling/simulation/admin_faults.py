"""What administrators do while applications run: new keys, and queues that are read again from a good or a bad file."""

from __future__ import annotations

from yarn.errors import YarnException
from yarn.settings import scheduler
from yarnling.simulation.fault_action import FaultAction

_ROOT = f"{scheduler.PREFIX}root."
_SHARES = {"good": ("60", "40"), "bad": ("60", "50")}
"""{file: capacities of the queues default and extra in percent}; those of the bad file have the sum 110."""


class RollKeys(FaultAction):
    def inject(self) -> str:
        self.check_rm_is_up()
        self.cluster.rm.roll_keys()
        return "rm"


class RefreshQueues(FaultAction):
    """A good file adds a queue; a bad one is refused and changes nothing."""

    def inject(self) -> str:
        self.check_rm_is_up()
        file = str(self.injection.options["file"])
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
        return "rm"
