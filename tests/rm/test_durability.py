"""Which answers wait for the state store."""

from __future__ import annotations

from rm.core.durability import divided, saved_events
from rm.core.effects import RemoveApplication, SaveApplication, SaveNodeLabels
from rm.core.events import Allocate, ApplicationSaved, GetNewApplication, SubmitApplication
from rm.core.stored_state import ApplicationStateData, NodeLabelState, Saving
from yarn.applications import ApplicationSubmissionContext
from yarn.ids import ApplicationAttemptId, ApplicationId
from yarn.machine import Reply, Warn
from yarn.protocols.master import AllocateRequest

APP = ApplicationId(1, 1)
CONTEXT = ApplicationSubmissionContext(APP)
SAVE = SaveApplication(ApplicationStateData(CONTEXT, "ann", 5), Saving.NEW)
SUBMIT = SubmitApplication(1, "ann", CONTEXT)
REPLY, WARN = Reply(1, None), Warn("look")


def test_the_answer_to_a_request_waits_for_what_its_step_stores() -> None:
    step = divided(SUBMIT, [REPLY, SAVE, WARN], store_is_busy=False)
    assert (step.now, step.to_store, step.answers) == ([WARN], [SAVE], [REPLY])


def test_a_heartbeat_is_answered_at_once() -> None:
    allocate = Allocate(1, ApplicationAttemptId(APP, 1), AllocateRequest(0))
    step = divided(allocate, [REPLY, SAVE], store_is_busy=True)
    assert (step.now, step.to_store, step.answers) == ([REPLY], [SAVE], [])


def test_a_repeated_submission_waits_for_the_first_and_other_calls_do_not() -> None:
    assert divided(SUBMIT, [REPLY], store_is_busy=True).answers == [REPLY]
    assert divided(SUBMIT, [REPLY], store_is_busy=False).now == [REPLY]
    assert divided(GetNewApplication(1), [REPLY], store_is_busy=True).now == [REPLY]


def test_the_core_learns_what_is_durable_and_waits_for() -> None:
    assert saved_events([SAVE, RemoveApplication(APP), SaveNodeLabels(NodeLabelState())]) == [
        ApplicationSaved(APP, Saving.NEW)
    ]
