"""The client part of the distributed shell: Hadoop's options, and the context to submit.

    submission = parse(["-shell_command", "echo", "-shell_args", "hello", "-num_containers", "2"])

A script (`-shell_script`) is shipped to the containers as ExecScript.sh and run by bash, as Hadoop's client does.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from am.launching import local_file, python_launch_context
from am.programs.distributed_shell.shell_job import JOB_FILE, ShellJob
from am.programs.fixed_width import Width
from am.staging import make_staging_directory, write_record
from am.submission import (
    ApplicationOptions,
    Faults,
    OptionParser,
    add_application_options,
    build_context,
    parse_pairs,
    read_application_options,
    sizes_above,
)
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ContainerRetryContext
from yarn.errors import InvalidArgumentException, InvalidResourceRequestException
from yarn.ids import ApplicationId
from yarn.resource import Resource
from yarn.states import ContainerRetryPolicy

PROG = "distributed-shell"
APPLICATION_TYPE = "YARN"
SCRIPT_LINK = "ExecScript.sh"
DEFAULT_NAME = "DistributedShell"
DEFAULT_MASTER_MEMORY_MB = 100
DEFAULT_CONTAINER_MEMORY_MB = 10
DEFAULT_TIMEOUT_MS = 600_000

_NO_TIMELINE = "there is no timeline service here"
_NO_OPPORTUNISTIC = "opportunistic containers are not built yet"
_NO_PROFILES = "resource profiles are not built; use -container_memory and -container_vcores"
UNSUPPORTED = {
    "jar": "the master is part of yarnling; leave it out",
    "master_resources": "use -master_memory and -master_vcores",
    "master_resource_profile": _NO_PROFILES,
    "container_type": _NO_OPPORTUNISTIC,
    "promote_opportunistic_after_start": _NO_OPPORTUNISTIC,
    "enforce_execution_type": _NO_OPPORTUNISTIC,
    "container_resources": "use -container_memory and -container_vcores",
    "container_resource_profile": _NO_PROFILES,
    "log_properties": "it is for Java's log4j",
    "rolling_log_pattern": "logs are not aggregated",
    "placement_spec": "placement constraints are not built yet",
    "docker_client_config": "containers are plain processes",
    "domain": _NO_TIMELINE,
    "create": _NO_TIMELINE,
    "view_acls": _NO_TIMELINE,
    "modify_acls": _NO_TIMELINE,
    "flow_name": _NO_TIMELINE,
    "flow_version": _NO_TIMELINE,
    "flow_run_id": _NO_TIMELINE,
}


@dataclass(frozen=True, slots=True)
class DistributedShell:
    """A command line for N containers; `files` {link name in the work directory: file}."""

    command: str
    width: Width
    options: ApplicationOptions
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)
    retry: ContainerRetryContext = ContainerRetryContext()

    def check_sizes(self, maximum: Resource) -> list[str]:
        """Hadoop's distributed shell cuts what is too large: told to its user. An exact width is refused instead."""
        above = " and ".join(sizes_above(self.width.capability, maximum))
        if above and self.width.exact:
            raise InvalidResourceRequestException(
                f"a container with {above} in this cluster (ask for less: "
                "the largest node and yarn.scheduler.maximum-allocation-* are the bounds)"
            )
        return [f"a container with {above} in this cluster: cut to that, as Hadoop's does"] if above else []

    def build(self, application_id: ApplicationId, staging_root: Path) -> ApplicationSubmissionContext:
        """The context to submit (am.submission.Submission)."""
        files = {link: local_file(path) for link, path in self.files.items()}
        staging = make_staging_directory(staging_root, application_id)
        job_file = staging / JOB_FILE
        write_record(job_file, ShellJob(self.command, self.width, str(staging), self.environment, files, self.retry))
        am_container = python_launch_context(
            "am.programs.distributed_shell", local_resources={JOB_FILE: local_file(job_file)}
        )
        return build_context(application_id, self.options, am_container, APPLICATION_TYPE)


