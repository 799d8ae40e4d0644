"""The message of a machine without Java, or with an old one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hadoop import toolchain


@pytest.fixture(autouse=True)
def _not_remembered() -> Iterator[None]:
    """Nor by the tests that follow: they would run this Java, which only prints its version."""
    _forget()
    yield
    _forget()


def _forget() -> None:
    toolchain.java.cache_clear()
    toolchain.jars.cache_clear()


def _java(directory: Path, version: str) -> None:
    for name in ("java", "javac"):
        (directory / name).write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        (directory / name).chmod(0o755)


def test_no_java_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(toolchain.JavaMissing) as missing:
        toolchain.jars("client")
    assert str(missing.value) == "no Java 11+ found (apt-get install openjdk-17-jdk-headless maven)"


def test_an_old_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _java(tmp_path, "1.8.0_402")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(toolchain.JavaMissing, match=r'no Java 11\+ found, only openjdk version "1\.8\.0_402"'):
        toolchain.java()


def test_a_new_java_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _java(tmp_path, "21.0.2")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert toolchain.java() == str(tmp_path / "java")
