"""The file of goals: its grammar, what it is checked against, and all faults at once."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from tests.yarnling.search.imagined import ADHOC, ETL, KNOWN, write
from tests.yarnling.whatif.small_clusters import CS, TWO_QUEUES, configuration
from yarn.faults import ConfigurationException
from yarnling.search.goals_file import SearchGoals, read_goals
from yarnling.search.space import Siblings

VALID = """
about: What the departments agreed on.
goals:
  - queue etl: p95 wait < 20 min
  - no application misses its deadline
minimise: "cluster: mean run time"
change:
  - {queue: [etl, adhoc], key: capacity, from: 10, to: 90, step: 10}
  - {queue: etl, key: user-limit-factor, from: 1, to: 3, step: 0.5}
  - {key: yarn.resourcemanager.scheduler.monitor.enable, values: [true, false]}
"""


def read(directory: Path, text: str, **settings: str) -> SearchGoals:
    return read_goals(write(directory, text), configuration({**TWO_QUEUES, **settings}), KNOWN)


def faults(directory: Path, text: str, **settings: str) -> list[str]:
    with pytest.raises(ConfigurationException) as refused:
        read(directory, text, **settings)
    return [str(fault).replace(f"{directory}/", "") for fault in refused.value.faults]


def test_a_file_has_goals_a_figure_to_minimise_and_what_may_change(tmp_path: Path) -> None:
    goals = read(tmp_path, VALID)
    assert [limit.text for limit in goals.limits] == [
        "queue etl: p95 wait < 20 min",
        "no application misses its deadline",
    ]
    assert goals.limits[0].scope.name == "root.etl"
    assert goals.objective is not None
    assert goals.objective.measure.name == "mean run time"
    etl, adhoc, factor, monitor = goals.space.dimensions
    assert (etl.key, etl.values[:2], etl.before, etl.number_before) == (ETL, ("10", "20"), "50", Decimal(50))
    assert adhoc.key == ADHOC
    assert factor.values == ("1", "1.5", "2", "2.5", "3")
    assert (monitor.values, monitor.before) == (("true", "false"), None)
    assert goals.space.siblings == (Siblings((0, 1), 8),)


def test_weights_have_no_sum(tmp_path: Path) -> None:
    goals = read(
        tmp_path,
        "goals: [queue etl: p95 wait < 1 min]\nchange: [{queue: etl, key: capacity, from: 1, to: 3}]",
        **{ETL: "2w", ADHOC: "1w"},
    )
    assert goals.space.dimensions[0].values == ("1w", "2w", "3w")
    assert goals.space.siblings == ()


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    text = """
goals:
  - queue elt: p95 wait < 20 min
minimise: "cluster: completed containers"
change:
  - {queue: etl, key: capacty, from: 10, to: 90}
  - {queue: adhok, key: capacity, from: 10, to: 90}
  - {queue: etl, key: capacity, from: 90, to: 10}
  - {queue: etl, key: user-limit-factor, from: 1}
  - {queue: etl, key: state}
  - {queue: etl, key: maximum-capacity, from: 50, to: 150, step: 50}
  - {queue: etl, key: maximum-applications, values: [10, many]}
  - {key: yarn.resourcemanager.scheduler.monitor.enabel, values: [true, false]}
  - {queue: adhoc, key: capacity, from: 10, to: 90}
"""
    known = "write one of the queues of the run: root, etl, adhoc"
    found = faults(tmp_path, text)
    assert (
        found[0]
        == f"goals.yaml: goals[1] = 'queue elt: p95 wait < 20 min': there is no queue elt (did you mean etl? {known})"
    )
    assert found[1].startswith(
        "goals.yaml: minimise = 'cluster: completed containers': of completed containers, higher is better"
    )
    assert "change[1].key = 'capacty': is not a key of a queue (did you mean capacity?" in found[2]
    assert found[3] == f"goals.yaml: change[2].queue = 'adhok': there is no queue adhok (did you mean adhoc? {known})"
    assert "change[3]: from 90 to 10 in steps of 1 are not 2 to 1001 values" in found[4]
    assert "change[4]: has only one bound" in found[5]
    assert "change[5]: has neither values nor bounds" in found[6]
    assert f"change[6] = '150': {CS}root.etl.maximum-capacity: is not a percentage from 0 to 100" in found[7]
    assert f"change[7] = 'many': {CS}root.etl.maximum-applications:" in found[8]
    assert "did you mean yarn.resourcemanager.scheduler.monitor.enable?" in found[9]
    assert found[10] == (
        f"goals.yaml: change = '{ADHOC}': cannot change alone: the capacities of siblings keep their sum "
        "(let the capacity of etl change too)"
    )
    assert len(found) == 11


@pytest.mark.parametrize(
    ("bounds", "problem"),
    [
        ("from: 60, to: 90", "sum up to 100, but from 120 to 180 within their bounds"),
        ("from: 15, to: 90, step: 15", "sum up to 100, which no steps of 15 from 30 reach"),
        ("values: [10, 90]", "are parts of a sum, and a list of values cannot keep it"),
    ],
)
def test_bounds_of_siblings_must_allow_their_sum(tmp_path: Path, bounds: str, problem: str) -> None:
    text = f"goals: [queue etl: p95 wait < 1 min]\nchange: [{{queue: [etl, adhoc], key: capacity, {bounds}}}]"
    [fault] = faults(tmp_path, text)
    assert problem in fault


def test_amounts_cannot_be_a_range(tmp_path: Path) -> None:
    text = "goals: [queue etl: p95 wait < 1 min]\nchange: [{queue: etl, key: maximum-capacity, from: 10, to: 90}]"
    [fault] = faults(tmp_path, text, **{f"{CS}root.etl.maximum-capacity": "[memory=4096,vcores=4]"})
    assert "is [memory=4096,vcores=4], which is not a number" in fault


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("change: [{queue: etl, key: state, values: [RUNNING, STOPPED]}]", "there is neither a goal nor a figure"),
        (
            "minimise: 'cluster: p95 wait'\nmaximise: 'cluster: use'\n"
            "change: [{queue: etl, key: state, values: [RUNNING, STOPPED]}]",
            "only one figure can be",
        ),
        (
            "goals: [queue etl: p95 wait < 1 min]\nchange: [{queue: [etl, etl], key: priority, from: 1, to: 2}]",
            "is there twice",
        ),
        (
            "goals: [queue etl: p95 wait < 1 min]\nchange: [{queue: etl, key: priority, values: [1, 1]}]",
            "has a value twice",
        ),
        ("goals: [queue etl: p95 wait < 1 min]\nchange: []", "has 0 items"),
    ],
)
def test_a_file_with_nothing_to_search_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    assert problem in "\n".join(faults(tmp_path, text))
