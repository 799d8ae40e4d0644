"""Records as JSON: names for enums, Hadoop's texts for ids, types for resources."""

from __future__ import annotations

import json

import pytest

from yarn.ids import ApplicationId, NodeId
from yarn.nodes import NodeHealth, NodeReport
from yarn.resource import Resource
from yarn.states import NodeState
from yarnling.cli import json_form


def test_a_report() -> None:
    node = NodeReport(
        NodeId("127.0.0.2", 7),
        NodeState.RUNNING,
        "",
        "/default-rack",
        Resource(0, 0),
        Resource(1024, 2, (("gpu", 1),)),
        3,
        NodeHealth(),
        labels=frozenset({"b", "a"}),
    )
    form = json.loads(json_form.text(node))
    assert form["node_id"] == "127.0.0.2:7"
    assert form["state"] == "RUNNING"
    assert form["capability"] == {"memory-mb": 1024, "vcores": 2, "gpu": 1}
    assert form["labels"] == ["a", "b"]
    assert form["health"]["healthy"] is True
    assert form["update_type"] is None


def test_keys_and_items_may_be_ids() -> None:
    app_id = ApplicationId(1_700_000_000_000, 1)
    assert json_form.plain({app_id: [app_id]}) == {str(app_id): [str(app_id)]}


def test_what_is_none_of_our_records_is_refused() -> None:
    with pytest.raises(TypeError, match="object has no form in JSON"):
        json_form.plain(object())
