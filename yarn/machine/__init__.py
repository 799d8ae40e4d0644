"""The kernel that the cores of the daemons are written in. It knows nothing of YARN.

A core takes an event and the time, and returns effects: `core.handle(event, now_ms) -> [effect]`. Two things help it:

- a `Dispatcher` holds the events, timers and effects of one core, and delivers events first in, first out;
- a `Lifecycle` is the transition table of one kind of object, keyed by (state, event class).

Events are records: they carry the id of their subject and their own typed data.
"""

from yarn.machine.dispatcher import Dispatcher, Tick
from yarn.machine.effects import InvariantsBroken, Refuse, Reply, StateChanged, Warn
from yarn.machine.table import HISTORY_MAX, IllegalTransition, Lifecycle, Machine, Row, complement, event_name, ignored

__all__ = [
    "HISTORY_MAX",
    "Dispatcher",
    "IllegalTransition",
    "InvariantsBroken",
    "Lifecycle",
    "Machine",
    "Refuse",
    "Reply",
    "Row",
    "StateChanged",
    "Tick",
    "Warn",
    "complement",
    "event_name",
    "ignored",
]
