"""Contests of several ResourceManagers for the leadership, in virtual time over the model of ZooKeeper.

    contest(seed)       [] or what went wrong

Each has the election's machine and, while it leads, a store that it writes to. They are stopped, cut off from
ZooKeeper, killed and started again, and their messages are late or lost. What must hold: at most one leads at any time,
also by the clocks of those that are stopped; a write that was confirmed is there at the end; one that was reported as
not written is not; nobody writes after another has taken over; no epoch is used twice; and once all is quiet one leads.

Nobody asks `holds` before it writes: the store has to be right without clocks.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from contextlib import suppress
from random import Random

from rm.core.effects import SaveApplication
from rm.core.stored_state import Saving
from rm.core.zookeeper_election import (
    Connected,
    CreateLock,
    DeleteLock,
    Disconnected,
    ElectionEffect,
    ElectionEvent,
    JoinElection,
    LockChanged,
    LockRead,
    LockTried,
    Lost,
    QuitElection,
    ReadLock,
    SessionOver,
    TimePassed,
    Won,
    ZooKeeperElection,
)
from rm.shell.znodes import DeleteZnode, OperationRefused
from rm.shell.zookeeper_fence import OutcomeUnknown
from rm.shell.zookeeper_store import ZooKeeperStateStore
from tests.rm.test_sqlite_store import application
from tests.zookeeper.stores import LossyZnodes, store_over
from wire.files.store_file import StoreFenced, StoreUnavailable
from yarn.errors import YarnException
from yarnling.simulation.zookeeper import SessionEnded, ZooKeeperModel

TIMEOUT_MS = 1000
TICK_MS = 100
LOCK = "/lock"
NAMES = ("rm1", "rm2", "rm3")
FAULTS_MS = 20_000
QUIET_MS = 8_000
CALM_MS = 1000
"""At the end something must have been confirmed within this time."""
STEPS_AT_A_TIME_MAX = 1000
LOST = ("", "", "", "", "request", "answer", "late")


class Contestant:
    """A ResourceManager. While it is stopped, events wait in `inbox`. `link`: raised by each loss of its connection."""

    def __init__(self, contest: Contest, name: str) -> None:
        self.contest = contest
        self.name = name
        self.election = ZooKeeperElection(TIMEOUT_MS)
        self.is_alive = True
        self.is_stopped = False
        self.is_cut = False
        self.link = 0
        self.session_id = 0
        self.inbox: list[Callable[[], None]] = []
        self.store: ZooKeeperStateStore | None = None
        self.znodes: LossyZnodes | None = None
        self.epoch = -1
        self.leads = self.has_resigned = False
        self._timer = 0

    def start(self) -> None:
        self.deliver(JoinElection())
        self.connect()

    def connect(self) -> None:
        """Connect with the session that there was, or with a new one."""
        contest = self.contest
        if not self.is_alive or self.is_cut:
            return
        try:
            contest.model.hear(self.session_id, contest.now_ms)
        except SessionEnded:
            if self.session_id:
                self.deliver(SessionOver())
            self.session_id = contest.model.open(TIMEOUT_MS, contest.now_ms)
        self.deliver(Connected(self.session_id))

    def resign(self) -> None:
        """QuitElection, and take part again a little later."""
        self.deliver(QuitElection())
        self.contest.after(self.contest.draw.randint(1, 500), lambda: self.deliver(JoinElection()))

    def deliver(self, event: ElectionEvent) -> None:
        """Handle the event, once the process is not stopped."""
        self.run(lambda: self._handle(event))

    def run(self, step: Callable[[], None]) -> None:
        if self.is_stopped:
            self.inbox.append(step)
        elif self.is_alive:
            step()

    def cut(self, length_ms: int) -> None:
        contest, draw = self.contest, self.contest.draw
        if self.is_cut:
            return
        self.is_cut = True
        self.link += 1
        if self.znodes is not None:
            self.znodes.is_cut = True
        noticed_ms = min(draw.randint(0, TIMEOUT_MS * 2 // 3), length_ms)
        contest.after(noticed_ms, lambda: self.deliver(Disconnected()))
        contest.after(length_ms, self._mend)

    def _mend(self) -> None:
        self.is_cut = False
        if self.znodes is not None:
            self.znodes.is_cut = False
        self.contest.after(self.contest.draw.randint(1, 200), self.connect)

    def stop(self, length_ms: int) -> None:
        if not self.is_stopped:
            self.is_stopped = True
            self.contest.after(length_ms, self._resume)

    def _resume(self) -> None:
        self.is_stopped = False
        steps, self.inbox = self.inbox, []
        for step in steps:
            self.run(step)

    def _handle(self, event: ElectionEvent) -> None:
        if isinstance(event, QuitElection | JoinElection):
            self.has_resigned = isinstance(event, QuitElection)
            self.leads = self.leads and not self.has_resigned
        for effect in self.election.handle(event, self.contest.now_ms):
            self._carry_out(effect)
        deadline_ms = self.election.next_deadline_ms()
        self._timer += 1
        if deadline_ms is not None:
            number = self._timer
            wait_ms = max(deadline_ms - self.contest.now_ms, 0)
            self.contest.after(wait_ms, lambda: self.deliver(TimePassed()) if number == self._timer else None)

    def _carry_out(self, effect: ElectionEffect) -> None:
        match effect:
            case Won(term):
                self.leads = True
                self.contest.won(self, term)
                self.contest.after(self.contest.draw.randint(1, 30), lambda: self.run(lambda: self._activate(term)))
            case Lost():
                self.leads = False  # It writes on until the store refuses it.
            case _:
                self._send(effect)

    def _send(self, call: CreateLock | ReadLock | DeleteLock) -> None:
        contest, link, session_id = self.contest, self.link, self.session_id

        def arrive() -> None:
            if self.link != link or self.is_cut:
                return
            try:
                answer = contest.carry_out(call, session_id, self.name)
            except SessionEnded:
                self._close_connection()
                return
            is_late = contest.is_rare()
            wait_ms = contest.delay_ms() + (contest.draw.randint(0, 1500) if is_late else 0)
            contest.after(wait_ms, lambda: self.deliver(answer) if is_late or self.link == link else None)

        contest.after(contest.delay_ms(), arrive)

    def _close_connection(self) -> None:
        """ZooKeeper closes the connection of a session that is over."""
        self.link += 1
        self.deliver(Disconnected())
        self.contest.after(self.contest.draw.randint(1, 200), self.connect)

    def _activate(self, term: int) -> None:
        self.znodes = LossyZnodes(self.contest.model)
        self.znodes.now_ms = self.contest.now_ms
        self.znodes.is_cut = self.is_cut
        self.znodes.lose = self._losses()
        self.store = store_over(self.znodes, self.name)
        try:
            epoch = self.store.take_over(term)
        except (StoreFenced, StoreUnavailable, OutcomeUnknown):
            self._give_up()
            return
        self.contest.taken_over(self, epoch, term)
        self._arrive_later()

    def write(self, number: int) -> None:
        """Write an application, with luck."""
        contest, store, znodes = self.contest, self.store, self.znodes
        if store is None or znodes is None:
            return
        znodes.now_ms = contest.now_ms
        znodes.lose = self._losses()
        try:
            store.write([SaveApplication(application(number), Saving.NEW)])
        except StoreUnavailable:
            contest.refused.append(number)
        except (StoreFenced, OutcomeUnknown):
            self._give_up()
        else:
            contest.confirmed_by(self, number)
        self._arrive_later()

    def _losses(self) -> list[str]:
        """Requests or answers of the next transactions that are lost."""
        return [word] if (word := self.contest.draw.choice(LOST)) else []

    def _arrive_later(self) -> None:
        znodes, contest = self.znodes, self.contest
        if znodes is not None and znodes.late:
            contest.after(contest.draw.randint(1, 3000), lambda: _arrive(znodes, contest.now_ms))

    def _give_up(self) -> None:
        """Leave the store, which another has or which does not answer, and the leadership."""
        self.store = None
        if self.leads:
            self.resign()


class Contest:
    """The contest of one seed. `wrong`: what must not be."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.model = ZooKeeperModel(TICK_MS)
        self.now_ms = 0
        self.wrong: list[str] = []
        self.confirmed: list[int] = []
        self.refused: list[int] = []
        self.epochs: list[int] = []
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._last_term: tuple[int, str] = (0, "")
        self._term = 0
        self._confirmed_ms = 0
        self._numbers = 0
        self.contestants = [Contestant(self, name) for name in NAMES]

    def run(self) -> list[str]:
        for each in self.contestants:
            each.start()
        for at_ms in range(0, FAULTS_MS, 250):
            self.after(at_ms + self.draw.randint(0, 249), self._harm)
        for at_ms in range(0, FAULTS_MS + QUIET_MS, 60):
            self.after(at_ms, self._write)
        try:
            self._play(FAULTS_MS + QUIET_MS)
        except YarnException as error:
            self.wrong.append(f"{type(error).__name__}: {error}")
        if not self.wrong:
            self._judge()
        return self.wrong

    def after(self, wait_ms: int, step: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._queue, (self.now_ms + wait_ms, self._count, step))

    def delay_ms(self) -> int:
        """The time a message is under way."""
        return self.draw.randint(20, 900) if self.is_rare() else self.draw.randint(1, 20)

    def is_rare(self) -> bool:
        """True for what happens one time in ten, until all is quiet."""
        return self.now_ms < FAULTS_MS and self.draw.random() < 0.1

    def carry_out(self, call: CreateLock | ReadLock | DeleteLock, session_id: int, name: str) -> ElectionEvent:
        """The answer of ZooKeeper to a call about the lock."""
        model, now_ms = self.model, self.now_ms
        match call:
            case CreateLock(number):
                with suppress(OperationRefused):
                    model.create(session_id, LOCK, name.encode(), now_ms, ephemeral=True)
                return LockTried(number)
            case DeleteLock(number):
                with suppress(OperationRefused):
                    model.commit(session_id, [DeleteZnode(LOCK)], now_ms)
                return LockTried(number)
            case ReadLock(number):
                found = model.read(session_id, LOCK, now_ms, watch=True)
                if found is None:
                    return LockRead(number)
                return LockRead(number, found.owner, found.created, found.data.decode())

    def won(self, winner: Contestant, term: int) -> None:
        before, name = self._last_term
        if term < before or (term == before and name != winner.name):
            self.wrong.append(f"{winner.name} has won term {term} after {name} won {before}")
        self._last_term = (term, winner.name)

    def taken_over(self, leader: Contestant, epoch: int, term: int) -> None:
        if term < self._term:
            self.wrong.append(f"{leader.name} takes over for term {term} after {self._term}")
        self._term = term
        if epoch in self.epochs:
            self.wrong.append(f"epoch {epoch} is used twice")
        self.epochs.append(epoch)
        leader.epoch = epoch

    def confirmed_by(self, leader: Contestant, number: int) -> None:
        if leader.epoch != max(self.epochs):
            self.wrong.append(f"{leader.name} of epoch {leader.epoch} writes in epoch {max(self.epochs)}")
        self.confirmed.append(number)
        self._confirmed_ms = self.now_ms

    def _play(self, until_ms: int) -> None:
        steps_now = 0
        while self._queue and self._queue[0][0] <= until_ms and not self.wrong:
            at_ms, _, step = heapq.heappop(self._queue)
            steps_now, self.now_ms = (steps_now + 1 if at_ms == self.now_ms else 0), at_ms
            if steps_now > STEPS_AT_A_TIME_MAX:
                self.wrong.append(f"{at_ms} ms: timers without an end")
            self.model.advance(self.now_ms)
            step()
            self._report_watches()
            self._look()

    def _look(self) -> None:
        """Note what must not be now."""
        leaders = [each.name for each in self.contestants if each.election.holds(self.now_ms)]
        if len(leaders) > 1:
            self.wrong.append(f"{self.now_ms} ms: {' and '.join(leaders)} lead")
        for each in self.contestants:
            if each.has_resigned and each.election.holds(self.now_ms):
                self.wrong.append(f"{self.now_ms} ms: {each.name} leads after it has resigned")
            if each.leads and not each.is_stopped and not each.election.holds(self.now_ms - 1):
                self.wrong.append(f"{self.now_ms} ms: {each.name} was not deposed")

    def _report_watches(self) -> None:
        for each in self.contestants:
            link = each.link
            for _ in self.model.events(each.session_id):
                self.after(
                    self.delay_ms(),
                    lambda each=each, link=link: each.deliver(LockChanged()) if each.link == link else None,  # type: ignore[misc]
                )

    def _harm(self) -> None:
        victim, length_ms = self.draw.choice(self.contestants), self.draw.randint(50, 3000)
        match self.draw.choice(("stop", "stop", "cut", "cut", "kill", "resign", "all", "nothing")):
            case "stop":
                victim.stop(length_ms)
            case "cut":
                victim.cut(length_ms)
            case "all" if self.draw.random() < 0.2:
                for each in self.contestants:
                    each.cut(length_ms)
            case "kill":
                self._replace(victim)
            case "resign":
                victim.resign()
            case _:
                pass

    def _replace(self, victim: Contestant) -> None:
        """Kill a process, and start it again. Its session lives until it expires."""
        victim.is_alive = False
        victim.link += 1
        victim.store = None
        place = self.contestants.index(victim)
        self.contestants[place] = fresh = Contestant(self, victim.name)
        self.after(self.draw.randint(1, 500), fresh.start)

    def _write(self) -> None:
        """Have each that believes to lead write something."""
        for each in self.contestants:
            self._numbers += 1
            number = self._numbers
            each.run(lambda each=each, number=number: each.write(number))  # type: ignore[misc]

    def _judge(self) -> None:
        last = store_over(LossyZnodes(self.model), "last")
        last.take_over(0)
        found = {each.application.application_id.id for each in last.load().applications}
        if missing := [number for number in self.confirmed if number not in found]:
            self.wrong.append(f"confirmed and lost: {missing[:5]}")
        if there := [number for number in self.refused if number in found]:
            self.wrong.append(f"refused and stored: {there[:5]}")
        if not any(each.election.holds(self.now_ms) for each in self.contestants):
            self.wrong.append("nobody leads at the end")
        if self._confirmed_ms < FAULTS_MS + QUIET_MS - CALM_MS:
            self.wrong.append(f"nothing is confirmed after {self._confirmed_ms} ms")


def contest(seed: int) -> list[str]:
    """The mistakes that were seen in the contest of this seed."""
    return Contest(seed).run()


def _arrive(znodes: LossyZnodes, now_ms: int) -> None:
    znodes.now_ms = now_ms
    with suppress(OperationRefused):
        znodes.arrive()
