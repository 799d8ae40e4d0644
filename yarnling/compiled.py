"""Which core a program runs: the compiled one or, by default, the Python sources (docs/design/compiled-core.md)."""

from __future__ import annotations

import importlib.util


def scheduler_is_compiled() -> bool:
    """True if the scheduler comes from extension modules that mypyc made. Nothing is imported to find out."""
    found = importlib.util.find_spec("rm.scheduler.capacity_scheduler")
    return found is not None and not (found.origin or "").endswith(".py")
