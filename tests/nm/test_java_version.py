"""The Java version of a node, found in the files of fake JDKs."""

from __future__ import annotations

from pathlib import Path

import pytest

from nm.shell.host_environment import java_version


def jdk(home: Path, version: str, java: str = "bin/java") -> Path:
    program = home / java
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (home / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\nJAVA_VERSION_DATE="2025-04-15"\n')
    return home


@pytest.mark.parametrize(
    ("version", "major"), [("17.0.15", 17), ("1.8.0_392", 8), ("25", 25), ("9-ea", 9), ("", 0), ("x", 0)]
)
def test_java_home_selects_the_java(tmp_path: Path, version: str, major: int) -> None:
    assert java_version({"JAVA_HOME": str(jdk(tmp_path / "jdk", version))}) == major


def test_without_java_home_it_is_the_java_in_path(tmp_path: Path) -> None:
    """`/usr/bin/java` is a link, on most machines to another link."""
    jdk(tmp_path / "jdk", "17.0.1")
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "alternative").symlink_to(tmp_path / "jdk" / "bin" / "java")
    (bin_ / "java").symlink_to("alternative")
    assert java_version({"PATH": f"/nowhere:{bin_}"}) == 17
    other = jdk(tmp_path / "other", "11.0.2")
    assert java_version({"PATH": str(bin_), "JAVA_HOME": str(other)}) == 11


def test_the_release_file_of_java_8_is_one_level_higher(tmp_path: Path) -> None:
    home = jdk(tmp_path / "jdk", "1.8.0_392", "jre/bin/java")
    assert java_version({"PATH": str(home / "jre" / "bin")}) == 8


def test_without_java_the_version_is_0(tmp_path: Path) -> None:
    assert java_version({"PATH": str(tmp_path)}) == 0
    assert java_version({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(tmp_path)}) == 0
