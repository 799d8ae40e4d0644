"""Changes between the two sides of a comparison, and how its page shows them."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from tests.yarnling.whatif.outcomes import MINUTE, application, container, page_of, result
from yarnling.whatif.changes import ChangedInput, changes_of
from yarnling.whatif.result import WhatIfResult


def side(**others: object) -> WhatIfResult:
    apps = [application(user="ann"), application(user="bob", queue="root.adhoc")]
    return result(apps, [container(0, MINUTE), container(0, MINUTE, app=1)], **others)


def test_the_page_begins_with_what_was_changed() -> None:
    etl, seen = "yarn.scheduler.capacity.root.etl.", {"yarn.nodemanager.vmem-check-enabled": "false"}
    before = side(settings={**seen, f"{etl}capacity": "60", f"{etl}acl_submit_applications": "*"})
    after = side(settings={**seen, f"{etl}capacity": "40", f"{etl}maximum-capacity": "80"}, nodes=5)
    assert changes_of(before, after) == (
        ChangedInput(f"{etl}acl_submit_applications", "*", "not set"),
        ChangedInput(f"{etl}capacity", "60", "40"),
        ChangedInput(f"{etl}maximum-capacity", "not set", "80"),
        ChangedInput("nodes", "4 nodes (400 GB, 100 vcores)", "5 nodes (400 GB, 100 vcores)"),
    )
    page = page_of(before, after)
    assert page.index("What was changed") < page.index(f"{etl}capacity</th><td>60</td><td>40</td>") < page.index("<h1>")
    assert "vmem-check" not in page
    for which in ("before", "after"):
        assert f'<a href="{which}/report.html">' in page


@pytest.mark.slow
def test_the_page_says_that_both_sides_are_equal() -> None:
    one = side(settings={"a": "1"})
    assert "Both sides are equal" in page_of(one, one)
    assert "Only the seed differs" in page_of(one, side(settings={"a": "1"}, seed=2))
    assert "result without its configuration" in page_of(one, side())
    moved = side(settings={"a": "1"})
    moved = replace(moved, applications=(replace(moved.applications[0], queue="root.ml"), moved.applications[1]))
    assert "queue of 1 application</th><td>root.etl</td><td>root.ml</td>" in page_of(one, moved)
    assert "Both sides are equal" not in page_of(one, moved)


def test_many_changes_are_folded() -> None:
    one, other = (side(settings={f"key{number}": value for number in range(13)}) for value in "ab")
    page = page_of(one, other)
    assert re.search(r"<details>\s*<summary><h2>What was changed</h2> \(13 rows\)</summary>", page)
