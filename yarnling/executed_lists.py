"""What NodeManagers execute, as lists that ship with it: the names in their code, and the functions.

A look-up by name is apt to count a reference to the name, which is to write to its page. Names lie where the first
module was loaded that has them, each on another page; but one that is interned already is not made again. So the fork
server imports this before anything else, and the names lie together.

`PYTHONPATH=. python -P -m yarnling.executed_code` writes the lists. What is in them too much or too little costs
memory, nothing else.
"""

from __future__ import annotations

import os
import sys

NAMES, FUNCTIONS = (os.path.join(os.path.dirname(__file__), f"executed_{what}.txt") for what in ("names", "functions"))


def listed(path: str) -> list[str]:
    """One a line; without a list there are none."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().split("\n")[:-1]
    except OSError:
        return []


_kept = list(map(sys.intern, listed(NAMES)))
