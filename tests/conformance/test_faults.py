"""The faults of Hadoop in docs/hadoop-faults.md: recordings of two releases, and what the core does instead."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from tests.conformance.comparison import compare_file

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
PAGE = (ROOT / "docs/hadoop-faults.md").read_text()
FAULTS = re.findall(
    r"^\| \d+ \| \[.*?\]\(#(\S+)\) \| .*? \| `(\S+)` \| recorded: (still there|corrected.*?) \|$", PAGE, re.M
)
"""(anchor of the section, name of the recording, whether 3.5.0 has it) of each row."""
OF_THIS_FOLDER = [name for _, name, _ in FAULTS if name.startswith("fault-")]

OTHERWISE = {
    "fault-negative-count-stays": (7, "queue/root.a@/pending"),
    "fault-half-a-refresh": (7, "queue/root.a/state"),
    "fault-managed-parent-with-children": (4, "reply/error"),
    "fault-shrinking-request": (11, "app/y@/pending"),
    "fault-kept-after-a-restart": (22, "app/j1/attempt"),
}
"""{recording: (step, key) at which the core does not follow Hadoop} (docs/fidelity.md). The others it follows, or the
comparison ends at Hadoop's exception."""


def steps_of(path: Path) -> list[dict[str, object]]:
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines][1:]


def test_each_fault_has_a_section_in_order() -> None:
    headings = re.findall(r"^## (\d+\. .*)$", PAGE, re.MULTILINE)
    anchors = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]
    assert anchors == [anchor for anchor, _, _ in FAULTS]
    assert len(FAULTS) == len(re.findall(r"^\| \d+ \|", PAGE, re.MULTILINE))


def test_each_recording_is_there_and_has_its_row() -> None:
    assert sorted(OF_THIS_FOLDER) == sorted(path.name.partition(".")[0] for path in (HERE / "faults/3.4.1").iterdir())
    for _, name, _ in FAULTS:
        assert name in OF_THIS_FOLDER or (HERE / "recordings" / f"{name}.jsonl.gz").is_file()


@pytest.mark.parametrize("name", OF_THIS_FOLDER)
def test_the_next_release_has_the_fault_too(name: str) -> None:
    first, later = (steps_of(HERE / "faults" / release / f"{name}.jsonl.gz") for release in ("3.4.1", "3.5.0"))
    key = "hang" if name == "fault-endless-proposals" else "reply"
    assert [step.get(key) for step in first] == [step.get(key) for step in later]
    assert first[-1].get("delta") == later[-1].get("delta")


@pytest.mark.parametrize("name", OF_THIS_FOLDER)
def test_the_core_follows_hadoop_or_differs_where_it_says(name: str) -> None:
    outcome = compare_file(HERE / "faults/3.4.1" / f"{name}.jsonl.gz")
    found = [(difference.step, difference.key) for difference in outcome.differences]
    expected = OTHERWISE.get(name)
    assert outcome.same if expected is None else expected in found
