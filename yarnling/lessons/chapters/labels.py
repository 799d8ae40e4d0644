"""Chapter 15: a label makes a partition of some nodes, which others may borrow or not."""

from __future__ import annotations

from functools import partial

from yarn.resource import Resource
from yarn.states import YarnApplicationState
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Narrator, WordChoice
from yarnling.lessons.scene.samples import Samples
from yarnling.lessons.scene.settings import SCHEDULER, preemption, queues
from yarnling.lessons.scene.stage import Stage, participants
from yarnling.lessons.scene.story import Question, Story
from yarnling.report.curves import Mark
from yarnling.simulation.trace_file import RunTrace

SIZE = Resource(1024, 1)
GPU = "gpu"
GPU_NODE = 2
BOB_S = 30.0
UNTIL_S = 100.0
BOB_CONTAINERS = 4
EXCLUSIVE, SHARED, PREEMPTED = "exclusive", "shared", "shared-with-preemption"
ACCESSIBLE = "accessible-node-labels"
SETTINGS = {
    "yarn.node-labels.enabled": "true",
    f"{SCHEDULER}root.{ACCESSIBLE}.{GPU}.capacity": "100",
    **queues(
        {
            "batch": {"capacity": "50", ACCESSIBLE: "", "user-limit-factor": "4"},
            "ml": {"capacity": "50", ACCESSIBLE: GPU, f"{ACCESSIBLE}.{GPU}.capacity": "100"},
        }
    ),
}
PREEMPTION = preemption(
    {"total_preemption_per_round": "1", "natural_termination_factor": "1", "max_wait_before_kill": "5000"}
)


def set_up(kind: str, trace: RunTrace | None = None) -> Stage:
    stage = Stage(nodes=2, settings={**SETTINGS, **(PREEMPTION if kind == PREEMPTED else {})}, trace=trace)
    stage.label(GPU, GPU_NODE, exclusive=kind == EXCLUSIVE)
    stage.submit(2.0, "ann", (Wanted(30, SIZE),), queue="batch")
    stage.submit(BOB_S, "bob", (Wanted(BOB_CONTAINERS, SIZE, seconds=15),), queue="ml", label=GPU)
    return stage


def play(kind: str, trace: RunTrace | None = None) -> Story:
    stage = set_up(kind, trace)
    narrator = Narrator(stage, participants(stage, "ann", "bob"))
    narrator.say(
        f"Two nodes of 8192 MB. n2 has the label {GPU}, which is {'exclusive' if kind == EXCLUSIVE else 'shared'}; n1 "
        f"has none, so it is in the default partition. Queue ml may use the label, and is guaranteed all of its "
        "partition; batch may not. Each has half of the default partition. "
        + ("Preemption is enabled, and kills after 5 s." if kind == PREEMPTED else "Preemption is not enabled.")
    )
    narrator.say(
        "At 2 s ann submits to batch an application with 30 containers of 1024 MB that never end, which name no label."
    )
    held = {f"{name} on n{number}": (name, number) for name in ("ann", "bob") for number in (1, GPU_NODE)}
    samples = Samples(stage, {title: partial(_gb, stage, *of) for title, of in held.items()})
    samples.run(BOB_S - 1)
    _partitions(stage, narrator)
    _explain(stage, narrator, "ann")
    narrator.say(
        f"At {BOB_S:.0f} s bob submits to ml an application with the label {GPU}: its AM and {BOB_CONTAINERS} "
        "containers of 1024 MB, of 15 s each. 15 s later:"
    )
    samples.run(BOB_S + 15)
    _partitions(stage, narrator)
    _explain(stage, narrator, "bob")
    samples.run(UNTIL_S)
    mark = (Mark(round(1000 * BOB_S), "bob submits his application"),)
    narrator.draw(samples.curves("Memory in use", "GB", ("ann on n1", "ann on n2", "bob on n2"), marks=mark))
    narrator.skip()
    facts = _measured(stage, samples)
    return narrator.story(_question(kind, facts), facts)


def _gb(stage: Stage, name: str, number: int) -> float:
    on_node = (each for each in stage.held(name) if each.node_id == stage.node_id(number))
    return sum(each.resource.memory_mb for each in on_node) / 1024


