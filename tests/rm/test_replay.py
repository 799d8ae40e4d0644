"""The same events at the same times have the same effects: a recording of one core replays in another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rm.core.resource_manager import ResourceManagerCore
from tests.rm.builders import ONE_QUEUE, RM, START_MS, done, resource_request
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.settings.yarnling import CHECK_INVARIANTS

ROOT = Path(__file__).resolve().parents[2]


def session() -> RM:
    """A mixed run: three users, a crash, a kill, a refused call, a lost node, a kept container."""
    rm = RM()
    for host in ("n1", "n2", "n3"):
        rm.node(host)
    apps = [rm.submit(user, keep_containers_across_attempts=user == "bob") for user in ("ann", "bob", "cid")]
    ams = {}
    for app, host in zip(apps, ("n1", "n2", "n3"), strict=True):
        while rm.attempt_state(app) == "SCHEDULED":
            rm.beat(host)
        ams[app] = rm.core.context.apps[app].current_attempt.am_container  # type: ignore[union-attr]
    for app in apps:
        rm.launch(app)
        rm.register(app)
    for app in apps:
        rm.allocate(app, [resource_request(4), resource_request(2, 2048, priority=5)])
    for host in ("n1", "n2", "n3"):
        rm.beat(host)
    held = {app: rm.allocate(app).allocated for app in apps}
    for containers in held.values():
        rm.run(*containers)
    for host in ("n1", "n2", "n3"):
        rm.beat(host)
    with pytest.raises(YarnException):
        rm.allocate(apps[0], [resource_request(1, 10**6)])
    am = ams[apps[1]]
    assert am is not None
    rm.beat(am.node_id.host, ended=[done(am.id, 1, "crashed")])
    rm.kill(apps[2])
    for _ in range(8):
        rm.wait(100_000)
        rm.beat("n1")
        rm.beat("n2")
    rm.finish(apps[0])
    return rm


def test_a_replayed_log_has_the_same_effects() -> None:
    log = session().log
    core = ResourceManagerCore(
        Configuration.of({**ONE_QUEUE, CHECK_INVARIANTS.key: "true"}), cluster_timestamp=START_MS, strict=True
    )
    for now_ms, event, effects in log:
        assert core.handle(event, now_ms) == effects
    assert len(log) > 40


@pytest.mark.slow
def test_no_order_depends_on_hashes() -> None:
    """Two interpreters whose strings hash differently have the same effects."""
    code = "from tests.rm.test_replay import session; print(*(effects for _, _, effects in session().log), sep='\\n')"
    stories = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(stories) == 1