def make_parser() -> OptionParser:
    parser = OptionParser(PROG, "Run a shell command in a number of containers.")
    add_application_options(parser, name=DEFAULT_NAME, master_memory_mb=DEFAULT_MASTER_MEMORY_MB)
    parser.set_defaults(timeout=DEFAULT_TIMEOUT_MS, priority=0)
    parser.option("shell_command", "the command to run", default="")
    parser.option("shell_script", "a script to ship and run, instead of a command", type=Path)
    parser.option("shell_args", "arguments of the command or script", nargs="+", default=[])
    parser.option("shell_env", "variables of the containers: NAME=value ...", nargs="+", default=[])
    parser.option("shell_cmd_priority", "priority of the containers; lower is served first", type=int, default=0)
    parser.option("container_memory", "MB of memory for each container", type=int, default=DEFAULT_CONTAINER_MEMORY_MB)
    parser.option("container_vcores", "vcores for each container", type=int, default=1)
    parser.option("num_containers", "how many containers", type=int, default=1)
    parser.option(
        "keep_containers_across_application_attempts",
        "leave containers running when the master fails, and have the next one take them over",
        action="store_true",
    )
    parser.option("container_retry_policy", "0 never, 1 on all errors, 2 on some", type=int, default=0)
    parser.option("container_retry_error_codes", "for policy 2: exit codes, separated by commas", default="")
    parser.option("container_max_retries", "how often a container is started again; -1: for ever", type=int, default=0)
    parser.option("container_retry_interval", "ms between two such starts", type=int, default=0)
    parser.option(
        "container_failures_validity_interval", "ms after which a failure no longer counts", type=int, default=-1
    )
    parser.option("localize_files", "files for the work directories, separated by commas", default="")
    parser.option("debug", "log more", action="store_true")
    parser.refuse(UNSUPPORTED)
    return parser


def parse(arguments: Sequence[str]) -> DistributedShell:
    """The submission that the options tell. Raises InvalidArgumentException with every fault."""
    options = make_parser().parse_args(arguments)
    faults = Faults(PROG)
    application = read_application_options(
        options, faults, keep_containers=options.keep_containers_across_application_attempts
    )
    has_command, has_script = bool(options.shell_command), options.shell_script is not None
    faults.check(has_command or has_script, "no command: give -shell_command or -shell_script")
    faults.check(not (has_command and has_script), "-shell_command and -shell_script cannot be given together")
    faults.check(options.num_containers > 0, f"-num_containers {options.num_containers}: must be above 0")
    faults.check(options.container_memory > 0, f"-container_memory {options.container_memory}: must be above 0")
    faults.check(options.container_vcores > 0, f"-container_vcores {options.container_vcores}: must be above 0")
    faults.check(options.shell_cmd_priority >= 0, f"-shell_cmd_priority {options.shell_cmd_priority}: is negative")
    files = _files_of(options, faults)
    retry = _read_retry(options, faults)
    environment = _read_environment(options, faults)
    faults.raise_if_any()
    words = ["bash", SCRIPT_LINK] if has_script else [options.shell_command]
    return DistributedShell(
        command=" ".join((*words, *options.shell_args)),
        width=Width(
            options.num_containers,
            Resource(options.container_memory, options.container_vcores),
            options.shell_cmd_priority,
            label=options.node_label_expression,
        ),
        options=application,
        environment=environment,
        files=files,
        retry=retry,
    )


def _files_of(options: argparse.Namespace, faults: Faults) -> dict[str, Path]:
    paths = [Path(name.strip()) for name in options.localize_files.split(",") if name.strip()]
    files = {path.name: path for path in paths}
    if options.shell_script is not None:
        files[SCRIPT_LINK] = options.shell_script
    for path in files.values():
        faults.check(path.is_file(), f"{path}: is no file that can be shipped")
    return files


def _read_environment(options: argparse.Namespace, faults: Faults) -> dict[str, str]:
    try:
        return parse_pairs(options.shell_env)
    except InvalidArgumentException as error:
        faults.check(False, f"-shell_env {error.message}")
        return {}


def _read_retry(options: argparse.Namespace, faults: Faults) -> ContainerRetryContext:
    codes = [code.strip() for code in options.container_retry_error_codes.split(",") if code.strip()]
    are_numbers = all(code.lstrip("-").isdigit() for code in codes)
    faults.check(are_numbers, f"-container_retry_error_codes {options.container_retry_error_codes}: must be numbers")
    policies = {policy.value: policy for policy in ContainerRetryPolicy}
    known = options.container_retry_policy in policies
    faults.check(known, f"-container_retry_policy {options.container_retry_policy}: must be 0, 1 or 2")
    return ContainerRetryContext(
        policy=policies.get(options.container_retry_policy, ContainerRetryPolicy.NEVER_RETRY),
        error_codes=frozenset(map(int, codes)) if are_numbers else frozenset(),
        max_retries=options.container_max_retries,
        retry_interval_ms=options.container_retry_interval,
        failures_validity_interval_ms=options.container_failures_validity_interval,
    )
