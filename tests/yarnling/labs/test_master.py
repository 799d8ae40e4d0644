"""Lab 1: the reference solution passes, mistakes are found, made smaller, and put into words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from yarnling.cli.app import app
from yarnling.cluster.silent_logs import without_logs
from yarnling.faults.plan_file import parse_plan
from yarnling.faults.plan_text import plan_text
from yarnling.labs import master as lab
from yarnling.labs.failing_run import explained
from yarnling.labs.limits import TooSlow, processor_time
from yarnling.labs.master import (
    ENDLESS,
    NO_MISTAKE,
    RARE,
    REPEATABLE,
    SeedResult,
    difference_of_runs,
    lab_plan,
    processes_plan,
    run_seed,
    run_seeds,
    start_file,
)

SOLUTION = Path(__file__).with_name("solutions") / "master.py"


def written(directory: Path, *changes: tuple[str, str]) -> Path:
    """The solution with parts replaced."""
    text = SOLUTION.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = directory / "master.py"
    path.write_text(text)
    return path


def judged(path: Path, seed: int) -> SeedResult:
    with without_logs():
        return run_seed(path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 4, 10, 12, 114])
def test_the_solution_passes(number: int) -> None:
    assert judged(SOLUTION, number).failed == ()


@pytest.mark.slow
def test_a_container_whose_start_failed_must_be_released(tmp_path: Path) -> None:
    path = written(tmp_path, ("        self.release(container)\n        self.wait(", "        self.wait("))
    result = judged(path, 10)
    assert result.failed == ("tasks are confirmed once",)
    assert result.run is not None
    assert "the job ended while its AM held container_" in result.run.judgement.reasons[0]


@pytest.mark.slow
def test_a_mistake_is_made_smaller_and_put_into_words(tmp_path: Path) -> None:
    path = written(tmp_path, ("        if exit_status == 0:", "        if True:"))
    seed = next(seed for seed in range(1, 30) if "fail-container" in lab_plan(path, seed).about)
    result = judged(path, seed)
    assert "tasks are confirmed once" in result.failed
    with without_logs():
        failure = explained(result, path)
    (fault,) = failure.plan.faults
    assert (fault.kind.name, failure.plan.work[0].tasks) == ("fail-container", 1)
    said = "\n".join(failure.sentences)
    assert "was confirmed before a container had done it" in said
    assert "fail-container c0001_000002" in said
    assert "it learns that c0001_000002 (exit 1) ended" in said
    assert "What went wrong" in failure.page
    parse_plan(plan_text(failure.plan), "plan", "plan")


def test_an_exception_fails_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, ("        if self.waiting:", "        if self.wanted:"))
    result = judged(path, 1)
    assert result.run is not None
    assert result.failed == (NO_MISTAKE,)
    with without_logs():
        said = explained(result, path).sentences
    assert said[0].startswith(f"Violated: {NO_MISTAKE}: at 0.")
    assert "s AttributeError: 'Master' object has no attribute 'wanted' (line " in said[0]
    assert "Not confirmed: task 1." in said


def test_a_loop_without_an_end_is_stopped_at_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "PROCESSOR_S", 0.5)
    path = written(tmp_path, ("        for task in self.missing():", "        while True:\n            task = 1"))
    text = path.read_text().replace("            self.wait(task)\n        self.finish_if_done()", "", 1)
    path.write_text(text)
    result = judged(path, 1)
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "while True" in each)
    assert result.failed == (ENDLESS,)
    assert result.stopped.split("line ")[1].split()[0] in (str(line), str(line + 1))
    assert explained(result, path).sentences == (result.stopped,)


def test_processor_time_is_unlimited_afterwards() -> None:
    with pytest.raises(TooSlow), processor_time(0.05, "none"):
        sum(iter(lambda: 1, 0))
    with processor_time(60, "none"):
        pass


def test_the_plans_of_a_seed_are_the_same() -> None:
    assert lab_plan(SOLUTION, 3) == lab_plan(SOLUTION, 3) != lab_plan(SOLUTION, 4)
    processes_plan(SOLUTION).check_processes_have_it()


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["lab", "master", *arguments])
    return result.exit_code, result.output


@pytest.mark.slow
def test_the_command_writes_a_start_file_that_fails(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    assert invoke("--start", str(path))[0] == 0
    assert path.read_text() == start_file()
    status, output = invoke(str(path), "--seed", "1", "-o", str(tmp_path / "out"), "--json")
    assert status == 1
    plain = json.loads(output)
    assert (plain["seeds"], plain["passed"], plain["failed"][0]["seed"]) == (1, 0, 1)
    assert (tmp_path / "out" / "timeline.html").read_text().startswith("<!")
    assert "custom" in (tmp_path / "out" / "plan.yaml").read_text()


def test_the_command_passes_the_solution(tmp_path: Path) -> None:
    status, output = invoke(str(SOLUTION), "--seed", "1", "-o", str(tmp_path / "out"))
    assert (status, output.strip().splitlines()[-1]) == (0, "1 of 1 seeds pass")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_many_seeds_are_judged_on_all_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "cores", lambda: 2)
    monkeypatch.setattr(lab, "PARALLEL_FROM", 2)
    path = written(tmp_path, ("        if self.waiting:", "        if self.wanted:"))
    ended: list[None] = []
    with without_logs():
        results = run_seeds(path, range(1, 4), lambda: ended.append(None))
    assert [(one.seed, one.failed) for one in results] == [(seed, (NO_MISTAKE,)) for seed in (1, 2, 3)]
    assert len(ended) == 3
    with without_logs():
        assert "Not confirmed: task" in "\n".join(explained(results[0], path).sentences)


def test_an_am_that_draws_random_numbers_is_found(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        ("from am.programs", "import random\n\nfrom am.programs"),
        ("self.waiting.pop(0)", "self.waiting.pop(random.randrange(len(self.waiting)))"),
    )
    with without_logs():
        (result,) = run_seeds(path, [1], lambda: None)
        assert REPEATABLE in result.failed
        said = explained(result, path).sentences
    assert said[0].startswith("Two runs of seed 1 differ from ")
    assert said[0].endswith("does your code read a clock, a file or random numbers?")


def test_an_am_that_reads_nothing_makes_the_same_calls_again() -> None:
    with without_logs():
        assert difference_of_runs(SOLUTION, 1) == ""


@pytest.mark.slow
@pytest.mark.parametrize("number", [8, 16, 24])
def test_the_solution_passes_the_rare_seeds(number: int) -> None:
    assert lab_plan(SOLUTION, number).about.endswith(RARE[number // 8 % 3])
    assert judged(SOLUTION, number).failed == ()


def test_a_seed_with_preemption_takes_containers_of_the_job_back(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        (
            "        task = self.task_of.pop(container, None)",
            "        assert exit_status != -102\n        task = self.task_of.pop(container, None)",
        ),
    )
    assert judged(path, 16).failed == (NO_MISTAKE,)


def test_a_method_with_the_name_of_nearly_a_callback_is_warned_of(tmp_path: Path) -> None:
    path = written(tmp_path, ("def start_failed", "def start_fail"))
    status, output = invoke(str(path), "--seed", "1", "-o", str(tmp_path / "out"))
    assert status in (0, 1)
    assert "warning: Master.start_fail is not a callback (is 'start_failed' meant?)" in output
