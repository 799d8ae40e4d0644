"""Reads the configured mapping rules (MappingRuleCreator): lists such as `u:ann:root.a`, or JSON.

Faults are reported in Hadoop's words. A faulty rule is omitted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import cast

from rm.core.placement_rules.rules import (
    APPLICATION,
    DEFAULT,
    PRIMARY_GROUP,
    SECONDARY_GROUP,
    SPECIFIED,
    USER,
    Action,
    Fallback,
    MappingRule,
    Subject,
)
from yarn.configuration import Configuration
from yarn.faults import Fault, untrimmed
from yarn.settings import scheduler
from yarn.settings.unsupported import unsupported

MAPPINGS = scheduler.QUEUE_MAPPINGS.key
OVERRIDE = scheduler.QUEUE_MAPPINGS_OVERRIDE.key
FORMAT = scheduler.MAPPING_RULE_FORMAT.key
JSON = scheduler.MAPPING_RULE_JSON.key
JSON_FILE = scheduler.MAPPING_RULE_JSON_FILE.key
"""The key of a file with JSON rules. rm.shell.configuration_files reads it and passes the text to the core under
the key of JSON rules."""
PLACEMENT_RULES = scheduler.QUEUE_PLACEMENT_RULES.key
APPLICATION_MAPPINGS = scheduler.APPLICATION_MAPPINGS.key

_KNOWN_RULES = (
    "user-group",
    "app-name",
    "org.apache.hadoop.yarn.server.resourcemanager.placement.CSMappingPlacementRule",
)
"""Values of yarn.scheduler.queue-placement-rules that select the mapping rules. Hadoop's other values are for the
FairScheduler."""
_REMEDY = "write u:<user>:<queue> or g:<group>:<queue>"

_PARTS = {
    "user": USER,
    "primaryGroup": PRIMARY_GROUP,
    "primaryGroupUser": f"{PRIMARY_GROUP}.{USER}",
    "secondaryGroup": SECONDARY_GROUP,
    "secondaryGroupUser": f"{SECONDARY_GROUP}.{USER}",
    "applicationName": APPLICATION,
}
"""{policy: the path to place in}; the path is relative to `parentQueue` if that is set."""


class _Problem(Exception):
    """A fault of one rule."""


def read_rules(configuration: Configuration, faults: list[Fault]) -> tuple[MappingRule, ...]:
    """The configured rules in order; empty if none are configured."""

    def note(key: str, problem: str, remedy: str) -> None:
        faults.append(Fault(key, configuration.get(key), configuration.origin(key), problem, remedy))

    names = configuration.get_strings(PLACEMENT_RULES)
    if len(set(names)) < len(names):
        note(PLACEMENT_RULES, "Invalid PlacementRule inputs which contains duplicate rule strings", "list each once")
    for name in names:
        if name not in _KNOWN_RULES:
            problem = f"the placement rule {name} is not supported"
            effect = "applications that it would place keep the queue of their submission, or that of the other rules"
            remedy = f"name {' and '.join(_KNOWN_RULES[:2])}"
            faults.append(unsupported(configuration, PLACEMENT_RULES, problem, effect, remedy))
    kind = configuration.get(FORMAT)
    if kind is None or kind == "legacy":
        return _read_lists(configuration, note)
    if kind == "json":
        return _read_json(configuration, note)
    problem = untrimmed(kind, f"Illegal queue mapping format {kind!r} please use 'legacy' or 'json'")
    note(FORMAT, problem, "write legacy or json")
    return ()


def _read_lists(configuration: Configuration, note: Callable[[str, str, str], None]) -> tuple[MappingRule, ...]:
    rules: list[MappingRule] = []
    for text in configuration.get_strings(MAPPINGS):
        match _words(text):
            case ["u", "%user", target]:
                rules.append(_placing(Subject.ALL, "*", target))
            case ["u", source, target]:
                rules.append(_placing(Subject.USER, source, target))
            case ["g", source, target]:
                rules.append(_placing(Subject.GROUP, source, target))
            case [prefix, _, _]:
                note(MAPPINGS, f"Illegal queue mapping {text}: unknown mapping prefix {prefix}", _REMEDY)
            case _:
                note(MAPPINGS, f"Illegal queue mapping {text}", _REMEDY)
    for text in configuration.get_strings(APPLICATION_MAPPINGS):
        match _words(text):
            case [source, target]:
                rules.append(_placing(Subject.APPLICATION, source, target))
            case _:
                note(APPLICATION_MAPPINGS, f"Illegal queue mapping {text}", "write <application>:<queue>")
    return tuple(rules)


def _words(text: str) -> list[str]:
    return [word for part in text.split(":") if (word := part.strip())]


def _placing(subject: Subject, matches: str, target: str) -> MappingRule:
    """A rule from one of the lists. If its queue cannot be used, the application goes to the default queue."""
    return MappingRule(subject, matches, Action.PLACE, target, fallback=Fallback.PLACE_DEFAULT)


def _read_json(configuration: Configuration, note: Callable[[str, str, str], None]) -> tuple[MappingRule, ...]:
    text = configuration.get(JSON) or ""
    if not text:
        return ()
    try:
        described: object = json.loads(text)
    except ValueError as error:
        note(JSON, f"not valid JSON: {error}", 'write {"rules": [...]}')
        return ()
    rules = _object(described).get("rules")
    if not isinstance(rules, list):
        note(JSON, "does not contain a list of rules", 'write {"rules": [...]}')
        return ()
    read: list[MappingRule] = []
    for number, rule in enumerate(cast("list[object]", rules), start=1):
        try:
            read.append(_rule(rule))
        except _Problem as problem:
            note(JSON, f"rule {number}: {problem}", "see Hadoop's page on the CapacityScheduler's mapping rules")
    return tuple(read)


def _object(value: object) -> dict[str, object]:
    """The members of a JSON object; empty for any other value."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _rule(rule: object) -> MappingRule:
    if not isinstance(rule, dict):
        raise _Problem("is not a JSON object")
    described = _object(cast("object", rule))
    policy = _text(described, "policy", "Rule policy is undefined")
    subject, matches = _matcher(described)
    action, target = _action(policy, described)
    may_create = described.get("create")
    try:
        fallback = Fallback(described.get("fallbackResult") or "skip")
    except ValueError as error:
        raise _Problem(f"fallbackResult: {error}") from None
    if policy == "defaultQueue":
        may_create = False
    return MappingRule(subject, matches, action, target, may_create=may_create is not False, fallback=fallback)


