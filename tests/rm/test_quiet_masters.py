"""A heartbeat of an AM that may be left out changes nothing, in random scenarios of the conformance generator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest

from rm.core.quiet_masters import QuietMasters
from rm.scheduler.capacity.limits import HeadroomLookup
from rm.scheduler.model.leaf_queue import LeafQueue
from rm.scheduler.model.users import UsersManager
from tests.compiled import only_interpreted
from tests.conformance.cluster import RecordedCluster, Unsupported
from tests.conformance.generated.features import SETS
from tests.conformance.recording import Json
from tests.conformance.view import look
from tests.rm.scheduler.test_straightforward import first_that_starts
from yarn.ids import ApplicationAttemptId

STEPS = 60
FEATURES = SETS["random"] - {"execution", "expiry"}
PREEMPTION = SETS["preemption"] | {"labels"}
SCENARIOS = [(FEATURES, 0), (FEATURES, 2), (PREEMPTION, 0)]


@dataclass
class Quiet:
    """A quiet AM: the limits that its heartbeats look up, and whether the next one stores some of them."""

    lookup: HeadroomLookup | None
    stores: bool

    def look_again(self) -> None:
        self.stores = self.lookup is not None and self.lookup.would_store()


class WatchedMasters:
    """All AMs of a recorded cluster are watched, as by a simulation that leaves heartbeats out."""

    def __init__(self, configuration: dict[str, str]) -> None:
        self.recorded = RecordedCluster(configuration)
        self.masters = self.recorded.core.quiet_masters
        self.quiet: dict[ApplicationAttemptId, Quiet] = {}
        self.left_out = 0

    def step(self, action: Json) -> None:
        """A step; if it is a heartbeat that may be left out, it changes nothing and is answered with the headroom."""
        is_left_out = action["op"] == "allocate" and len(action) == 2 and self._is_quiet(action["app"])
        before, reply = self._state(), dict[str, object]()
        with suppress(Unsupported):
            reply = self.recorded.step(action)
        if is_left_out:
            self.left_out += 1
            assert self._state() == before, action
            assert not {"updated", "update_errors", "completed", "preemption"} & reply.keys()
            assert not reply.get("allocated")
        self._watch(self._leaf_of(action) if action["op"] == "allocate" else None)

    def _leaf_of(self, action: Json) -> UsersManager | None:
        """The leaf in which an AM's heartbeat may have stored limits."""
        attempt_id = self.recorded.apps[action["app"]].attempt_id if action["app"] in self.recorded.apps else None
        lookup = self.masters.lookup(attempt_id) if attempt_id is not None else None
        return lookup.users if lookup is not None else None

    def _is_quiet(self, name: str) -> bool:
        attempt_id = self.recorded.apps[name].attempt_id if name in self.recorded.apps else None
        quiet = self.quiet.get(attempt_id) if attempt_id is not None else None
        return quiet is not None and not quiet.stores

    def _watch(self, looked_up: UsersManager | None) -> None:
        """An AM stays quiet until it is due, and its limits as they are until its leaf has changed."""
        masters = self.masters
        for attempt_id in masters.due():
            self.quiet.pop(attempt_id, None)
        changed = [*masters.changed(), looked_up]
        for quiet in self.quiet.values():
            if quiet.lookup is not None and quiet.lookup.users in changed:
                quiet.look_again()
        for app in self.recorded.apps.values():
            if app.attempt_id is not None and app.registered:
                self._watch_one(app.attempt_id)

    def _watch_one(self, attempt_id: ApplicationAttemptId) -> None:
        known, is_quiet = self.quiet.get(attempt_id), self.masters.watch(attempt_id)
        assert is_quiet or known is None, f"{attempt_id} is not quiet any more, and was not due"
        lookup = self.masters.lookup(attempt_id)
        if known is not None:
            assert lookup == known.lookup, f"{attempt_id} looks up other limits, and was not due"
        elif is_quiet:
            self.quiet[attempt_id] = quiet = Quiet(lookup, stores=False)
            quiet.look_again()

    def _state(self) -> tuple[object, ...]:
        scheduler = self.recorded.core.scheduler
        leaves = [queue for queue in scheduler.queues.values() if isinstance(queue, LeafQueue)]
        return look(self.recorded), [dict(leaf.users.limits) for leaf in leaves], scheduler.context.change_count


def with_idle_rounds(steps: list[Json]) -> Iterator[Json]:
    """The steps, and after each of them a heartbeat of each AM."""
    apps: dict[str, None] = {}
    for action in steps:
        yield action
        if action["op"] == "submit":
            apps[action["app"]] = None
        yield from ({"op": "allocate", "app": app} for app in apps)


def play(features: frozenset[str], scenario_seed: int) -> WatchedMasters:
    scenario = first_that_starts(scenario_seed, STEPS, features)
    cluster = WatchedMasters(scenario.configuration)
    for action in with_idle_rounds(list(scenario.steps)):
        cluster.step(action)
    return cluster


@pytest.mark.parametrize(
    ("features", "scenario_seed"),
    [
        *SCENARIOS,
        *(pytest.param(FEATURES, seed, marks=pytest.mark.slow) for seed in range(3, 6)),
        pytest.param(PREEMPTION, 1, marks=pytest.mark.slow),
        *(pytest.param(FEATURES, seed, marks=pytest.mark.soak) for seed in range(6, 40)),
        *(pytest.param(PREEMPTION, seed, marks=pytest.mark.soak) for seed in range(2, 20)),
    ],
)
def test_what_may_be_left_out_changes_nothing(features: frozenset[str], scenario_seed: int) -> None:
    cluster = play(features, scenario_seed)
    assert cluster.left_out or (features, scenario_seed) not in SCENARIOS


def _with_lasting_limits(patch: pytest.MonkeyPatch) -> None:
    """A limit that was stored stays so."""
    patch.setattr(UsersManager, "_note_lookups", lambda _: None)


def _without_news_of_the_attempt(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(QuietMasters, "note", lambda *_: None)


@pytest.mark.parametrize(("wrong", "scenario_seed"), [(_with_lasting_limits, 3), (_without_news_of_the_attempt, 0)])
@only_interpreted
def test_a_wrong_rule_is_noticed(
    wrong: Callable[[pytest.MonkeyPatch], None], scenario_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong(monkeypatch)
    with pytest.raises(AssertionError):
        play(FEATURES, scenario_seed)


def test_an_am_is_due_when_its_headroom_is_computed_from_other_limits() -> None:
    scenario = first_that_starts(0, STEPS, FEATURES)
    cluster, steps = WatchedMasters(scenario.configuration), with_idle_rounds(list(scenario.steps))
    while not cluster.quiet:
        cluster.step(next(steps))
    scheduler, masters = cluster.recorded.core.scheduler, cluster.masters
    (attempt_id,) = cluster.quiet
    attempt = scheduler.attempt_of(attempt_id.application_id)
    assert attempt is not None
    attempt.capture_headroom(LeafQueue.of(attempt).users.users[attempt.user])
    assert masters.due() == [attempt_id]
