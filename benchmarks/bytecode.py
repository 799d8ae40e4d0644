"""Compiles our packages to bytecode, as an installed yarnling has it.

A checkout has no bytecode if PYTHONDONTWRITEBYTECODE is set.
"""

from __future__ import annotations

import compileall
from pathlib import Path

PACKAGES = ("am", "benchmarks", "nm", "rm", "wire", "yarn", "yarnling")


def compile_sources() -> None:
    """Compile the packages.

    Otherwise every process compiles the modules that it imports, an ApplicationMaster about 80.
    """
    root = Path(__file__).resolve().parent.parent
    for package in PACKAGES:
        compileall.compile_dir(root / package, quiet=1)
