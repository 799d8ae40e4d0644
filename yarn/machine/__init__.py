"""The kernel on which the cores of the daemons are built. It does not depend on YARN.

A core takes an event and the time, and returns effects: `core.handle(event, now_ms) -> [effect]`. It is built from two
classes:

- a `Dispatcher` holds the events, timers and effects of one core, and delivers events first in, first out;
- a `Lifecycle` is the transition table of one kind of object, keyed by (state, event class).

Events are records: each carries the id of its subject and its own typed data.
"""

from yarn.machine.delivery import Dispatcher
from yarn.machine.dispatcher import InvariantsBroken, Refuse, Reply, StateChanged, Tick, Warn
from yarn.machine.row import Row, ignored
from yarn.machine.table import HISTORY_MAX, IllegalTransition, Lifecycle, Machine, complement, event_name

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
