"""The facts that tests have to know of a compiled core."""

from __future__ import annotations

import pytest

from yarnling.cli.version import scheduler_is_compiled

only_interpreted = pytest.mark.skipif(scheduler_is_compiled(), reason="replaces or watches code of the core")
"""Marks a test that replaces or watches Python code of the core, which compiled code does not notice."""


def attribute_names(kind: type) -> tuple[str, ...]:
    """The attributes of a class with slots; a compiled class has them in `__mypyc_attrs__` instead."""
    return getattr(kind, "__mypyc_attrs__", None) or getattr(kind, "__slots__", ())
