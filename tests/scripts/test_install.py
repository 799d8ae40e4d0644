"""A compiled environment is built again when a source has changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts import install


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one package, and a compiled environment of it that is current."""
    root = tmp_path / "checkout"
    (root / "rm" / "scheduler").mkdir(parents=True)
    for name in ("pyproject.toml", "hatch_build.py", "rm/__init__.py", "rm/scheduler/queue.py"):
        (root / name).write_text("")
    monkeypatch.setattr(install, "ROOT", root)
    stamp = {
        "mode": "compiled",
        "sources": install.sources_hash(),
        "checkout": str(root),
        "tools": str(tmp_path / "venv"),
    }
    (root / ".venv-compiled").mkdir()
    (root / ".venv-compiled" / install.STAMP).write_text(json.dumps(stamp))
    return root


def test_a_current_compiled_environment_is_left_alone(checkout: Path) -> None:
    venv = checkout / ".venv-compiled"
    tools = install.tools_of(venv)
    assert tools == checkout.parent / "venv"
    install.install_compiled(venv, tools)


@pytest.mark.parametrize("name", ["rm/scheduler/queue.py", "rm/scheduler/new.py", "pyproject.toml", "hatch_build.py"])
def test_an_edited_source_is_compiled_again(checkout: Path, name: str) -> None:
    """Here there is no Python to compile with: the attempt shows that the environment was not taken as current."""
    (checkout / name).write_text("changed = True\n")
    with pytest.raises(FileNotFoundError):
        install.install_compiled(checkout / ".venv-compiled", checkout.parent / "venv")
    assert install.tools_of(checkout / ".venv-compiled") is None


def test_an_environment_that_is_not_compiled_has_no_tools(tmp_path: Path) -> None:
    assert install.tools_of(tmp_path) is None


@pytest.mark.parametrize(
    ("requirement", "oldest"),
    [("protobuf>=6.30.0,<8", "protobuf==6.30.0"), ("h11>=0.16", "h11==0.16"), ("rich>=14", "rich==14")],
)
def test_the_oldest_version_of_a_requirement(requirement: str, oldest: str) -> None:
    assert install.floor(requirement) == oldest


def test_floors_are_what_protos_was_generated_for() -> None:
    """The generated code refuses older releases of protobuf, and needs no newer ones. Its compiler comes with gRPC."""
    generated = (install.ROOT / "wire/generated/yarnling_pb2.py").read_text()
    oldest = dict(each.split("==") for each in install.requirements("floors") if "==" in each)
    assert f"# Protobuf Python Version: {oldest['protobuf']}\n" in generated
    assert f"grpcio-tools=={oldest['grpcio']}" in install.requirements("generators")
