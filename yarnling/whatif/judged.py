"""The distance between simulations and true runs of Hadoop's ResourceManager. Written by scripts/predictions."""

from __future__ import annotations

JUDGED = (
    "Simulations of 1 true run of Hadoop's ResourceManager were at most 0.2 % off in its makespan and "
    "1.2 % in its mean run time (docs/fidelity.md, How right is a prediction?)."
)
"""A sentence for every report."""
