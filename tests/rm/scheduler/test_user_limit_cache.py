"""The verdict on a user applies to the user's other applications until something changes."""

from __future__ import annotations

from rm.scheduler.model.context import IGNORE, RESPECT
from rm.scheduler.model.users import CachedUserLimit, UserLimitCache
from yarn.resource import Resource

NONE = Resource(0, 0)


def test_a_failure_applies_to_applications_with_no_more_reserved() -> None:
    """An application with more reserved may pass: it could release some."""
    cached = CachedUserLimit(Resource(1024, 1), NONE)
    assert not cached.has_failed_with(NONE)
    cached.note_failure(NONE)
    assert cached.has_failed_with(NONE)
    assert not cached.has_failed_with(Resource(512, 1))
    cached.note_failure(Resource(512, 1))
    assert cached.has_failed_with(Resource(512, 1))
    assert cached.has_failed_with(NONE)


def test_limits_are_recomputed_for_a_new_version() -> None:
    cache = UserLimitCache()
    cache.at(1, "", RESPECT)["ann"] = CachedUserLimit(NONE, NONE)
    assert "ann" in cache.at(1, "", RESPECT)
    assert "ann" not in cache.at(1, "", IGNORE)
    assert "ann" not in cache.at(1, "x", RESPECT)
    assert "ann" not in cache.at(2, "", RESPECT)
