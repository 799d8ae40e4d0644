"""scripts/pythons compares the hashes of traces between interpreters."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import pythons

SAME, OTHER = "0" * 64, "1" * 64
COUNT = len(pythons.SIMULATIONS)


def test_equal_hashes_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert pythons.report(["3.11", "3.12", "3.13"], [[SAME] * 3] * COUNT) == 0
    assert capsys.readouterr().out.endswith(f"{COUNT} same, 0 differ, on Python 3.11, 3.12, 3.13\n")


def test_a_different_hash_fails_and_is_shown_with_its_interpreter(capsys: pytest.CaptureFixture[str]) -> None:
    assert pythons.report(["3.11", "3.12"], [[SAME, OTHER], *[[SAME, SAME]] * (COUNT - 1)]) == 1
    assert f"  Python 3.12: {OTHER}\n" in capsys.readouterr().out


def test_a_simulation_without_a_hash_fails() -> None:
    """Two interpreters that fail with the same message have not shown anything."""
    assert pythons.report(["3.11", "3.12"], [["no such plan", "no such plan"], *[[SAME, SAME]] * (COUNT - 1)]) == 1


def test_the_last_line_names_the_versions_that_were_not_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert pythons.report(["3.12"], [[SAME]] * COUNT) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"{COUNT} same, 0 differ, on Python 3.12; NOT COMPARED: Python 3.11, 3.13"


def test_a_missing_version_fails_if_all_are_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert pythons.report(["3.11", "3.12"], [[SAME, SAME]] * COUNT, requires_all=True) == 1
    assert "NOT COMPARED: Python 3.13" in capsys.readouterr().out.splitlines()[-1]
    assert pythons.report(["3.11", "3.12", "3.13"], [[SAME] * 3] * COUNT, requires_all=True) == 0


def test_a_version_that_is_not_installed_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pythons, "interpreters", lambda _: iter(()))
    assert pythons.environment("3.99") is None
    assert capsys.readouterr().out == "Python 3.99 is not installed: not compared\n"


@pytest.mark.parametrize(
    ("printed", "fault"),
    [
        (["2 NodeManagers are up", "container_1 | hello", "Cluster {name} has stopped."], ""),
        (["yarnling: Not a directory", "yarnling: no cluster is up", "yarnling: no cluster is up"], "Not a directory"),
        (["up", "container_1 | hello", "the cluster did not stop"], "did not stop"),
    ],
)
def test_a_cluster_that_fails_is_a_fault(printed: list[str], fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = iter(printed)

    def output(*command: str, environment: dict[str, str]) -> str:
        return next(lines).format(name=environment["YARNLING_NAME"])

    monkeypatch.setattr(pythons, "output", output)
    found = pythons.cluster_fault("3.13", Path("python"))
    assert fault in found
    assert found.startswith("FAILED a cluster on Python 3.13:" if fault else "")
    assert bool(found) == bool(fault)
