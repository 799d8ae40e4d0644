"""pytest tests/scenarios --rewrite: write what the scenarios do now into them; read the difference before commit."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="rewrite the outputs of text scenarios")
