"""Each rule in which releases of Hadoop differ is held by a recording of the release that has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.conformance.comparison import compare_file
from tests.conformance.recording import read
from yarn.settings.release import RELEASES

RECORDINGS = Path(__file__).parent / "recordings"

HELD = [
    ("release-342-tie-mixed", "compares_any_amounts"),
    ("release-350-request-checked-first", "checks_requests_first"),
    ("release-350-vector-without-memory", "keeps_vectors_without_memory"),
    ("release-350-zero-amounts-beside-percent", "knows_amounts_by_notation"),
    ("release-350-percent-before-zero-amounts", "knows_amounts_by_notation"),
    ("release-350-childless-managed-parent", "passes_over_childless_parents"),
    ("release-350-lifetime-of-the-first", "creates_queues_before_storing"),
    ("release-350-unknown-queue", "creates_queues_before_storing"),
    ("release-350-corrected-requests", "corrects_requests"),
]


@pytest.mark.parametrize(("name", "switch"), HELD)
def test_without_the_rule_the_recording_differs(name: str, switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = RECORDINGS / f"{name}.jsonl.gz"
    release = RELEASES[read(path).release]
    assert compare_file(path).same
    monkeypatch.setitem(RELEASES, release.version, replace(release, **{switch: False}))
    assert not compare_file(path).same


@pytest.mark.parametrize("version", list(RELEASES)[1:])
def test_a_release_follows_what_it_shares_with_the_first(version: str) -> None:
    """A recording of 3.4.1 without any of the changed rules is the same for each release."""
    assert compare_file(RECORDINGS / "basic-7.jsonl.gz", version).same
