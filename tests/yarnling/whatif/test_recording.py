"""The records made while a workload runs."""

from __future__ import annotations

import pytest

from yarnling.whatif.recording import Explained, KeyWaits

FULL, LIMIT, SOON = "waits because the cluster is full", "waits because of the AM limit", "waits for the next heartbeat"


@pytest.mark.parametrize(
    ("explained", "expected"),
    [
        ([], ""),
        ([Explained(50, "FULL", "waits because of another request")], ""),
        ([Explained(200, "FULL", "waits because 1 is full"), Explained(800, "FULL", FULL)], FULL),
        (
            [Explained(110, "SOON", SOON), Explained(150, "LIMIT", LIMIT), Explained(800, "FULL", FULL)],
            f"{FULL}; before that, because of the AM limit",
        ),
        (
            [Explained(200, "FULL", FULL), Explained(500, "LIMIT", LIMIT), Explained(900, "FULL", FULL)],
            f"{FULL}; before that, because of the AM limit",
        ),
        (
            [Explained(200, "LIMIT", LIMIT), Explained(1000, "FULL", FULL)],
            f"{FULL}; before that, because of the AM limit",
        ),
        ([Explained(200, "LIMIT", LIMIT), Explained(1200, "FULL", FULL)], LIMIT),
    ],
)
def test_a_wait_has_its_last_explanation_and_those_of_other_causes_that_held_for_long(
    explained: list[Explained], expected: str
) -> None:
    assert KeyWaits(explained=explained).explanation(requested_ms=100, wait_ms=1000) == expected
