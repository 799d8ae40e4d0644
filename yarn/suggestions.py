"""The known names that are most like one that is not known, as the beginning of a remedy."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(written: str, known: Iterable[str], most: int = 1) -> str:
    """`did you mean allocate? `, with at most so many names; "" if no known name is similar."""
    similar = get_close_matches(written, list(known), most)
    return f"did you mean {' or '.join(similar)}? " if similar else ""