def _matcher(described: dict[str, object]) -> tuple[Subject, str]:
    kind = _text(described, "type", "Rule type is undefined")
    matches = _text(described, "matches", "Match string is undefined")
    if kind == "user":
        return (Subject.ALL if matches == "*" else Subject.USER), matches
    if kind == "group":
        if matches == "*":
            raise _Problem("Cannot match '*' for groups")
        return Subject.GROUP, matches
    if kind == "application":
        return Subject.APPLICATION, matches
    raise _Problem(f"Unknown type: {kind}")


def _action(policy: str, described: dict[str, object]) -> tuple[Action, str]:
    if policy in _PARTS:
        parent = described.get("parentQueue")
        return Action.PLACE, _PARTS[policy] if parent is None else f"{parent}.{_PARTS[policy]}"
    if policy == "specified":
        return Action.PLACE, SPECIFIED
    if policy == "defaultQueue":
        return Action.PLACE, DEFAULT
    if policy == "reject":
        return Action.REJECT, ""
    if policy == "custom":
        return Action.PLACE, _text(described, "customPlacement", "custom queue is undefined")
    if policy == "setDefaultQueue":
        return Action.SET_DEFAULT, _text(described, "value", "default queue is undefined")
    raise _Problem(f"Unsupported policy: {policy}")


def _text(described: dict[str, object], name: str, problem: str) -> str:
    value = described.get(name)
    if not isinstance(value, str) or not value:
        raise _Problem(problem)
    return value
