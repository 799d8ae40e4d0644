"""The distributed shell's options are Hadoop's, and all their faults are reported at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from am.programs.distributed_shell.application_master import launch_context
from am.programs.distributed_shell.client import UNSUPPORTED, parse
from am.programs.distributed_shell.core import Width
from am.programs.staged_job import JOB_FILE, read_job
from tests.am.builders import APP
from yarn.containers import ContainerRetryContext
from yarn.errors import InvalidArgumentException, InvalidResourceRequestException
from yarn.resource import Resource
from yarn.states import ContainerRetryPolicy, LocalResourceVisibility


def test_the_defaults_are_hadoops() -> None:
    shell = parse(["-shell_command", "date"])
    assert shell.options.name == "DistributedShell"
    assert (shell.options.queue, shell.options.priority, shell.options.timeout_ms) == ("default", 0, 600_000)
    assert shell.options.am_resource == Resource(100, 1)
    assert (shell.width.containers, shell.width.capability, shell.width.priority) == (1, Resource(10, 1), 0)


def test_options_have_one_dash_or_two() -> None:
    assert parse(["--shell_command", "date", "--num_containers", "4"]).width.containers == 4


def test_command_and_arguments_are_one_command_line() -> None:
    shell = parse(["-shell_command", "echo", "-shell_args", "a", "b", "-shell_env", "X=1", "Y=a=b"])
    assert shell.command == "echo a b"
    assert shell.environment == {"X": "1", "Y": "a=b"}


def test_the_application_options() -> None:
    names = "-appname n -queue q -priority 3 -timeout 5 -application_tags a,b"
    master = "-master_memory 200 -master_vcores 2 -attempt_failures_validity_interval 1000"
    keep = "-keep_containers_across_application_attempts"
    shell = parse(f"-shell_command x {names} {master} {keep}".split())
    options = shell.options
    assert (options.name, options.queue, options.priority, options.timeout_ms) == ("n", "q", 3, 5)
    assert (options.am_resource, options.keep_containers) == (Resource(200, 2), True)
    assert (options.tags, options.attempt_failures_validity_interval_ms) == (frozenset({"a", "b"}), 1000)


def test_the_retry_policy_of_containers() -> None:
    policy = ["-container_retry_policy", "2", "-container_retry_error_codes", "1,143", "-container_max_retries", "-1"]
    shell = parse(["-shell_command", "x", *policy, "-container_retry_interval", "50"])
    assert shell.retry == ContainerRetryContext(
        ContainerRetryPolicy.RETRY_ON_SPECIFIC_ERROR_CODES, frozenset({1, 143}), -1, 50
    )


@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_unsupported_options_are_refused_with_the_reason(name: str) -> None:
    with pytest.raises(InvalidArgumentException) as refused:
        parse(["-shell_command", "x", f"-{name}", "y"])
    assert f"-{name} is not supported: {UNSUPPORTED[name]}" in refused.value.message


def test_all_faults_are_reported_at_once() -> None:
    faulty = ["-num_containers", "0", "-container_memory", "-5", "-container_retry_policy", "7", "-shell_env", "=x"]
    with pytest.raises(InvalidArgumentException) as refused:
        parse([*faulty, "-localize_files", "/no/such/file", "-timeout", "0"])
    for fault in ("no command", "-num_containers 0", "-container_memory -5", "-container_retry_policy 7", "'=x'"):
        assert fault in refused.value.message
    assert "/no/such/file" in refused.value.message
    assert "-timeout 0" in refused.value.message


def test_an_unknown_option_and_a_missing_value_are_refused() -> None:
    with pytest.raises(InvalidArgumentException, match="unrecognized arguments: -nonsense"):
        parse(["-shell_command", "x", "-nonsense"])
    with pytest.raises(InvalidArgumentException, match="expected one argument"):
        parse(["-shell_command"])


def test_a_submission_writes_its_job_for_the_am(tmp_path: Path) -> None:
    script = tmp_path / "s.sh"
    script.write_text("true\n")
    shell = parse(["-shell_script", str(script), "-shell_args", "1", "-num_containers", "2", "-queue", "a"])
    context = shell.build(APP, tmp_path / "staging")
    staging = tmp_path / "staging" / str(APP)
    job = read_job(staging / JOB_FILE, Width)
    assert (job.command, job.plan.containers, job.staging) == ("bash ExecScript.sh 1", 2, str(staging.resolve()))
    assert (context.application_id, context.queue, context.type) == (APP, "a", "YARN")
    assert context.am_container.local_resources[JOB_FILE].visibility is LocalResourceVisibility.APPLICATION
    task = launch_context(job, 2)
    assert task.commands == ("bash ExecScript.sh 1 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr",)
    assert task.environment["YARN_SHELL_ID"] == "2"
    assert set(task.local_resources) == {"ExecScript.sh"}


def test_sizes_above_the_clusters_largest_container_give_a_warning_or_are_refused() -> None:
    """DistributedShell's AM cuts sizes that are too large; an exact size can only be refused."""
    shell = parse(["-shell_command", "date", "-container_memory", "9000", "-container_vcores", "5"])
    assert shell.check_sizes(Resource(9000, 5)) == []
    problem = "a container with memory of 9000 MB, at most 8192 and vcores 5, at most 4 in this cluster"
    assert shell.check_sizes(Resource(8192, 4)) == [f"{problem}: cut to that, as Hadoop's distributed shell does"]
    exact = replace(shell, width=replace(shell.width, exact=True))
    assert exact.check_sizes(Resource(9000, 5)) == []
    with pytest.raises(InvalidResourceRequestException, match=f"{problem} .request less"):
        exact.check_sizes(Resource(8192, 4))
