"""A solution of lab 2: urgent applications first, then those without a task that runs, then the shortest."""

from __future__ import annotations

from yarnling.labs.order import LeafApplication


def order(applications: list[LeafApplication]) -> list[LeafApplication]:
    return sorted(applications, key=turn)


def turn(application: LeafApplication) -> tuple[int, bool, int, int]:
    """The AM and one task for everybody, so that nobody starves; what is left, to the one that has least to do."""
    has_its_share = application.containers >= 2
    return -application.priority, has_its_share, application.pending_mb, application.number
