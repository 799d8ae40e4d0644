"""Leaves out the heartbeats of AMs that would change nothing, without changing anything else.

An AM without news, whose application does not heed the replies, stops sending heartbeats. They stay planned, as
numbers: when the next one is due, and so when each following one is. Nothing happens as long as the ResourceManager
has no news for the AM, and looking up its headroom would store nothing (rm.core.quiet_masters). Otherwise its next
heartbeat arrives there, at its time:

- if the reply contains only the headroom, the core becomes what it would be after the heartbeat, and that is all: no
  message, no reply, no step of the AM. The first heartbeat after a change of the limits in a leaf is such a one, and
  then the first one of each user whose limit has changed;
- if it contains more, the heartbeat is answered, and the AM does everything by itself again; so it does when something
  happens to it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from rm.scheduler.capacity.limits import HeadroomLookup
from rm.scheduler.model.users import UsersManager
from wire.protocols.master import ApplicationMasterProtocol
from yarn.ids import ApplicationAttemptId
from yarn.protocols.master import AllocateRequest
from yarn.resource import INT32_MAX
from yarnling.simulation.application_master import ApplicationMasterProcess
from yarnling.simulation.engine import Engine, Rank
from yarnling.simulation.network import Link, Network, UnderWay
from yarnling.simulation.resource_manager import NUMBER, ResourceManagerProcess
from yarnling.simulation.server import Envelope
from yarnling.simulation.turns import Turns


class QuietMaster:
    """An AM whose heartbeats are left out. `request` is the first of them, `due_ms` the time of the next one.

    `count`: those until now. `is_called`: the next one arrives. `turn`: its place among the heartbeats of a period,
    which never changes, because all AMs have the same period. `lookup`: the limits that its heartbeats look up.
    """

    __slots__ = ("am", "attempt_id", "calls", "count", "due_ms", "is_called", "lookup", "request", "turn")

    def __init__(self, am: ApplicationMasterProcess, request: AllocateRequest, due_ms: int, period_ms: int) -> None:
        self.am = am
        self.attempt_id = am.attempt_id
        self.turn = (due_ms % period_ms, am.number, am.lane)
        self.request = request
        self.due_ms = due_ms
        self.count = 0
        self.is_called = False
        self.calls = 0
        self.lookup: HeadroomLookup | None = None

    @property
    def response_id(self) -> int:
        """The id of the last reply."""
        return (self.request.response_id + self.count) & INT32_MAX


class QuietAMHeartbeats:
    """All AMs' heartbeats of one cluster that are left out; `left_out` counts them.

    `changed` is called when one that arrived has changed the scheduler's state. `_turns` {users of a leaf: {lookup:
    the AMs that share it}}.
    """

    def __init__(
        self,
        engine: Engine,
        network: Network,
        rm: ResourceManagerProcess,
        interval_ms: int,
        changed: Callable[[], None],
    ) -> None:
        self.left_out = 0
        self._engine = engine
        self._network = network
        self._rm = rm
        self._interval_ms = interval_ms
        self._changed = changed
        self._delay_ms = network.conditions.delay_ms
        self._masters: dict[ApplicationAttemptId, QuietMaster] = {}
        self._turns: dict[UsersManager, dict[HeadroomLookup, Turns[QuietMaster]]] = {}

    def leave_out(self, am: ApplicationMasterProcess) -> None:
        """Leave out the AM's next heartbeats. They are quiet, and the last one has just been answered."""
        rm = self._rm
        if rm.is_up and not rm.is_paused and self._network.link(am.scheduler_link).is_clear:
            due_ms, request = am.pause_heartbeats()
            quiet = QuietMaster(am, request, due_ms, self._interval_ms)
            self._masters[quiet.attempt_id] = quiet
            rm.core.quiet_masters.suspend(quiet.attempt_id)
            self._watch(quiet)

    def resume(self, am: ApplicationMasterProcess) -> None:
        """Make the AM send its heartbeats again; a no-op if it already does."""
        quiet = self._masters.get(am.attempt_id)
        if quiet is None or quiet.am is not am:
            return
        self._catch_up(quiet)
        sent_ms = quiet.due_ms - self._interval_ms
        arrived_ms, replied_ms = sent_ms + self._delay_ms, sent_ms + 2 * self._delay_ms
        if quiet.count:
            response = self._rm.core.quiet_masters.skip(quiet.attempt_id, quiet.response_id)
            if not self._engine.is_over(replied_ms, Rank.MESSAGE, NUMBER):
                quiet.count -= 1
                quiet.due_ms = sent_ms
                reply = Envelope(ApplicationMasterProtocol.allocate, response)
                self._send_again(quiet, UnderWay(arrived_ms, reply), arrived_ms)
                return
        is_sent = self._engine.is_over(quiet.due_ms, Rank.TIMER, am.number, am.lane)
        self._send_again(quiet, UnderWay(quiet.due_ms) if is_sent else None, arrived_ms)

    def resume_all(self) -> None:
        for quiet in list(self._masters.values()):
            self.resume(quiet.am)

    def before_fault(self, link: Link) -> None:
        """Before a link gets a fault, make the processes that use it send all their heartbeats again."""
        for quiet in list(self._masters.values()):
            if quiet.am.scheduler_link == link.name:
                self.resume(quiet.am)

    def look(self) -> None:
        """After a step of the ResourceManager, schedule heartbeats of AMs that may have an effect."""
        quiet_masters = self._rm.core.quiet_masters
        for attempt_id in quiet_masters.due():
            self._call(self._masters[attempt_id])
        for users in quiet_masters.changed():
            self._call_next(users)

    def _watch(self, quiet: QuietMaster) -> None:
        quiet_masters = self._rm.core.quiet_masters
        if not quiet_masters.watch(quiet.attempt_id):
            self._call(quiet)
        lookup = quiet_masters.lookup(quiet.attempt_id)
        if lookup != quiet.lookup:
            self._leave_turns(quiet)
            self._join_turns(quiet, lookup)
        if lookup is not None:
            self._call_next(lookup.users)

    def _join_turns(self, quiet: QuietMaster, lookup: HeadroomLookup | None) -> None:
        quiet.lookup = lookup
        if lookup is not None:
            turns = self._turns.setdefault(lookup.users, {}).setdefault(lookup, Turns[QuietMaster]())
            turns.add(quiet)

    def _leave_turns(self, quiet: QuietMaster) -> None:
        lookup, quiet.lookup = quiet.lookup, None
        if lookup is None:
            return
        lookups = self._turns[lookup.users]
        lookups[lookup].discard(quiet)
        if not lookups[lookup]:
            del lookups[lookup]
        if not lookups:
            del self._turns[lookup.users]

    def _call_next(self, users: UsersManager) -> None:
        """Schedule the first heartbeat in a leaf that would store a limit; the others are looked at after it."""
        phase_ms = (self._engine.now_ms - self._delay_ms) % self._interval_ms
        storing = [turns for lookup, turns in self._turns.get(users, {}).items() if lookup.would_store()]
        coming = [next(turns.coming(phase_ms, self._has_passed)) for turns in storing]
        for quiet in coming:
            self._catch_up(quiet)
        if coming:
            self._call(min(coming, key=_place))

    def _has_passed(self, quiet: QuietMaster) -> bool:
        """True if the heartbeat of an AM whose turn it is has arrived, or would have before what happens now."""
        now_ms = self._engine.now_ms
        return quiet.due_ms + self._delay_ms > now_ms or self._is_over(now_ms, quiet)

    def _is_over(self, arrival_ms: int, quiet: QuietMaster) -> bool:
        return self._engine.is_over(arrival_ms, Rank.MESSAGE, quiet.am.number, quiet.am.lane)

    def _catch_up(self, quiet: QuietMaster) -> None:
        """Count the heartbeats that would have arrived before now."""
        first_ms, now_ms = quiet.due_ms + self._delay_ms, self._engine.now_ms
        if not self._is_over(first_ms, quiet):
            return
        later, since_ms = divmod(now_ms - first_ms, self._interval_ms)
        self._count(quiet, later + (1 if since_ms or self._is_over(now_ms, quiet) else 0))

    def _count(self, quiet: QuietMaster, count: int) -> None:
        quiet.count += count
        quiet.due_ms += count * self._interval_ms
        self.left_out += count

    def _call(self, quiet: QuietMaster) -> None:
        """Schedule the arrival of the AM's next heartbeat."""
        if not quiet.is_called:
            self._catch_up(quiet)
            quiet.is_called = True
            quiet.calls += 1
            am, at_ms = quiet.am, quiet.due_ms + self._delay_ms
            arrive = partial(self._arrive, quiet, quiet.calls)
            self._engine.at(at_ms, Rank.MESSAGE, am.number, arrive, lane=am.lane)

    def _arrive(self, quiet: QuietMaster, call: int) -> None:
        """Process the AM's heartbeat, which arrives at the ResourceManager now."""
        if self._masters.get(quiet.attempt_id) is not quiet or call != quiet.calls:
            return
        quiet.is_called = False
        core = self._rm.core
        change_count = core.scheduler.context.change_count
        if quiet.count:
            core.quiet_masters.skip(quiet.attempt_id, quiet.response_id)
        if not core.skip_am_heartbeat(quiet.attempt_id, self._engine.now_ms):
            self._send_again(quiet, UnderWay(self._engine.now_ms, self._serve(quiet)), self._engine.now_ms)
            return
        self._count(quiet, 1)
        self._watch(quiet)
        if core.scheduler.walks.is_on:
            self._rm.set_alarm()
        if core.scheduler.context.change_count != change_count:
            self._changed()

    def _serve(self, quiet: QuietMaster) -> Envelope:
        """The ResourceManager's reply to the heartbeat that arrives now."""
        return quiet.am.answer_of(replace(quiet.request, response_id=quiet.response_id))

    def _send_again(self, quiet: QuietMaster, under_way: UnderWay | None, last_ms: int) -> None:
        """Let the AM send its heartbeats itself from now on. Its last one arrived at `last_ms`."""
        del self._masters[quiet.attempt_id]
        quiet.calls += 1
        self._rm.core.quiet_masters.resume(quiet.attempt_id, last_ms)
        lookup = quiet.lookup
        self._leave_turns(quiet)
        if lookup is not None:
            self._call_next(lookup.users)
        self._rm.set_alarm()
        quiet.am.resume_heartbeats(quiet.count, quiet.due_ms, under_way)


def _place(quiet: QuietMaster) -> tuple[int, int, int]:
    """The place of its next heartbeat among those of all AMs."""
    return quiet.due_ms, quiet.am.number, quiet.am.lane
