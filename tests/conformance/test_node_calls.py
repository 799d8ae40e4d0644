"""The node protocol call by call: what Hadoop's ResourceTrackerService answered, and yarnling's over gRPC.

`tracker/` has the recordings. Each call is as it is written, also those that no correct NodeManager makes: repeated,
old and future response ids, containers that nobody knows, other versions, hosts that are excluded.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.recording import Json, read
from tests.conformance.served_tracker import ServedTracker, configuration_of
from tests.rm.served_cluster import serving

RECORDINGS = sorted((Path(__file__).parent / "tracker").glob("*.jsonl.gz"))

Listed = dict[tuple[int, str], str]
"""{(number of the step, key of the reply): reason}."""

_FORGET = "a node may forget an AM's container when the end of the attempt is stored, in Hadoop one heartbeat later"
_FIRST = "the answer before the first one has no interval in Hadoop"
_FOREIGN = "a node must not complete the containers of another one (docs/fidelity.md)"
_TWICE = "Hadoop lists an application twice that a node reports at its registration and at its first heartbeat"

DIFFERENCES: dict[str, Listed] = {
    "comes-back-empty": {(6, "containers_to_forget"): _FORGET},
    "ended-before-registering": {(6, "containers_to_forget"): _FORGET},
    "ended-twice": {(step, "containers_to_forget"): _FORGET for step in (6, 7, 8, 10, 11)},
    "id-largest": {(2, "interval_ms"): _FIRST},
    "id-negative": {(2, "interval_ms"): _FIRST, (3, "interval_ms"): _FIRST},
    "id-repeated-other-contents": {(7, "containers_to_forget"): _FORGET},
    "never-started": {(7, "containers_to_forget"): _FORGET, (9, "containers_to_forget"): _FORGET},
    "reported-elsewhere": {(7, "containers_to_clean_up"): _FOREIGN, (8, "containers_to_forget"): _FORGET},
    "unhealthy-master": {(6, "containers_to_forget"): _FORGET},
    "unknown-application": {(7, "applications_to_clean_up"): _TWICE},
}


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name.partition(".")[0])
async def test_calls_are_answered_as_by_hadoop(path: Path, tmp_path: Path) -> None:
    recording = read(path)
    conf = configuration_of(recording, tmp_path)
    found: dict[tuple[int, str], object] = {}
    async with serving(conf, reload=lambda: conf) as cluster:
        tracker = ServedTracker(cluster, await cluster.client(), tmp_path)
        try:
            for number, step in enumerate(recording.steps, 1):
                ours, hadoops = await tracker.step(step.action), _shown(step.reply)
                for key in {*ours, *hadoops}:
                    if ours.get(key) != hadoops.get(key):
                        found[number, key] = (step.action, "Hadoop", hadoops.get(key), "yarnling", ours.get(key))
        finally:
            await tracker.close()
    listed = DIFFERENCES.get(recording.name, {})
    assert {place: what for place, what in found.items() if place not in listed} == {}
    assert found.keys() == listed.keys(), "a listed difference is gone"


def test_there_are_recordings() -> None:
    assert len(RECORDINGS) >= 40
    assert DIFFERENCES.keys() <= {path.name.partition(".")[0] for path in RECORDINGS}


def _shown(reply: Json) -> Json:
    """Hadoop's reply; of an error only the class, since messages may contain addresses."""
    return {"error": reply["error"]["class"]} if "error" in reply else reply
