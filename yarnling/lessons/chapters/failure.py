"""Chapter 9: the ResourceManager restarts, and an ApplicationMaster fails."""

from __future__ import annotations

from yarn.resource import Resource
from yarn.states import FINAL_APPLICATION_STATES
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Narrator, Number
from yarnling.lessons.scene.stage import Stage, participants
from yarnling.lessons.scene.story import Question, Story
from yarnling.simulation.trace_file import RunTrace

SIZE = Resource(1024, 1)
RM_DIES_S = 8.0
RM_RETURNS_S = 11.0
AM_DIES_S = (20.0, 32.0)
UNTIL_S = 50.0
RETRY_INTERVALS = (
    "yarn.resourcemanager.connect.retry-interval.ms",
    "yarn.nodemanager.resourcemanager.connect.retry-interval.ms",
)
"""The time NMs and AMs wait between two calls to an RM that does not answer: 30 s by default, here 1 s."""
KINDS = ("RMApp", "RMAppAttempt", "RMNode")
HIDDEN = ("startContainers", "stopContainers")


def set_up(attempts: int, trace: RunTrace | None = None) -> Stage:
    settings = {
        "yarn.resourcemanager.recovery.enabled": "true",
        "yarn.resourcemanager.am.max-attempts": str(attempts),
        **dict.fromkeys(RETRY_INTERVALS, "1000"),
    }
    stage = Stage(nodes=2, settings=settings, trace=trace)
    stage.submit(2.0, "ann", (Wanted(2, SIZE),))
    stage.happening(RM_DIES_S, "RM", "the RM is killed", stage.cluster.kill_rm)
    stage.happening(RM_RETURNS_S, "RM", "the RM is started again", stage.cluster.start_rm)
    for number, seconds in enumerate(AM_DIES_S, 1):
        stage.happening(seconds, "AM ann", f"the process of ann's AM is killed (time {number})", lambda: kill_am(stage))
    return stage


def play(attempts: int, trace: RunTrace | None = None) -> Story:
    stage = set_up(attempts, trace)
    narrator = Narrator(stage, participants(stage, "ann"))
    narrator.say("ann's AM runs, and two containers. The RM stores what it must not forget (recovery is enabled).")
    stage.run(7)
    narrator.skip()
    containers = _running(stage)
    narrator.table(("", "containers that run"), ("before", ", ".join(containers)))
    narrator.say(
        f"At {RM_DIES_S:.0f} s the RM is killed; at {RM_RETURNS_S:.0f} s a new one is started with the same store. The "
        "NodeManagers and the AM keep running, and call once a second until somebody answers."
    )
    stage.run(AM_DIES_S[0] - 0.001)
    narrator.show(kinds=KINDS, hidden=HIDDEN)
    kept = _running(stage)
    narrator.say(
        "The new RM knew the application from its store, but not the containers: the NodeManagers reported them, as "
        "they got RESYNC and registered again. The AM registered again too, and its containers never noticed anything."
    )
    narrator.table(("", "containers that run"), ("before", ", ".join(containers)), ("after", ", ".join(kept)))
    narrator.say(
        f"Now the process of the AM is killed, twice. The RM may start the AM at most {attempts} "
        f"time{'s' if attempts > 1 else ''} (yarn.resourcemanager.am.max-attempts)."
    )
    stage.run(UNTIL_S)
    narrator.show(kinds=KINDS, hidden=(*HIDDEN, "nodeHeartbeat"))
    return _concluded(stage, narrator, attempts, kept == containers)


def _running(stage: Stage) -> list[str]:
    machines = stage.cluster.machines
    return sorted(stage.names.container(each) for machine in machines for each in machine.containers.running)


def kill_am(stage: Stage) -> None:
    for machine in stage.cluster.machines:
        for container_id in list(machine.containers.running):
            if container_id in stage.cluster.masters:
                machine.kill_container(container_id)


def _concluded(stage: Stage, narrator: Narrator, attempts: int, all_kept: bool) -> Story:
    app = stage.application("ann")
    made, state = app.attempts, app.state.name
    is_over = state in {each.name for each in FINAL_APPLICATION_STATES}
    why = [
        f"Each failure of the AM's container ends an attempt. {made} of at most {attempts} attempts were made.",
        "A new attempt gets a new AM container; the containers of the attempt before it were stopped, unless the "
        "application keeps them (keep-containers-across-application-attempts).",
        "The restart of the RM cost no attempt: "
        + ("all containers went on." if all_kept else "the AM re-registered, although some containers ended."),
    ]
    if is_over:
        why.insert(1, f"After the last of them the RM gave up: the application is {state}.")
    else:
        why.insert(
            1, f"Killed twice with {attempts} attempts allowed, it still runs: attempt {made} is its last start."
        )
    return narrator.story(
        Question(
            f"The AM is killed twice, and {attempts} attempt{'s are' if attempts > 1 else ' is'} allowed. How many "
            "attempts are made, and in which state is the application at the end?",
            f"{made} attempt{'s' if made > 1 else ''}, {state}",
            tuple(why),
        ),
        {"attempts": made, "state": state, "kept": int(all_kept)},
    )


LESSON = Lesson(
    9,
    "failure",
    "Failure and restart: what survives what",
    (
        "Every daemon and every process can die. YARN's answer differs: a container that fails is reported to its "
        "AM, which decides; an AM that fails is started again by the RM, in a new attempt; an RM that fails is "
        "started again by an operator, and recovers from its store and from what the NodeManagers report. Restarting "
        "the RM ends no container (work-preserving restart).",
    ),
    {
        "attempt": "one run of an application's AM; its id is the application's id and a number.",
        "work-preserving restart": "a restart of the RM that leaves running containers alone.",
        "RESYNC": "the RM's order to register again, and to say which containers still run.",
        "state store": "where the RM keeps applications and attempts, on disk.",
    },
    Number("attempts", 2, 1, 5, "yarn.resourcemanager.am.max-attempts", (2, 1, 3)),
    set_up,
    play,
    (
        "Hadoop: RMAppImpl (AttemptFailedTransition), RMStateStore, ResourceTrackerService (RESYNC)",
        "here: rm/core/rm_app_lifecycle.py, rm/core/state_store.py, docs/lifecycles/RMAppAttempt.md",
    ),
)
