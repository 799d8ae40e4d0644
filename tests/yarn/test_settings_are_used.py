"""Every setting is read somewhere: one that is not would have no effect."""

import re
from pathlib import Path

import pytest

from yarn.settings import nodemanager, resourcemanager, yarnling
from yarn.settings.kinds import Setting

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("wire", "rm", "nm", "am", "yarnling")
MODULES = (nodemanager, resourcemanager, yarnling)
"""For the scheduler's settings see tests/rm/test_settings_are_listed.py."""

NAMES = {name: setting for module in MODULES for name, setting in vars(module).items() if isinstance(setting, Setting)}
LEANT_ON = {
    other.key
    for setting in NAMES.values()
    for other in (*setting.refers, *((setting.fallback,) if setting.fallback else ()))
}


@pytest.fixture(scope="module")
def words() -> frozenset[str]:
    """Every identifier in the product's sources."""
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return frozenset(word for path in files for word in re.findall(r"\b[A-Z][A-Z0-9_]+\b", path.read_text()))


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_setting_is_used(name: str, words: frozenset[str]) -> None:
    assert name in words or NAMES[name].key in LEANT_ON
