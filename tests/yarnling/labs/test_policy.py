"""Lab 2: the reference solution passes; Hadoop's policies and wrong orders fail, each by its own check."""

from __future__ import annotations

import json
from functools import cache, partial
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from yarn.errors import InvalidArgumentException
from yarn.resource import Resource
from yarnling.cli.app import app
from yarnling.labs import policy as lab
from yarnling.labs.limits import load_within
from yarnling.labs.order import COMPLETE, NO_EXCEPTION, REPEATABLE, load_order
from yarnling.labs.policy import (
    ENDS,
    FAIR,
    FIFO,
    HADOOP_POLICIES,
    IN_TIME,
    SERVED,
    SOONER,
    URGENT_FIRST,
    YOURS,
    PolicySeed,
    judge_all,
    judge_seed,
    lab_nodes,
    lab_workload,
    longest_wait_ms,
    start_file,
)
from yarnling.labs.waiting import WAITS, column_ms, rows_of
from yarnling.whatif.containers import ContainerOutcome
from yarnling.whatif.run import RunOptions

SOLUTION = Path(__file__).with_name("solutions") / "policy.py"
SEED = 1
hadoops_run = cache(lab.run_hadoop)


@pytest.fixture(autouse=True)
def hadoops_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "run_hadoop", hadoops_run)


def written(directory: Path, *lines: str) -> Path:
    """A file with `order` of these lines."""
    path = directory / "policy.py"
    path.write_text("\n    ".join(("def order(applications):", *lines)) + "\n")
    return path


def the_mistake(path: Path) -> tuple[str, str]:
    """The check that one seed fails, and its sentence."""
    (mistake,) = judge_seed(path, SEED).failed
    return mistake.check, mistake.sentence


def checks(judged: PolicySeed) -> set[str]:
    """The checks that fail in one seed, and over it."""
    return {mistake.check for mistake in (*judged.failed, *judge_all([judged]))}


def test_the_solution_passes_and_hadoops_policies_do_not() -> None:
    judged = judge_seed(SOLUTION, SEED)
    assert checks(judged) == set()
    assert set(judged.runs) == {*HADOOP_POLICIES, YOURS}
    own = {policy: checks(replace(judged, runs={**judged.runs, YOURS: judged.runs[policy]})) for policy in (FIFO, FAIR)}
    assert own == {FIFO: {SOONER}, FAIR: {SOONER, URGENT_FIRST}}


def test_the_start_file_is_fifo(tmp_path: Path) -> None:
    path = tmp_path / "policy.py"
    path.write_text(start_file())
    runs = judge_seed(path, SEED).runs
    assert runs[YOURS].result.containers == runs[FIFO].result.containers


def test_a_run_is_the_same_without_the_shortcuts_of_a_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = judge_seed(SOLUTION, SEED)
    monkeypatch.setattr(lab, "RunOptions", partial(RunOptions, played=False))
    assert judge_seed(SOLUTION, SEED).runs[YOURS].applications == judged.runs[YOURS].applications


def test_who_always_gives_way_starves(tmp_path: Path) -> None:
    shortest = "return sorted(applications, key=lambda each: (-each.priority, each.pending_mb, each.number))"
    judged = judge_seed(written(tmp_path, shortest), SEED)
    assert checks(judged) == {SERVED}
    assert "had requests and got no container for" in judged.failed[0].sentence


@pytest.mark.parametrize(
    ("line", "check", "said"),
    [
        ("return applications[1:]", COMPLETE, "left out application 1: it would never get a container"),
        ("return applications + applications[:1]", COMPLETE, "returned application 1 twice"),
        ("return [each.number for each in applications]", COMPLETE, "returned 1, which is not one of the applications"),
        ("return applications[0].nothing", NO_EXCEPTION, "no attribute 'nothing' (line 2 of policy.py, in order)."),
        ("applications[0].priority = 7", NO_EXCEPTION, "immutable type: 'LeafApplication' (line 2 of policy.py"),
        ("return None", COMPLETE, "returned None, which is not one of the applications"),
        ("return iter(int, 1)", COMPLETE, "returned 0, which is not one"),
    ],
)
def test_an_order_that_is_not_valid_is_named(tmp_path: Path, line: str, check: str, said: str) -> None:
    failed, sentence = the_mistake(written(tmp_path, line))
    assert failed == check
    assert said in sentence


def test_an_order_that_depends_on_something_else_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "applications.reverse()", "turn.append(1)", "return applications[:: (-1) ** len(turn)]")
    path.write_text(f"turn = []\n{path.read_text()}")
    check, sentence = the_mistake(path)
    assert check == REPEATABLE
    assert "order returned 1, 2 and then 2, 1" in sentence


