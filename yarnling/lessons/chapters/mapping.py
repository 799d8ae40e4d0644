"""Chapter 16: mapping rules choose a queue for submissions that name none; the first rule that matches decides."""

from __future__ import annotations

import json
from collections import Counter

from yarn.resource import Resource
from yarnling.lessons.scene.application import Wanted
from yarnling.lessons.scene.lesson import Lesson, Narrator, WordChoice
from yarnling.lessons.scene.settings import SCHEDULER, queues
from yarnling.lessons.scene.stage import Stage
from yarnling.lessons.scene.story import Question, Story
from yarnling.report.curves import Bar, Bars
from yarnling.run.names import CLIENT, RM
from yarnling.simulation.trace_file import RunTrace

UNTIL_S = 30.0
QUEUES = ("root.default", "root.etl", "root.adhoc", "root.x.dev", "root.y.dev")
TREE = queues({"default": "10", "etl": "30", "adhoc": "30", "x": "15", "x.dev": "100", "y": "15", "y.dev": "100"})
MAPPINGS = f"{SCHEDULER}queue-mappings"
OVERRIDE = f"{MAPPINGS}-override.enable"
USER_RULE, GROUP_RULE = "u:ann:root.etl", "g:analysts:root.adhoc"
JSON_RULES = (
    {"type": "user", "matches": "ann", "policy": "custom", "customPlacement": "root.etl", "fallbackResult": "skip"},
    {"type": "group", "matches": "analysts", "policy": "custom", "customPlacement": "root.adhoc"},
    {"type": "application", "matches": "report", "policy": "custom", "customPlacement": "root.x.dev"},
    {"type": "user", "matches": "*", "policy": "reject"},
)
USER_FIRST, GROUP_FIRST, OVERRIDDEN, JSON = "user-first", "group-first", "group-first-override", "json"
RULES = {
    USER_FIRST: {MAPPINGS: f"{USER_RULE},{GROUP_RULE}"},
    GROUP_FIRST: {MAPPINGS: f"{GROUP_RULE},{USER_RULE}"},
    OVERRIDDEN: {MAPPINGS: f"{GROUP_RULE},{USER_RULE}", OVERRIDE: "true"},
    JSON: {
        f"{SCHEDULER}mapping-rule-format": "json",
        f"{SCHEDULER}mapping-rule-json": json.dumps({"rules": JSON_RULES}),
    },
}
NOWHERE = "none"
SUBMISSIONS = (
    # name, user, groups, queue
    ("import", "ann", ("analysts",), "default"),
    ("query", "bob", ("analysts",), "default"),
    ("report", "eve", ("guests",), "default"),
    ("backup", "eve", ("guests",), "default"),
    ("test", "ann", ("analysts",), "root.x.dev"),
    ("trial", "bob", ("analysts",), "dev"),
)


def set_up(rules: str, trace: RunTrace | None = None) -> Stage:
    stage = Stage(nodes=2, settings={**TREE, **RULES[rules]}, trace=trace)
    for number, (name, user, groups, queue) in enumerate(SUBMISSIONS):
        wanted = (Wanted(1, Resource(1024, 1), seconds=30),)
        stage.submit(2.0 + number, name, wanted, user=user, groups=groups, queue=queue)
    return stage


def play(rules: str, trace: RunTrace | None = None) -> Story:
    stage = set_up(rules, trace)
    narrator = Narrator(stage, (CLIENT, RM))
    narrator.say(
        "The queues are root.default, root.etl, root.adhoc, and below two parents root.x.dev and root.y.dev, two "
        "leaves of one name. ann and bob are in the group analysts, eve in guests. The rules, in their order:"
    )
    narrator.table(("", "rule"), *enumerate(_rules(rules), 1))
    narrator.say(
        f"{OVERRIDE} is {RULES[rules].get(OVERRIDE, 'false')}. Six applications are submitted, one a second; those "
        "without a queue name default, as clients send it. The reply of submitApplication, and where each of them is "
        f"at {UNTIL_S:.0f} s:"
    )
    stage.run(UNTIL_S)
    placed = {name: _placed(stage, name) for name, *_ in SUBMISSIONS}
    replies = [each.text for each in stage.account.told if each.rpc == "submitApplication" and each.is_reply]
    narrator.table(
        ("application", "user", "group", "queue named", "reply", "queue", "state"),
        *(
            (name, user, groups[0], queue, reply.partition(":")[0], *placed[name])
            for (name, user, groups, queue), reply in zip(SUBMISSIONS, replies, strict=True)
        ),
    )
    for name, reply in zip(placed, replies, strict=True):
        application = stage.view.application(stage.applications[name])
        words = reply if application is None else application.diagnostics
        if words:
            narrator.say(f"{name}: {words}")
    measured = {name: queue for name, (queue, _) in placed.items()}
    counts = Counter(measured.values())
    bars = tuple(Bar(queue, counts[queue]) for queue in (*QUEUES, NOWHERE))
    narrator.draw(Bars("Applications in each queue", f"of {len(SUBMISSIONS)}", bars))
    return narrator.story(_question(rules, measured), measured)


