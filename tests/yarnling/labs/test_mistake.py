"""Lab 3: each mistake is seen and mended, answers are graded, and a cluster without a mistake has no complaints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from wire.files.hadoop_xml import read_configuration
from wire.files.yaml_file import parse_yaml
from yarn.errors import YarnException
from yarn.settings.scheduler import queue_key
from yarnling.cli.app import app
from yarnling.cli.lab_mistake import submission_of
from yarnling.labs.mistake.answer import POINTS, POINTS_MAX, LabAnswer, grade, read_answer, run_lab, whole_key
from yarnling.labs.mistake.cluster import lab_cluster
from yarnling.labs.mistake.files import ANSWER, CONF, NODES, README, TASKS, WORKLOAD, write_case
from yarnling.labs.mistake.planted import PLANTED, lab_case
from yarnling.workload.formats import read_node_list, read_workload

SOLUTIONS = Path(__file__).with_name("solutions") / "mistakes"
SEEDS = range(1, 11)


def answer(text: str) -> LabAnswer:
    return parse_yaml(text, "answer.yaml", LabAnswer)


def points(given: LabAnswer) -> dict[str, int]:
    return {part.name: part.points for part in grade(given).parts}


@pytest.mark.parametrize("number", [1, 6])
def test_nobody_complains_about_a_cluster_without_a_mistake(number: int) -> None:
    cluster = lab_cluster(number)
    result, complaints = run_lab(cluster, cluster.settings)
    assert complaints == ()
    assert all(each.ended_ms is not None for each in result.applications)


def test_ten_seeds_have_ten_mistakes_each_with_a_symptom_of_its_own() -> None:
    drawn = {lab_case(seed).mistake.name for seed in SEEDS}
    assert drawn == {lab_case(seed + 10).mistake.name for seed in SEEDS} == {each.name for each in PLANTED}
    assert len({each.shows for each in PLANTED}) == len(PLANTED)
    assert lab_case(3) == lab_case(3)


@pytest.mark.parametrize("number", SEEDS)
def test_a_mistake_shows_itself_and_its_reference_answer_has_all_points(number: int) -> None:
    case = lab_case(number)
    _, complaints = run_lab(case.cluster, case.settings)
    assert case.mistake.shows in {each.kind for each in complaints}
    reference = read_answer(SOLUTIONS / f"{number}.yaml")
    assert whole_key(reference) == case.key
    graded = grade(reference)
    assert (graded.points, graded.hint) == (POINTS_MAX, ""), graded


@pytest.mark.parametrize("number", SEEDS)
def test_a_wrong_answer_has_few_points_and_a_hint(number: int) -> None:
    case = lab_case(number)
    queue = f"root.{case.cluster.names.science}"
    graded = grade(
        answer(f"{{seed: {number}, key: maximum-applications, queue: {queue}, value: 500, evidence: it waits}}")
    )
    assert graded.points <= POINTS["place"] // 3
    assert graded.hint == case.mistake.hint
    assert graded.parts[1].remark.startswith("still: ")


def seed_of(name: str) -> int:
    return next(seed for seed in SEEDS if lab_case(seed).mistake.name == name)


def test_the_right_key_with_a_value_that_does_not_mend_has_the_points_of_its_place() -> None:
    seed = seed_of("user-limit-factor")
    queue = lab_case(seed).cluster.names.reports
    given = answer(f"{{seed: {seed}, key: user-limit-factor, queue: {queue}, value: 1.1}}")
    assert points(given) == {"place": 30, "repair": 0, "evidence": 0}


def test_the_right_key_of_another_queue_has_half_the_points_of_the_place() -> None:
    seed = seed_of("user-limit-factor")
    queue = lab_case(seed).cluster.names.production
    given = answer(f"{{seed: {seed}, key: user-limit-factor, queue: {queue}, value: 4, evidence: survey}}")
    assert points(given) == {"place": 15, "repair": 0, "evidence": 10}


def test_another_key_that_mends_the_cluster_has_all_points_of_its_place() -> None:
    seed = seed_of("mapping")
    given = answer(f"{{seed: {seed}, key: yarn.scheduler.capacity.queue-mappings, value: 'u:nobody:default'}}")
    assert points(given) == {"place": 30, "repair": 50, "evidence": 0}


def test_a_repair_that_makes_another_complaint_has_some_points() -> None:
    seed = seed_of("node-memory")
    given = answer(f"{{seed: {seed}, key: yarn.nodemanager.resource.memory-mb, value: 65536}}")
    graded = grade(given)
    assert points(given) == {"place": 30, "repair": 20, "evidence": 0}
    assert "swap" in graded.parts[1].remark


def test_a_value_that_hadoop_refuses_is_named() -> None:
    seed = seed_of("maximum-capacity")
    queue = lab_case(seed).cluster.names.production
    graded = grade(answer(f"{{seed: {seed}, key: maximum-capacity, queue: {queue}, value: lots}}"))
    assert graded.parts[1].remark.startswith("the cluster does not run with it: ")


def test_a_key_or_a_queue_that_does_not_exist_is_refused_with_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "answer.yaml"
    path.write_text("{seed: 1, key: user-limit-factr, queue: root.defalt, value: 4}")
    with pytest.raises(YarnException, match=r"defalt.*did you mean root\.default") as refused:
        read_answer(path)
    assert "user-limit-factr" in refused.value.message
    path.write_text("seed: 1\nkey: ''\nvalue: ''\n")
    with pytest.raises(YarnException, match="key"):
        read_answer(path)


def test_keys_are_read_as_people_write_them() -> None:
    assert whole_key(answer("{seed: 1, key: user-limit-factor, queue: default, value: 4}")) == queue_key(
        "root.default", "user-limit-factor"
    )
    whole = "yarn.scheduler.minimum-allocation-mb"
    assert whole_key(answer(f"{{seed: 1, key: {whole}, value: 4}}")) == whole
    assert whole_key(answer("{seed: 1, key: queue-mappings-override.enable, value: false}")) == (
        "yarn.scheduler.capacity.queue-mappings-override.enable"
    )


def test_the_written_files_are_the_faulty_cluster(tmp_path: Path) -> None:
    case = lab_case(seed_of("acl"))
    _, complaints = run_lab(case.cluster, case.settings)
    write_case(case, complaints, tmp_path)
    given = read_configuration(tmp_path / CONF, {})
    assert {key: given.get(key) for key in case.settings} == case.settings
    assert read_workload(tmp_path / WORKLOAD).applications == case.cluster.workload.applications
    assert [node.host for node in read_node_list(tmp_path / NODES).nodes] == list(case.cluster.hosts)
    readme = (tmp_path / README).read_text()
    assert all(str(each) in readme for each in complaints)
    assert case.mistake.hint not in readme
    (tmp_path / ANSWER).write_text("mine")
    write_case(case, complaints, tmp_path)
    assert (tmp_path / ANSWER).read_text() == "mine"


def test_the_jobs_on_processes_are_those_of_the_simulation(tmp_path: Path) -> None:
    from nm.emulation.table_file import parse_table

    case = lab_case(1)
    job = case.cluster.jobs[0]
    shell = submission_of(job)
    assert (shell.width.containers, shell.width.capability.memory_mb) == (job.containers, job.memory_mb)
    assert shell.options.queue == f"root.{job.queue}"
    write_case(case, (), tmp_path)
    assert len(parse_table((tmp_path / TASKS).read_text()).rules) > 1


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["lab", "mistake", *arguments])
    return result.exit_code, result.output


def test_the_command_writes_clusters_and_grades_a_class(tmp_path: Path) -> None:
    where = tmp_path / "class"
    assert invoke("--seed", "1", "--paper", "2", "-o", str(where))[0] == 0
    files = [where / "1" / ANSWER, where / "2" / ANSWER]
    assert invoke(str(files[0]))[0] != 0, "the answer has not been filled in"
    for number, path in enumerate(files, 1):
        path.write_text(replaced((SOLUTIONS / f"{number}.yaml").read_text(), number))
    status, output = invoke(*map(str, files))
    assert status == 1
    rows = output.splitlines()[-2:]
    assert [row.split()[:3] for row in rows] == [["Ann", "Example", "1"], ["Ann", "Example", "2"]]
    status, output = invoke(str(files[0]), "--json")
    (plain,) = json.loads(output)
    assert (status, plain["points"], plain["of"]) == (0, 100, 100)


def replaced(text: str, number: int) -> str:
    """The reference answer; that of the second cluster without its evidence."""
    return text if number == 1 else text.partition("evidence:")[0]


def test_a_grade_is_printed_with_its_hint(tmp_path: Path) -> None:
    path = tmp_path / "answer.yaml"
    path.write_text("{seed: 1, key: user-limit-factor, queue: default, value: 4}")
    status, output = invoke(str(path))
    assert status == 1
    assert "Hint: " in output
    assert output.splitlines()[-1].endswith("of 100 points")


def test_the_same_jobs_under_another_seed_have_other_names() -> None:
    assert len({(one.names, one.workers) for one in map(lab_cluster, range(1, 30))}) > 20
    case = lab_case(1)
    assert replace(case, mistake=PLANTED[0]).key == PLANTED[0].whole_key(case.cluster.names)
