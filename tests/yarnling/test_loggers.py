"""Every logger of the product is below the logger `yarnling`, so that a program sets one level for all."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("yarn", "wire", "rm", "nm", "am", "yarnling")
OTHERS = {"asyncio", "grpc", "grpc._cython.cygrpc"}
"""Loggers of libraries, which yarnling.wire.daemon_process sets up."""


def loggers() -> Iterator[logging.Logger]:
    """The loggers of all modules that have one."""
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        if "_logger = logging.getLogger" in path.read_text():
            module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
            yield module._logger


def test_every_logger_is_below_yarnling() -> None:
    found = {logger.name for logger in loggers()}
    assert len(found) > 30
    assert [name for name in found if not name.startswith("yarnling.")] == []


def test_a_level_set_on_yarnling_holds_for_all() -> None:
    root = logging.getLogger("yarnling")
    before = root.level
    try:
        for level in (logging.DEBUG, logging.ERROR):
            root.setLevel(level)
            assert {logger.getEffectiveLevel() for logger in loggers()} == {level}
    finally:
        root.setLevel(before)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_names_another_logger(package: str) -> None:
    allowed = ('_logger = logging.getLogger(f"yarnling.{__name__}")', "_logger = logging.getLogger(__name__)")
    for path in (ROOT / package).rglob("*.py"):
        lines = [line.strip() for line in path.read_text().splitlines() if "getLogger(" in line]
        if path.name in ("daemon_process.py", "loop_launcher.py"):
            lines = [line for line in lines if "_logger" in line]
        assert set(lines) <= {allowed[package == "yarnling"]}, path