def test_a_loop_without_an_end_is_stopped_at_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "PROCESSOR_S", 0.5)
    judged = judge_seed(written(tmp_path, "while True:", "    pass"), SEED)
    assert [mistake.check for mistake in judged.failed] == [IN_TIME]
    assert "It was executing line" in judged.failed[0].sentence
    assert YOURS not in judged.runs
    assert judge_all([judged]) == ()


def test_work_that_does_not_end_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "UNTIL_MS", 30_000)
    assert ENDS in checks(judge_seed(SOLUTION, SEED))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def ordr(applications): return applications", "no function 'order' (is 'ordr' meant?)"),
        ("order = 3", "order is not a function"),
        ("def order(): pass", "order is called as order(applications): too many positional arguments"),
        ("def order(applications) return", "SyntaxError"),
        ("\n1 / 0", "ZeroDivisionError: division by zero (line 2 of policy.py, in <module>)"),
    ],
)
def test_a_file_without_an_order_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "policy.py"
    path.write_text(text)
    with pytest.raises(InvalidArgumentException) as error:
        load_order(path)
    assert message in error.value.message


def test_a_file_whose_loading_does_not_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy.py"
    path.write_text("while True:\n    pass\n")
    with pytest.raises(InvalidArgumentException, match=r"loading it takes more than 0\.2 s \(line [12]\)"):
        load_within(0.2, path, load_order)


def test_the_longest_wait_ends_with_each_container() -> None:
    def asked(requested_ms: int, allocated_ms: int | None, withdrawn_ms: int | None = None) -> ContainerOutcome:
        return ContainerOutcome(0, requested_ms, allocated_ms, withdrawn_ms, None, None, Resource(1024, 1))

    assert longest_wait_ms((), 90) == 0
    assert longest_wait_ms([asked(10, 15)], 90) == 5
    assert longest_wait_ms([asked(10, 15), asked(10, 35)], 90) == 20
    assert longest_wait_ms([asked(10, 15), asked(50, 52)], 90) == 5
    assert longest_wait_ms([asked(10, 15), asked(12, None)], 90) == 75
    assert longest_wait_ms([asked(10, 15), asked(12, None, 40)], 90) == 25


def test_the_workload_of_a_seed_is_always_the_same() -> None:
    assert lab_workload(3) == lab_workload(3) != lab_workload(4)
    assert lab_nodes(3) == lab_nodes(3)
    kinds = {each.name.split()[1] for each in lab_workload(3).applications}
    assert kinds == {"large", "small", "urgent"}


def test_the_picture_shows_who_waits_and_who_runs() -> None:
    run = lab.run_hadoop(SEED, FIFO)
    rows = list(rows_of(run.result, 8 * len(lab_nodes(SEED)), column_ms(run.result)))
    assert len(rows) == len(run.applications)
    last = max(range(len(rows)), key=lambda place: run.applications[place].longest_wait_s)
    assert WAITS in rows[last]
    assert any("█" in row for row in rows)


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["lab", "policy", *arguments])
    return result.exit_code, result.output


def test_the_command_grades_the_solution() -> None:
    status, output = invoke(str(SOLUTION), "--seed", str(SEED))
    assert (status, output.strip().splitlines()[-1]) == (0, "1 of 1 seeds pass")
    assert f"Seed {SEED}, fifo: " in output
    assert f"Seed {SEED}, yours: " in output


def test_the_command_writes_a_start_file_that_fails(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    assert invoke("--start", str(path))[0] == 0
    status, output = invoke(str(path), "--seed", str(SEED), "--json")
    assert status == 1
    plain = json.loads(output)
    assert (plain["lab"], plain["seeds"], plain["passed"]) == ("policy", 1, 1)
    assert [one["check"] for one in plain["failed_over_all"]] == [SOONER]
    assert plain["policies"]["fifo"] == plain["policies"]["yours"]


def test_the_command_names_the_seeds_that_fail(tmp_path: Path) -> None:
    path = written(tmp_path, "return applications[1:]")
    status, output = invoke(str(path), "--seeds", "2", "--against", "fair")
    assert status == 1
    assert f"{COMPLETE}  2                1" in output
    assert "Run it again: yarnling lab policy" in output
    assert "Seed 1, fair: " in output
    assert output.strip().splitlines()[-1] == "0 of 2 seeds pass"
    plain = json.loads(invoke(str(path), "--seed", "2", "--json")[1])
    assert plain["first"]["seed"] == 2
    assert plain["policies"]["yours"] is None
