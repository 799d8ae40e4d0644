"""Chapter 3: an application is submitted, and its ApplicationMaster started."""

from __future__ import annotations

from yarn.resource import Resource
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Narrator, Number
from yarnling.lessons.scene.stage import Stage, participants
from yarnling.lessons.scene.story import Question, Story
from yarnling.simulation.trace_file import RunTrace

SIZE = Resource(1024, 1)
SUBMIT_S = 2.0
STEP_MB = 1024


def set_up(am_mb: int, trace: RunTrace | None = None) -> Stage:
    stage = Stage(nodes=2, trace=trace)
    stage.submit(SUBMIT_S, "ann", (Wanted(1, SIZE, seconds=2),), am_size=Resource(am_mb, 1))
    return stage


def play(am_mb: int, trace: RunTrace | None = None) -> Story:
    stage = set_up(am_mb, trace)
    narrator = Narrator(stage, participants(stage, "ann", client=True))
    stage.run(SUBMIT_S - 0.001)
    narrator.skip()
    narrator.say(
        "ann's client asks for an application id, and submits an application with it: what its AM needs to start, and "
        f"how much memory ({am_mb} MB)."
    )
    stage.run_until(lambda: _running_ms(stage) is not None, 15)
    size_mb = _am_mb(stage)
    narrator.show()
    narrator.say(
        "submitApplication returned long before the AM ran: the RM had only accepted the application. The AM's "
        "container was placed when the next NodeManager sent its heartbeat, as any container. Then the RM itself "
        "called that NodeManager to start it; all later containers are started by the AM."
    )
    stage.run(15)
    narrator.show(kinds=("RMApp",))
    narrator.say(
        "When its work is done, the AM unregisters with finishApplicationMaster. The RM first stores how the "
        "application ended (FINAL_SAVING), so the AM repeats the call until that is done; then it exits, and the "
        "application is FINISHED. The nodes learn with their next heartbeats that they may remove what belonged to it "
        "(clean up)."
    )
    running_ms = _running_ms(stage) or 0
    waited_s = running_ms / 1000 - SUBMIT_S
    return narrator.story(
        Question(
            f"ann's AM wants {am_mb} MB. How much memory does its container hold?",
            f"{size_mb} MB",
            (
                "The scheduler rounds every request up to a multiple of yarn.scheduler.minimum-allocation-mb "
                f"({STEP_MB} MB): {am_mb} MB become {size_mb} MB. {size_mb - am_mb} MB are held and perhaps never "
                "used.",
                f"From submission to RUNNING {waited_s:.3f} s passed, most of it waiting for a heartbeat and for the "
                "AM's process to start.",
            ),
        ),
        {"am_mb": size_mb, "running_ms": running_ms},
    )


def _running_ms(stage: Stage) -> int | None:
    for told in stage.account.told:
        if told.change is not None and (told.change.kind, told.change.target) == ("RMApp", "RUNNING"):
            return told.at_ms
    return None


def _am_mb(stage: Stage) -> int:
    return next(each.resource.memory_mb for each in stage.held("ann") if each.is_am)


LESSON = Lesson(
    3,
    "submit",
    "Submit: how an application comes to life",
    (
        "A client hands over to the RM a description of one container: the ApplicationMaster. Everything else of the "
        "application is the AM's business. The RM keeps a state for the application and one for each attempt to run "
        "its AM; watch both.",
    ),
    {
        "ApplicationMaster (AM)": "the first container of each application; it requests the others and starts them.",
        "attempt": "one run of the AM; if it fails, the RM may make another attempt.",
        "ACCEPTED": "the scheduler knows the application; its AM does not run yet.",
        "RUNNING": "the AM has registered.",
    },
    Number("am-memory", 1500, 1, 8192, "MB that the AM requests", (1500, 1024, 4097)),
    set_up,
    play,
    (
        "Hadoop: ClientRMService.submitApplication, RMAppImpl, RMAppAttemptImpl, AMLauncher",
        "here: docs/lifecycles/RMApp.md, docs/lifecycles/RMAppAttempt.md, rm/core/am_launcher.py",
    ),
)
