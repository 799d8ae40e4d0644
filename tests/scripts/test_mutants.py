"""scripts/mutants: changes of one operator, each held against recordings in a process to itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import mutants
from tests.compiled import only_interpreted

RECORDINGS = sorted(mutants.RECORDINGS.glob("basic-*.jsonl.gz"))
KILLED = "rm/scheduler/placement/allocator.py"
ONE_TOO_FEW = "rack_delay(self._context) < opportunities -> rack_delay(self._context) <= opportunities"
SURVIVOR = "rm/scheduler/capacity/managed_queues.py"


def test_each_operator_of_a_file_has_its_mutants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "decide.py").write_text("if a < b <= c:\n    x = -y\nz += 1\nw = a * b\n")
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    assert [str(mutant) for mutant in mutants.mutants_of("decide.py")] == [
        "decide.py:3: z += 1 -> z -= 1",
        "decide.py:1: a < b <= c -> a <= b <= c",
        "decide.py:1: a < b <= c -> a >= b <= c",
        "decide.py:1: a < b <= c -> a < b < c",
        "decide.py:1: a < b <= c -> a < b > c",
        "decide.py:2: -y -> +y",
    ]


def test_a_seed_gives_the_same_sample_again() -> None:
    assert mutants.sample(20, 7) == mutants.sample(20, 7)
    assert mutants.sample(20, 7) != mutants.sample(20, 8)


@only_interpreted
def test_a_mutant_is_killed_by_the_recording_that_differs() -> None:
    """And one whose code no recording runs survives: nothing of the mutant before is left."""
    killed = next(mutant for mutant in mutants.mutants_of(KILLED) if str(mutant).endswith(ONE_TOO_FEW))
    survivor = next(mutants.mutants_of(SURVIVOR))
    judged = dict(mutants.judged([killed, survivor], RECORDINGS))
    assert judged[killed] in {path.name for path in RECORDINGS}
    assert judged[survivor] is None


@only_interpreted
def test_a_mutant_with_which_the_core_cannot_be_imported_is_killed() -> None:
    lost = next(mutants.mutants_of(KILLED))._replace(position=10_000)
    assert dict(mutants.judged([lost], RECORDINGS)) == {lost: "cannot be imported: IndexError"}


def test_a_recording_that_differs_anyway_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such a recording would kill every mutant."""
    (tmp_path / "forged.jsonl.gz").write_text("no recording")
    monkeypatch.setattr("sys.argv", ["mutants", "--count", "3", str(tmp_path)])
    assert mutants.main() == 2
    assert "forged.jsonl.gz: differs without a mutant" in capsys.readouterr().out