def _rules(rules: str) -> list[str]:
    if rules == JSON:
        return [json.dumps(rule) for rule in JSON_RULES]
    return RULES[rules][MAPPINGS].split(",")


def _placed(stage: Stage, name: str) -> tuple[str, str]:
    """The queue and the state of an application; it is unknown if its submission was refused by a rule."""
    application = stage.view.application(stage.applications[name])
    if application is None:
        return NOWHERE, ""
    state = application.state.name
    return (NOWHERE if state == "FAILED" else application.queue), state


def _question(rules: str, measured: dict[str, str]) -> Question:
    why: dict[str, tuple[str, ...]] = {
        USER_FIRST: (
            "The rules are tried in their order, and the first that matches decides: ann's own rule stands before "
            "that of her group. bob has only the group's. No rule matches eve, so her applications stay in default.",
        ),
        GROUP_FIRST: (
            "The rules are tried in their order, and the first that matches decides. The rule for analysts stands "
            "first, and ann is one, so her own rule is never reached.",
        ),
        OVERRIDDEN: (
            "With queue-mappings-override.enable the rules are applied to every submission, also if it names a queue: "
            "test, which names root.x.dev, is placed by the rule for analysts, and so is trial, whose queue was "
            "ambiguous.",
        ),
        JSON: (
            "JSON rules (mapping-rule-format json, since Hadoop 3.4) can do more: match an application's name, say "
            "what happens if the queue cannot be used (fallbackResult), create queues, or reject. report goes where "
            "its name says; nothing matches backup before the last rule, which rejects it.",
            "Such a submission is refused at once, by an error of submitApplication; one to a queue that does not "
            "exist or is ambiguous is accepted first, and then FAILED.",
        ),
    }
    others: tuple[str, ...] = ()
    if rules != OVERRIDDEN:
        others = (
            "Rules place only what names no queue (or default), unless queue-mappings-override.enable is true: test "
            "named root.x.dev, and stays there.",
            "Often written: the names of leaf queues must be unique. Hadoop 3.4.1 takes two leaves called dev, and the "
            "full path of each. The short name alone is refused as ambiguous, as trial shows.",
        )
    return Question(
        f"The rules are {rules}. ann is in the group analysts. In which queue is import, which she submits without a "
        "queue, in which one test, which names root.x.dev, and in which one eve's backup?",
        f"import: {measured['import']}; test: {measured['test']}; backup: {measured['backup']}",
        (*why[rules], *others),
    )


LESSON = Lesson(
    16,
    "mapping",
    "Mapping: how a submission gets its queue",
    (
        "Many tools cannot name a queue when they submit an application. Mapping rules choose one by the user, "
        "the user's groups or the application's name. They are one list for the whole cluster.",
        "There are two formats: the list of queue-mappings, u:USER:QUEUE and g:GROUP:QUEUE, and rules in JSON.",
    ),
    {
        "queue-mappings": "rules as u:USER:QUEUE and g:GROUP:QUEUE, separated by commas; the first match decides.",
        "queue-mappings-override.enable": "whether rules also place submissions that name a queue.",
        "mapping-rule-json": "rules in JSON, if mapping-rule-format is json.",
        "path of a queue": "its name with those of all queues above it, such as root.x.dev.",
    },
    WordChoice("rules", tuple(RULES), "the order of the two rules of queue-mappings, with override, or rules in JSON"),
    set_up,
    play,
    (
        "Hadoop: CSMappingPlacementRule, MappingRuleCreator, CapacitySchedulerQueueManager.isAmbiguous (recordings "
        "mappings-512, rules-512)",
        "here: rm/core/placement_rules/mapping.py, rm/core/placement_rules/reading.py; "
        "tests/scenarios/scripts/c4-queue-names.txt",
    ),
)
