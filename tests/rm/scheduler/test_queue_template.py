"""Templates of queues created on demand (Hadoop: AutoCreatedQueueTemplate, TestAutoCreatedQueueTemplate)."""

from __future__ import annotations

import pytest

from rm.scheduler.config.queue_templates import QueueTemplate
from tests.rm.scheduler.cluster import configuration

CREATION = "auto-queue-creation-v2."


def properties(conf: dict[str, str], path: str, *, is_leaf: bool = True) -> dict[str, str]:
    found = QueueTemplate(configuration(conf), path).properties(is_leaf=is_leaf)
    return {name: entry.value for name, entry in found.items()}


def test_a_template_for_the_parents_path_wins_over_wildcards() -> None:
    conf = {
        f"root.a.b.{CREATION}template.capacity": "6w",
        f"root.a.*.{CREATION}template.capacity": "5w",
        f"root.a.*.{CREATION}template.priority": "5",
        f"root.*.*.{CREATION}template.priority": "4",
        f"root.*.*.{CREATION}template.max-parallel-apps": "4",
    }
    assert properties(conf, "root.a.b") == {"capacity": "6w", "priority": "5", "max-parallel-apps": "4"}


def test_leaf_and_parent_templates_win_over_common_ones_even_from_a_wildcard() -> None:
    conf = {
        f"root.a.{CREATION}template.capacity": "1w",
        f"root.*.{CREATION}leaf-template.capacity": "2w",
        f"root.a.{CREATION}parent-template.capacity": "3w",
    }
    assert properties(conf, "root.a") == {"capacity": "2w"}
    assert properties(conf, "root.a", is_leaf=False) == {"capacity": "3w"}


@pytest.mark.parametrize(
    ("path", "pattern"), [("root", "*"), ("root.a", "*.*"), ("root.a.b.c", "root.*.*.*"), ("root.a", "root.*.*")]
)
def test_wildcards_replace_neither_root_nor_more_levels_than_may_be_created(path: str, pattern: str) -> None:
    assert properties({f"{pattern}.{CREATION}template.capacity": "2w"}, path) == {}


def test_more_levels_may_be_wildcards_if_more_may_be_created() -> None:
    conf = {f"root.*.*.*.{CREATION}template.capacity": "2w", f"root.a.b.c.{CREATION}maximum-queue-depth": "3"}
    assert properties(conf, "root.a.b.c") == {"capacity": "2w"}


def test_root_may_have_templates() -> None:
    assert properties({f"root.{CREATION}template.capacity": "2w"}, "root") == {"capacity": "2w"}


def test_the_queues_own_keys_win_except_for_two_of_a_leaf() -> None:
    """AbstractLeafQueue.parseAndSetDynamicTemplates sets two keys before it reads the configured ones."""
    conf = {
        f"root.a.{CREATION}template.priority": "1",
        "root.a.new.priority": "7",
        "root.a.new.user-limit-factor": "3",
        "root.a.new.maximum-am-resource-percent": "0.5",
    }
    overlaid = QueueTemplate(configuration(conf), "root.a").configuration_of("root.a.new", is_leaf=True)
    values = overlaid.values("yarn.scheduler.capacity.root.a.new.")
    assert [value for _, value in sorted(values.items())] == ["1.0", "7", "-1"]


def test_user_weights_in_a_template_have_no_effect() -> None:
    """UserWeights.createByConfig reads the configuration as it was loaded."""
    conf = {f"root.a.{CREATION}template.user-settings.ann.weight": "2"}
    overlaid = QueueTemplate(configuration(conf), "root.a").configuration_of("root.a.new", is_leaf=True)
    assert overlaid.keys("yarn.scheduler.capacity.root.a.new.user-settings.") == ()


def test_labels_come_from_the_common_template_else_from_the_queues_own_keys() -> None:
    """AbstractCSQueue.parseAndSetDynamicTemplates ignores wildcards and leaf or parent templates here."""
    own = {"root.a.new.accessible-node-labels.y.capacity": "1w"}
    others = {
        f"root.*.{CREATION}template.accessible-node-labels.x.capacity": "1w",
        f"root.a.{CREATION}leaf-template.accessible-node-labels.x.capacity": "1w",
    }
    named = {f"root.a.{CREATION}template.accessible-node-labels.x.capacity": "1w"}
    labels = [
        QueueTemplate(configuration(conf), "root.a").labels_of("root.a.new")
        for conf in (others, own | others, own | named)
    ]
    assert labels == [(), ("y",), ("x",)]
