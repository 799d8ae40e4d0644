"""Leaves out the heartbeats of AMs that would change nothing, without changing anything else.

An AM without news, whose application does not heed the replies, stops sending heartbeats. At the time at which each of
them would arrive, the ResourceManager's core is asked whether its reply would contain more than the headroom. If not,
the core becomes what it would be after the heartbeat, and that is all: no message, no reply, no step of the AM. If it
would, the heartbeat arrives and is answered, and the AM does everything by itself again; so it does when something
happens to it. The headroom itself is looked up each time: that may store the limit of the AM's user, on which later
decisions depend (UsersManager.getComputedResourceLimitForActiveUsers).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from wire.protocols.master import ApplicationMasterProtocol
from yarn.ids import ApplicationAttemptId
from yarn.protocols.master import AllocateRequest, AllocateResponse
from yarn.resource import INT32_MAX
from yarnling.simulation.application_master import ApplicationMasterProcess
from yarnling.simulation.engine import Engine, Rank
from yarnling.simulation.network import Link, Network, UnderWay
from yarnling.simulation.resource_manager import NUMBER, ResourceManagerProcess
from yarnling.simulation.server import Envelope


class QuietMaster:
    """An AM whose heartbeats are left out. `request` is the first of them, `due_ms` the time of the next one.

    `count`: those until now. `response`: what the last of them would have been answered with.
    """

    __slots__ = ("am", "attempt_id", "count", "due_ms", "request", "response")

    def __init__(self, am: ApplicationMasterProcess, request: AllocateRequest, due_ms: int) -> None:
        self.am = am
        self.attempt_id = am.attempt_id
        self.request = request
        self.due_ms = due_ms
        self.count = 0
        self.response: AllocateResponse | None = None


class QuietAMHeartbeats:
    """All AMs' heartbeats of one cluster that are left out; `left_out` counts them.

    `changed` is called when that has changed the scheduler's state.
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

    def leave_out(self, am: ApplicationMasterProcess) -> None:
        """Leave out the AM's next heartbeats. They are quiet, and the last one has just been answered."""
        rm = self._rm
        if rm.is_up and not rm.is_paused and self._network.link(am.scheduler_link).is_clear:
            due_ms, request = am.pause_heartbeats()
            quiet = QuietMaster(am, request, due_ms)
            self._masters[quiet.attempt_id] = quiet
            self._plan(quiet)

    def resume(self, am: ApplicationMasterProcess) -> None:
        """Make the AM send its heartbeats again; a no-op if it already does."""
        quiet = self._masters.get(am.attempt_id)
        if quiet is None or quiet.am is not am:
            return
        if not am.is_up:
            del self._masters[am.attempt_id]
            return
        sent_ms = quiet.due_ms - self._interval_ms
        replied_ms = sent_ms + 2 * self._delay_ms
        if quiet.count and not self._engine.is_over(replied_ms, Rank.MESSAGE, NUMBER):
            reply = Envelope(ApplicationMasterProtocol.allocate, quiet.response)
            quiet.count -= 1
            quiet.due_ms = sent_ms
            self._send_again(quiet, UnderWay(sent_ms + self._delay_ms, reply))
        elif self._engine.is_over(quiet.due_ms, Rank.TIMER, am.number, am.lane):
            self._send_again(quiet, UnderWay(quiet.due_ms))
        else:
            self._send_again(quiet, None)

    def resume_all(self) -> None:
        for quiet in list(self._masters.values()):
            self.resume(quiet.am)

    def before_fault(self, link: Link) -> None:
        """Before a link gets a fault, make the processes that use it send all their heartbeats again."""
        for quiet in list(self._masters.values()):
            if quiet.am.scheduler_link == link.name:
                self.resume(quiet.am)

    def _plan(self, quiet: QuietMaster) -> None:
        am, at_ms = quiet.am, quiet.due_ms + self._delay_ms
        self._engine.at(at_ms, Rank.MESSAGE, am.number, partial(self._arrive, quiet), lane=am.lane)

    def _arrive(self, quiet: QuietMaster) -> None:
        """Process the next heartbeat, which would arrive at the ResourceManager now."""
        attempt_id, core = quiet.attempt_id, self._rm.core
        if self._masters.get(attempt_id) is not quiet:
            return
        change_count = core.scheduler.context.change_count
        if not quiet.am.is_up:
            del self._masters[attempt_id]
        elif core.skip_am_heartbeat(attempt_id, self._engine.now_ms):
            quiet.count += 1
            quiet.due_ms += self._interval_ms
            quiet.response = core.context.sessions[attempt_id].response
            self.left_out += 1
            self._plan(quiet)
            if core.scheduler.walks.is_on:
                self._rm.set_alarm()
            if core.scheduler.context.change_count != change_count:
                self._changed()
        else:
            self._send_again(quiet, UnderWay(self._engine.now_ms, self._serve(quiet)))

    def _serve(self, quiet: QuietMaster) -> Envelope:
        """The ResourceManager's reply to the heartbeat that arrives now."""
        response_id = (quiet.request.response_id + quiet.count) & INT32_MAX
        return quiet.am.answer_of(replace(quiet.request, response_id=response_id))

    def _send_again(self, quiet: QuietMaster, under_way: UnderWay | None) -> None:
        """Let the AM send its heartbeats itself from now on."""
        del self._masters[quiet.attempt_id]
        quiet.am.resume_heartbeats(quiet.count, quiet.due_ms, under_way)
