"""The options of `submit gang` and `submit elastic`, and what their containers run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from am.programs.elastic import client as elastic
from am.programs.elastic.application_master import worker_launch_context
from am.programs.elastic.core import ElasticPlan
from am.programs.gang import client as gang
from am.programs.gang.application_master import launch_context, read_member
from am.programs.gang.core import GangPlan, Member
from am.programs.staged_job import JOB_FILE, read_job
from tests.am.builders import APP
from yarn.errors import InvalidArgumentException, InvalidResourceRequestException
from yarn.resource import Resource

Parse = Callable[[list[str]], Any]


def test_the_options_of_a_gang(tmp_path: Path) -> None:
    options = [
        "-shell_command",
        "run",
        "-num_containers",
        "3",
        "-container_memory",
        "64",
        "-gang_wait",
        "9",
        "-queue",
        "q",
    ]
    submission = gang.parse(options)
    assert submission.plan == GangPlan(3, Resource(64, 1), wait_ms=9)
    context = submission.build(APP, tmp_path)
    assert (context.queue, context.type) == ("q", "GANG")
    job = read_job(tmp_path / str(APP) / JOB_FILE, GangPlan)
    member = Member(1, ("a", "b", "c"), 2)
    launch = launch_context(job, member)
    variables = {"GANG_RANK": "1", "GANG_SIZE": "3", "GANG_HOSTS": "a,b,c", "GANG_TRY": "2"}
    assert launch.environment == variables
    assert read_member(variables) == member
    assert read_member({"GANG": "1"}) is None
    assert launch.commands[0].startswith("run 1>")


def test_the_options_of_an_elastic_application(tmp_path: Path) -> None:
    submission = elastic.parse(["-shell_command", "run", "-stages", "4, 2", "-idle_timeout", "7", "-max_workers", "3"])
    assert submission.plan == ElasticPlan((4, 2), Resource(128, 1), idle_ms=7, workers_max=3)
    context = submission.build(APP, tmp_path)
    assert context.type == "ELASTIC"
    job = read_job(tmp_path / str(APP) / JOB_FILE, ElasticPlan)
    assert job.plan == submission.plan
    assert "am.programs.elastic.worker" in worker_launch_context(job).commands[0]


def test_a_job_with_another_plan_is_refused(tmp_path: Path) -> None:
    gang.parse(["-shell_command", "run"]).build(APP, tmp_path)
    with pytest.raises(InvalidArgumentException, match="does not contain a job with a ElasticPlan"):
        read_job(tmp_path / str(APP) / JOB_FILE, ElasticPlan)


@pytest.mark.parametrize("parse", [gang.parse, elastic.parse])
def test_containers_that_can_never_be_allocated_are_refused(parse: Parse) -> None:
    submission = parse(["-shell_command", "run", "-container_memory", "9000"])
    with pytest.raises(InvalidResourceRequestException, match="memory of 9000 MB, at most 8192"):
        submission.check_sizes(Resource(8192, 8))
    assert submission.check_sizes(Resource(9000, 8)) == []


@pytest.mark.parametrize(
    ("parse", "options", "reported"),
    [
        (gang.parse, ["-num_containers", "0", "-gang_tries", "99"], ["no command", "-num_containers 0", "1 to 20"]),
        (
            elastic.parse,
            ["-stages", "3,x", "-min_workers", "9", "-max_workers", "5"],
            ["-stages 3,x", "must not be above"],
        ),
        (elastic.parse, ["-stages", "999999,1"], ["999999 tasks at most"]),
    ],
)
def test_all_faults_are_reported(parse: Parse, options: list[str], reported: list[str]) -> None:
    with pytest.raises(InvalidArgumentException) as refusal:
        parse(options)
    assert all(part in refusal.value.message for part in reported)
