"""Bytecode of our packages: an installed yarnling has it, a checkout has none with PYTHONDONTWRITEBYTECODE."""

from __future__ import annotations

import compileall
from pathlib import Path

PACKAGES = ("am", "benchmarks", "nm", "protos", "rm", "wire", "yarn", "yarnling")


def compile_sources() -> None:
    """Compile the packages; otherwise every process compiles what it imports, an ApplicationMaster some 80 files."""
    root = Path(__file__).resolve().parent.parent
    for package in PACKAGES:
        compileall.compile_dir(root / package, quiet=1)
