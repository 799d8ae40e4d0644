"""The simulated state store: what is durable, when answers are released, what a kill loses."""

from __future__ import annotations

from random import Random

import pytest

from rm.core.effects import RemoveApplication, SaveApplication, SaveAttempt
from rm.core.events import ApplicationSaved, ApplicationSaveFailed, AttemptSaved
from rm.core.stored_state import ApplicationAttemptStateData, ApplicationStateData, Saving
from yarn.applications import ApplicationSubmissionContext
from yarn.ids import ApplicationAttemptId, ApplicationId
from yarn.machine import Refuse, Reply
from yarnling.simulation.engine import START_MS, Engine
from yarnling.simulation.process import Process
from yarnling.simulation.state_store import WRITE_MS, SimulatedStore, SimulatedStoreWriter

APP = ApplicationId(1, 1)


def save(number: int = 1) -> SaveApplication:
    application_id = ApplicationId(1, number)
    return SaveApplication(ApplicationStateData(ApplicationSubmissionContext(application_id), "ann", 5), Saving.NEW)


class Writing:
    def __init__(self, seed: int = 1) -> None:
        self.engine = Engine(seed)
        self.process = Process(self.engine, "rm", 0)
        self.process.boot()
        self.store = SimulatedStore()
        self.released: list[object] = []
        self.writer = SimulatedStoreWriter(
            self.store, self.process, Random(seed), report=self.released.append, answer=self.released.append
        )


def test_what_is_written_is_loaded_with_a_higher_epoch_each_time() -> None:
    store, attempt_id = SimulatedStore(), ApplicationAttemptId(APP, 1)
    store.write([save(2), save(1), SaveAttempt(ApplicationAttemptStateData(attempt_id, None, 6), Saving.NEW)])
    first, second = store.load(), store.load()
    assert [one.application.application_id.id for one in first.applications] == [1, 2]
    assert [attempt.attempt_id for attempt in first.applications[0].attempts] == [attempt_id]
    assert (first.epoch, second.epoch) == (0, 1)
    store.write([RemoveApplication(APP)])
    assert [one.application.application_id.id for one in store.load().applications] == [2]


def test_answers_wait_until_their_effects_are_durable_and_further_ones_share_the_next_write() -> None:
    writing = Writing()
    writing.writer.put([save(1)], [Reply(1, None)])
    writing.writer.put([save(2)], [Reply(2, None)])
    writing.writer.put([save(3)], [Reply(3, None)])
    assert writing.released == []
    writing.engine.run(START_MS + WRITE_MS[1])
    assert writing.released[:2] == [ApplicationSaved(APP, Saving.NEW), Reply(1, None)]
    writing.engine.run(START_MS + 2 * WRITE_MS[1])
    assert [answer.call for answer in writing.released if isinstance(answer, Reply)] == [1, 2, 3]
    assert not writing.writer.is_busy


@pytest.mark.parametrize("waiting", [False, True])
def test_a_kill_loses_what_waits_and_by_chance_what_is_being_written(waiting: bool) -> None:
    survivors = set()
    for seed in range(20):
        writing = Writing(seed)
        writing.writer.put([save(1)], [Reply(1, None)])
        if waiting:
            writing.writer.put([save(2)], [Reply(2, None)])
        writing.process.exit()
        writing.engine.run(START_MS + 100)
        assert writing.released == []
        survivors.add(tuple(one.application.application_id.id for one in writing.store.load().applications))
    assert survivors == {(), (1,)}


def test_a_full_disk_refuses_new_applications_and_keeps_the_changes_of_others() -> None:
    writing = Writing()
    writing.store.is_full = True
    attempt = SaveAttempt(ApplicationAttemptStateData(ApplicationAttemptId(APP, 1), None, 6), Saving.NEW)
    writing.writer.put([save(1)], [Reply(1, None)])
    writing.writer.put([attempt], [])
    writing.engine.run(START_MS + 500)
    problem = writing.writer.problem
    assert problem is not None
    assert writing.released == [ApplicationSaveFailed(APP, problem.message), Refuse(1, problem)]
    writing.store.is_full = False
    writing.engine.run(START_MS + 2000)
    assert writing.released[2:] == [AttemptSaved(ApplicationAttemptId(APP, 1), Saving.NEW)]
    assert writing.writer.problem is None
    assert not writing.writer.is_busy
