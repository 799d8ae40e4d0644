"""Steps around restarts of the ResourceManager: nodes and masters come back, or not, in any order."""

from __future__ import annotations

from tests.conformance.generated import app_actions, node_actions
from tests.conformance.generated.draft import Draft


def restart(draft: Draft) -> None:
    """A restart, sometimes a second one before everybody is back."""
    for _ in range(draft.rng.choice([1, 1, 1, 2])):
        draft.do("restart_rm")
        come_back(draft)
    if draft.rng.random() < 0.8:
        draft.do("end_wait")
        node_actions.all_heartbeats(draft)


def come_back(draft: Draft) -> None:
    """Most nodes register again, most masters too, with other steps in between."""
    for host in draft.rng.sample(draft.up, len(draft.up)):
        if draft.rng.random() < 0.85:
            draft.do("resync", node=host)
        if draft.rng.random() < 0.3:
            draft.rng.choice([app_actions.ask, app_actions.finish, app_actions.kill, node_actions.heartbeat])(draft)
    app_actions.register_some(draft)
    app_actions.register_some(draft)


def end_wait(draft: Draft) -> None:
    draft.do("end_wait")


def resync(draft: Draft) -> None:
    if draft.up:
        draft.do("resync", node=draft.rng.choice(draft.up))
