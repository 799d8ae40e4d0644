"""The names of things in a recorded run."""

from __future__ import annotations

RM_LIFELINE = "rm"


def node_lifeline(number: int) -> str:
    """The name of the lifeline of a node."""
    return f"nm-{number}"
