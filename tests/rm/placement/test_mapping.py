"""Mapping rules: the queue of a submission (CSMappingPlacementRule)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rm.core.placement_rules.mapping import REJECTED, FoundQueue, MappingPlacement
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.faults import ConfigurationException

PREFIX = "yarn.scheduler.capacity."


class Tree:
    """The queues with the given leaf paths; those in `creating` create queues on demand."""

    def __init__(self, *leaves: str, creating: tuple[str, ...] = ()) -> None:
        self._creating = creating
        self._leaves = leaves
        self._paths = {path: None for leaf in leaves for path in _with_parents(leaf)}

    def find(self, name: str) -> FoundQueue | None:
        paths = [name] if name in self._paths else [p for p in self._paths if p.rpartition(".")[2] == name]
        return FoundQueue(paths[0], paths[0] in self._leaves, paths[0] in self._creating) if len(paths) == 1 else None

    def is_ambiguous(self, name: str) -> bool:
        return sum(path.rpartition(".")[2] == name for path in self._paths) > 1


def _with_parents(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]


TREE = Tree("root.default", "root.one", "root.two", "root.users.ann", "root.users.staff", "root.a.same", "root.b.same")


def lists(mappings: str, **more: str) -> MappingPlacement:
    """Rules in the older notation; in the keys of `more`, `_` stands for a dot."""
    return MappingPlacement(Configuration.of({PREFIX + "queue-mappings": mappings, **more}), TREE)


def rules(*described: dict[str, Any], tree: Tree = TREE) -> MappingPlacement:
    text = json.dumps({"rules": described})
    conf = {PREFIX + "mapping-rule-format": "json", PREFIX + "mapping-rule-json": text}
    return MappingPlacement(Configuration.of(conf), tree)


def place(
    placement: MappingPlacement,
    user: str = "ann",
    groups: tuple[str, ...] = ("staff",),
    queue: str = "default",
    application: str = "N/A",
) -> str | None:
    return placement.place(user=user, groups=groups, application=application, queue=queue)


@pytest.mark.case("C5")
def test_the_first_matching_rule_decides() -> None:
    mappings = lists("u:ann:root.one,g:staff:root.two,u:%user:root.default")
    assert place(mappings) == "root.one"
    assert place(mappings, user="bob") == "root.two"
    assert place(mappings, user="eve", groups=()) == "root.default"


@pytest.mark.case("C5")
def test_a_group_rule_matches_any_group_of_the_user() -> None:
    """UserGroupMatcher checks the whole set of groups."""
    assert place(lists("g:staff:root.two"), groups=("guests", "staff")) == "root.two"


@pytest.mark.case("C5")
def test_the_queue_of_a_submission_is_kept_unless_rules_override_it() -> None:
    assert place(lists("u:ann:root.one"), queue="root.two") is None
    overriding = lists("u:ann:root.one", **{PREFIX + "queue-mappings-override.enable": "true"})
    assert place(overriding, queue="root.two") == "root.one"


def test_a_queue_that_cannot_be_used_falls_back_to_the_default_queue() -> None:
    """createLegacyRule: every rule of the lists falls back to %default, and rejects if that fails."""
    assert place(lists("u:%user:root.users.%user")) == "root.users.ann"
    assert place(lists("u:%user:root.users.%user"), user="bob") == "root.default"
    with pytest.raises(YarnException, match="^" + REJECTED):
        place(
            MappingPlacement(
                Configuration.of({PREFIX + "queue-mappings": "u:%user:root.users.%user"}), Tree("root.users.ann")
            ),
            user="bob",
        )


def test_dots_in_names_are_replaced_in_paths() -> None:
    """cleanName; matchers compare with the original name."""
    tree = Tree("root.default", "root.users.ann_dot_lee")
    conf = Configuration.of({PREFIX + "queue-mappings": "u:ann.lee:root.users.%user"})
    assert place(MappingPlacement(conf, tree), user="ann.lee") == "root.users.ann_dot_lee"


def test_applications_are_mapped_by_name() -> None:
    mappings = lists("", **{"yarn.scheduler.queue-placement-rules.app-name": "nightly:root.two"})
    assert place(mappings, application="nightly") == "root.two"
    assert place(mappings, application="other") is None


@pytest.mark.parametrize(
    ("mappings", "problem"),
    [
        ("u:ann", "Illegal queue mapping u:ann"),
        ("x:ann:root.one", "unknown mapping prefix x"),
        ("u:ann:root.nosuch", "it is not a dynamic parent queue"),
        ("u:ann:nosuch", "Path root 'nosuch' does not exist"),
        ("u:ann:same", "Path root 'same' is ambiguous"),
        ("u:ann:root.users", "but it's not a leaf queue"),
        ("u:ann:root.one.%user", "is a leaf queue, which can have no other queues under it"),
    ],
)
def test_rules_that_can_never_place_are_refused(mappings: str, problem: str) -> None:
    """MappingRuleValidationContextImpl: at start and at each refresh, not at a submission."""
    with pytest.raises(ConfigurationException, match=problem) as refused:
        lists(mappings)
    assert refused.value.faults[0].key == PREFIX + "queue-mappings"


@pytest.mark.parametrize(
    ("rule", "placed"),
    [
        ({"policy": "user", "parentQueue": "root.users"}, "root.users.ann"),
        ({"policy": "primaryGroup", "parentQueue": "root.users"}, None),
        ({"policy": "secondaryGroup", "parentQueue": "root.users"}, "root.users.staff"),
        ({"policy": "custom", "customPlacement": "users.%user"}, "root.users.ann"),
        ({"policy": "custom", "customPlacement": "root.users.%secondary_group"}, "root.users.staff"),
        ({"policy": "applicationName"}, "root.two"),
        ({"policy": "specified"}, None),
        ({"policy": "defaultQueue"}, "root.default"),
        ({"policy": "primaryGroupUser", "parentQueue": "root", "fallbackResult": "placeDefault"}, "root.default"),
    ],
)
@pytest.mark.case("C5")
def test_policies(rule: dict[str, Any], placed: str | None) -> None:
    placement = rules({"type": "user", "matches": "*", **rule})
    assert place(placement, groups=("guests", "unknown", "staff"), application="two") == placed


def test_without_groups_the_group_variables_stay_as_written() -> None:
    """setupGroupsForVariableContext sets neither variable; there is no queue named %primary_group."""
    placement = rules({"type": "user", "matches": "*", "policy": "primaryGroup", "fallbackResult": "placeDefault"})
    assert place(placement, groups=()) == "root.default"


def test_a_new_default_queue_is_used_by_the_rules_after_it() -> None:
    placement = rules(
        {"type": "user", "matches": "*", "policy": "setDefaultQueue", "value": "root.users.%user"},
        {"type": "user", "matches": "*", "policy": "defaultQueue"},
    )
    assert place(placement) == "root.users.ann"


def test_rejections() -> None:
    for rule in (
        {"policy": "reject"},
        {"policy": "custom", "customPlacement": "root.%user", "fallbackResult": "reject"},
    ):
        with pytest.raises(YarnException, match="^" + REJECTED):
            place(rules({"type": "group", "matches": "staff", **rule}))


def test_a_queue_may_be_created_where_its_parent_creates_queues() -> None:
    tree = Tree("root.default", "root.made.x", creating=("root.made",))
    rule = {"type": "user", "matches": "*", "policy": "user", "parentQueue": "root.made"}
    assert place(rules(rule, tree=tree)) == "root.made.ann"
    assert place(rules({**rule, "create": False}, tree=tree)) is None


def test_one_missing_parent_may_be_created_too() -> None:
    """MappingRuleValidationHelper.validateQueuePathAutoCreation checks the parent and its parent."""
    tree = Tree("root.default", "root.made.x", "root.made.staff.bob", creating=("root.made", "root.made.staff"))
    both = {"type": "user", "matches": "*", "policy": "primaryGroupUser", "parentQueue": "root.made"}
    assert place(rules(both, tree=tree), groups=("guests", "staff")) == "root.made.guests.ann"
    existing = {**both, "policy": "secondaryGroupUser"}
    assert place(rules(existing, tree=tree), groups=("guests", "others", "staff")) == "root.made.staff.ann"
    deep = {**both, "policy": "custom", "customPlacement": "root.made.%primary_group.deep.%user"}
    assert place(rules(deep, tree=tree), groups=("guests",)) is None


def test_the_rule_may_be_named_by_its_class() -> None:
    name = "org.apache.hadoop.yarn.server.resourcemanager.placement.CSMappingPlacementRule"
    assert place(lists("u:ann:root.one", **{"yarn.scheduler.queue-placement-rules": name})) == "root.one"


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"matches": "*", "policy": "user"}, "Rule type is undefined"),
        ({"type": "user", "policy": "user"}, "Match string is undefined"),
        ({"type": "user", "matches": "*"}, "Rule policy is undefined"),
        ({"type": "group", "matches": "*", "policy": "user"}, r"Cannot match '\*' for groups"),
        ({"type": "user", "matches": "*", "policy": "best"}, "Unsupported policy: best"),
        ({"type": "user", "matches": "*", "policy": "custom"}, "custom queue is undefined"),
        ({"type": "user", "matches": "*", "policy": "user", "fallbackResult": "x"}, "fallbackResult"),
    ],
)
def test_faults_of_json_rules(rule: dict[str, Any], problem: str) -> None:
    """MappingRuleCreator.checkMandatoryParameters and createAction."""
    with pytest.raises(ConfigurationException, match=problem):
        rules(rule)


def test_faults_of_the_format() -> None:
    for conf, problem in (
        ({PREFIX + "mapping-rule-format": "xml"}, "Illegal queue mapping format 'xml'"),
        ({PREFIX + "mapping-rule-format": "json", PREFIX + "mapping-rule-json": "{"}, "not valid JSON"),
        ({"yarn.scheduler.queue-placement-rules": "user-group,user-group"}, "duplicate rule strings"),
    ):
        with pytest.raises(ConfigurationException, match=problem):
            MappingPlacement(Configuration.of(conf), TREE)


def test_a_placement_rule_that_is_not_supported_is_a_warning() -> None:
    conf = {"yarn.scheduler.queue-placement-rules": "user-group,org.example.Mine"}
    (warning,) = MappingPlacement(Configuration.of(conf), TREE).warnings
    assert warning.problem == "the placement rule org.example.Mine is not supported"
    assert "keep the queue of their submission" in warning.effect
    with pytest.raises(ConfigurationException, match=r"org\.example\.Mine is not supported"):
        MappingPlacement(Configuration.of({**conf, "yarn.yarnling.strict": "true"}), TREE)
