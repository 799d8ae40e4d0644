"""The amounts of verdicts are those of Hadoop's ResourceManager, after each step of the recordings that are kept here.

A user's limit is compared where the recorded one is of the same version: Hadoop stores it only when it looks it up.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from rm.core.explain.verdict import Cause, Finding, Verdict, verdicts_of
from rm.scheduler.model.application import FiCaSchedulerApp
from rm.scheduler.model.leaf_queue import LeafQueue
from tests.conformance.cluster import RecordedCluster, Unsupported
from tests.conformance.comparison import stumbles
from tests.conformance.recording import View, read
from tests.conformance.replies import show
from tests.conformance.test_recordings import RECORDINGS
from yarn.faults import ConfigurationException
from yarn.ids import NodeId


def recorded(
    cluster: RecordedCluster, view: View, attempt: FiCaSchedulerApp, verdict: Verdict, node_id: NodeId, found: Finding
) -> object:
    """Hadoop's value for what `found` calls `has`; None if the recording has none."""
    partition = cluster.core.scheduler.nodes[node_id].partition
    is_own = partition == verdict.partition
    match found.cause:
        case Cause.QUEUE_MAXIMUM if is_own:
            return view.get(f"queue/{found.queue}@{partition}/maximum")
        case Cause.NODE_FULL if not cluster.core.scheduler.nodes[node_id].killable:
            return next((view.get(f"node/{host}/available") for host in _hosts(cluster, node_id)), None)
        case Cause.TOO_LARGE:
            return next((view.get(f"node/{host}/total") for host in _hosts(cluster, node_id)), None)
        case Cause.USER_LIMIT if is_own and not partition and _is_looked_up(attempt, found):
            return view.get(f"user/{found.queue}/{attempt.user}/limit")
        case _:
            return None


def _hosts(cluster: RecordedCluster, node_id: NodeId) -> list[str]:
    return [host for host, node in cluster.nodes.items() if node.node_id == node_id]


def _is_looked_up(attempt: FiCaSchedulerApp, found: Finding) -> bool:
    """True if the stored limit was computed from the present amounts."""
    users = LeafQueue.of(attempt).users
    kept = users.limits.get(("", True, True))
    user = users.users[attempt.user]
    return kept is not None and kept[0] == users.version and user.weight == 1 and kept[1] == user.limit


def compare(path: Path) -> Counter[str]:
    """{cause: amounts compared} of one recording. Fails at the first one that differs."""
    recording, counts = read(path), Counter[str]()
    try:
        cluster = RecordedCluster(recording.followed)
    except ConfigurationException:
        return counts
    view = dict(recording.first_view)
    for number, step in enumerate(recording.steps, start=1):
        if stumbles(step.reply):
            break
        view |= step.delta
        try:
            cluster.step(step.action)
        except Unsupported:
            break
        for application in cluster.core.scheduler.applications.values():
            attempt = application.current_attempt
            if attempt is None or attempt.is_stopped:
                continue
            for verdict in verdicts_of(attempt, cluster.core.scheduler.context):
                for node_id, found in verdict.nodes.items():
                    hadoop = recorded(cluster, view, attempt, verdict, node_id, found)
                    if hadoop is not None:
                        assert found.has is not None
                        assert show(found.has) == hadoop, f"step {number}: {verdict}"
                        counts[found.cause.name] += 1
    return counts


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name.partition(".")[0])
def test_amounts_are_hadoops(path: Path) -> None:
    compare(path)


def test_amounts_of_each_kind_are_compared() -> None:
    """Over a few recordings, each kind of amount occurs."""
    counts = Counter[str]()
    for path in RECORDINGS:
        if path.name.startswith(("basic", "k04", "labels")):
            counts += compare(path)
    assert counts.keys() >= {"QUEUE_MAXIMUM", "NODE_FULL", "USER_LIMIT", "TOO_LARGE"}, counts
