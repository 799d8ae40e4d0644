"""Hadoop's CSMappingPlacementRule: the first rule that places decides, and a submission that named a queue is left
alone unless the rules are told to override it."""

from __future__ import annotations

from rm.core.placement_rules.queues import NoSuchPlace, Queues, check_target, resolved
from rm.core.placement_rules.reading import JSON, MAPPINGS, OVERRIDE, read_rules
from rm.core.placement_rules.rules import PLACE_DEFAULT, Action, Fallback, MappingRule
from rm.core.placement_rules.variables import DEFAULT_QUEUE, NAMES, Variables
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.faults import Fault, refuse_if_faulty

REJECTED = "Application submission have been rejected by a mapping rule. Please see the logs for details"


class MappingPlacement:
    """The rules of a configuration, over the queues as they are at each call."""

    __slots__ = ("_overrides", "_queues", "_rules")

    def __init__(self, configuration: Configuration, queues: Queues) -> None:
        """Raises ConfigurationException for rules that cannot be read, or that can never place anything."""
        faults: list[Fault] = []
        self._queues = queues
        self._rules = read_rules(configuration, faults)
        self._overrides = configuration.get_bool(OVERRIDE, False)
        key = JSON if configuration.get(JSON) and not configuration.get(MAPPINGS) else MAPPINGS
        for rule in self._rules:
            try:
                _check(rule, queues)
            except NoSuchPlace as problem:
                faults.append(
                    Fault(key, rule.target, configuration.origin(key), str(problem), "name a leaf queue that there is")
                )
        refuse_if_faulty(faults)

    def place(self, *, user: str, groups: tuple[str, ...], application: str, queue: str) -> str | None:
        """The full path that the rules choose; None if they leave it at `queue`. Raises YarnException to reject."""
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
            if rule.is_for(variables) and (path := self._apply(rule, variables)) is not None:
                return path
        return None

    def _apply(self, rule: MappingRule, variables: Variables) -> str | None:
        """Where a matching rule places; None to go on with the next."""
        if rule.action is Action.REJECT:
            raise YarnException(REJECTED)
        if rule.action is Action.SET_DEFAULT:
            variables.set_default(rule.target)
            return None
        try:
            return resolved(variables.in_path(rule.target), self._queues, may_create=rule.may_create)
        except NoSuchPlace:
            return self._fall_back(rule.fallback, variables)

    def _fall_back(self, fallback: Fallback, variables: Variables) -> str | None:
        if fallback is Fallback.SKIP:
            return None
        if fallback is Fallback.REJECT:
            raise YarnException(REJECTED)
        try:
            return resolved(variables.in_path(PLACE_DEFAULT.target), self._queues, may_create=False)
        except NoSuchPlace:
            raise YarnException(REJECTED) from None


def _check(rule: MappingRule, queues: Queues) -> None:
    if rule.action is Action.PLACE:
        check_target(rule.target, NAMES, queues)
