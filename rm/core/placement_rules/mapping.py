"""Hadoop's CSMappingPlacementRule: the first rule that places an application decides. A submission with a queue keeps
it unless queue-mappings-override.enable is set."""

from __future__ import annotations

from rm.core.placement_rules.queues import NoSuchQueue, Queues, check_target, resolved
from rm.core.placement_rules.reading import JSON, MAPPINGS, OVERRIDE, read_rules
from rm.core.placement_rules.rules import DEFAULT_QUEUE, NAMES, PLACE_DEFAULT, Action, Fallback, MappingRule, Variables
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.faults import Fault, refuse_if_faulty

REJECTED = "Application submission have been rejected by a mapping rule. Please see the logs for details"


class MappingPlacement:
    """The rules of a configuration, applied to the queues as they are at each call."""

    __slots__ = ("_overrides", "_queues", "_rules")

    def __init__(self, configuration: Configuration, queues: Queues) -> None:
        """Raises ConfigurationException for rules that are not valid, or that can never place an application."""
        faults: list[Fault] = []
        self._queues = queues
        self._rules = read_rules(configuration, faults)
        self._overrides = configuration.get_bool(OVERRIDE, False)
        key = JSON if configuration.get(JSON) and not configuration.get(MAPPINGS) else MAPPINGS
        for rule in self._rules:
            try:
                _check(rule, queues)
            except NoSuchQueue as problem:
                faults.append(
                    Fault(key, rule.target, configuration.origin(key), str(problem), "name an existing leaf queue")
                )
        refuse_if_faulty(faults)

    def place(self, *, user: str, groups: tuple[str, ...], application: str, queue: str) -> str | None:
        """The full path that the rules choose; None to keep `queue`. Raises YarnException to reject the submission."""
        if not self._rules or (queue != DEFAULT_QUEUE and not self._overrides):
            return None
        variables = Variables(
            user=user,
            groups=groups,
            application=application,
            queue=queue,
            exists=lambda path: self._queues.find(path) is not None,
        )
        for rule in self._rules:
            if rule.matches_submission(variables) and (path := self._apply(rule, variables)) is not None:
                return path
        return None

    def _apply(self, rule: MappingRule, variables: Variables) -> str | None:
        """The queue of a matching rule; None to continue with the next rule."""
        if rule.action is Action.REJECT:
            raise YarnException(REJECTED)
        if rule.action is Action.SET_DEFAULT:
            variables.set_default(rule.target)
            return None
        try:
            return resolved(variables.in_path(rule.target), self._queues, may_create=rule.may_create)
        except NoSuchQueue:
            return self._fall_back(rule.fallback, variables)

    def _fall_back(self, fallback: Fallback, variables: Variables) -> str | None:
        if fallback is Fallback.SKIP:
            return None
        if fallback is Fallback.REJECT:
            raise YarnException(REJECTED)
        try:
            return resolved(variables.in_path(PLACE_DEFAULT.target), self._queues, may_create=False)
        except NoSuchQueue:
            raise YarnException(REJECTED) from None


def _check(rule: MappingRule, queues: Queues) -> None:
    if rule.action is Action.PLACE:
        check_target(rule.target, NAMES, queues)