def _partitions(stage: Stage, narrator: Narrator) -> None:
    rows = []
    for label in ("", GPU):
        for name in ("batch", "ml"):
            queue = stage.queue(name, label)
            amounts = (queue.guaranteed, queue.maximum, queue.used)
            rows.append((label or "default", name, *(f"{each.memory_mb} MB" for each in amounts)))
    narrator.table(("partition", "queue", "guaranteed", "maximum", "used"), *rows)


def _explain(stage: Stage, narrator: Narrator, name: str) -> None:
    sentence = stage.verdict(name)
    if sentence:
        narrator.say(f"yarnling explain: {name}'s next container {sentence}.")


def _measured(stage: Stage, samples: Samples) -> dict[str, int | str]:
    began = [each.at_ms for each in stage.account.told if each.text.startswith("allocates bob-am ")]
    killed = [container for _, container, step in stage.account.preempted if step == "killed"]
    is_over = stage.application("bob").state is YarnApplicationState.FINISHED
    return {
        "borrowed": round(max(samples.values["ann on n2"])),
        "left": round(min(samples.values["ann on n2"][round(BOB_S) :])),
        "killed": len(killed),
        "bob_am_ms": began[0] if began else 0,
        "bob": "ended" if is_over else "waits",
    }


def _question(kind: str, facts: dict[str, int | str]) -> Question:
    bob = f"at {int(facts['bob_am_ms']) / 1000:.1f} s" if facts["bob_am_ms"] else "never"
    if kind == EXCLUSIVE:
        why = (
            "A node with an exclusive label serves only requests that name the label, from queues that may use it. "
            "ann's 30 containers do not, so n2 is idle although n1 is full: this is its price.",
            "bob finds n2 free.",
        )
    elif kind == SHARED:
        why = (
            f"Nodes of a shared label serve requests without a label while they would be idle: ann borrows "
            f"{facts['borrowed']} GB. This takes a while, because a request is served there only after it has missed "
            "as many chances as the cluster has nodes; and an AM is never placed there by default.",
            "Often written: if an application comes that asks for the label, the others are preempted. Hadoop 3.4.1: "
            "only with preemption enabled (yarn.resourcemanager.scheduler.monitor.enable, false by default). Without "
            "it, a borrower with containers that never end keeps the node, and the owner waits.",
        )
    else:
        why = (
            f"ann borrows {facts['borrowed']} GB of n2, as in the run with shared. When bob asks for the label, the "
            f"containers there that do not name it are the first to go: {facts['killed']} are killed, one for his AM, "
            f"then {int(facts['killed']) - 1} for the containers that it requests. The other {facts['left']} stay: "
            "nobody needs their memory.",
            "batch has no share of the label, so whatever it uses there is above its guarantee, which is 0. On n1 "
            "nothing is taken. When bob's containers have ended, ann borrows their memory again.",
        )
    return Question(
        f"The label is {kind.replace('-', ' ')}. How much of n2 does ann use before bob comes, and when does the AM of "
        "bob get its container?",
        f"{facts['borrowed']} GB; {bob}",
        why,
    )


LESSON = Lesson(
    15,
    "labels",
    "Labels: nodes for some, lent to others or not",
    (
        "A label such as gpu makes a partition of the nodes that have it; a node has at most one. Nodes without a "
        "label are the default partition. A queue has a guarantee and a maximum in each partition that it may use, and "
        "an application, or a single request, names the label on whose nodes it wants to run.",
        "A label is exclusive or shared (non-exclusive). What is shared is lent to requests without a label while "
        "it is idle.",
    ),
    {
        "node label": "a name on a node. All nodes with it are one partition of the cluster.",
        "exclusive": "only requests that name the label run there.",
        "shared": "idle nodes with the label are lent to requests that name none.",
        ACCESSIBLE: "the labels that a queue may use.",
        "default-node-label-expression": "the label of a queue's requests that name none, so that users of the queue "
        "need not know it.",
    },
    WordChoice("label", (EXCLUSIVE, SHARED, PREEMPTED), "how the label is defined, and whether preemption is enabled"),
    set_up,
    play,
    (
        "Hadoop: CommonNodeLabelsManager; RegularContainerAllocator.preCheckForNodeCandidateSet for lending, "
        "FifoCandidatesSelector.selectCandidates for taking back (recordings labels-511, vectors-of-labels)",
        "here: rm/scheduler/model/node_labels.py, rm/scheduler/preemption/fifo_candidates_selector.py; "
        "tests/scenarios/scripts/e7-shared-label-gives-way.txt",
    ),
)
