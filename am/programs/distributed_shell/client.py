"""The client of the distributed shell: parses Hadoop's options into a submission.

submission = parse(["-shell_command", "echo", "-shell_args", "hello", "-num_containers", "2"])
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, field

from am.client.submission import (
    ApplicationOptions,
    OptionFaults,
    OptionParser,
    build_context,
    sizes_above,
)
from am.programs.distributed_shell.core import Width
from am.programs.shell_work import make_work_parser, read_options, refuse_above
from am.programs.staged_job import StagedJob, stage_job
from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ContainerRetryContext
from yarn.ids import ApplicationId
from yarn.resource import Resource
from yarn.states import ContainerRetryPolicy

PROG = "distributed-shell"
APPLICATION_TYPE = "YARN"
AM_MODULE = "am.programs.distributed_shell.application_master"
DEFAULT_NAME = "DistributedShell"
DEFAULT_TIMEOUT_MS = 600_000

_NO_TIMELINE = "yarnling has no timeline service"
_NO_OPPORTUNISTIC = "opportunistic containers are not supported"
_NO_PROFILES = "resource profiles are not supported; use -container_memory and -container_vcores"
UNSUPPORTED = {
    "jar": "the ApplicationMaster is part of yarnling; leave it out",
    "master_resources": "use -master_memory and -master_vcores",
    "master_resource_profile": _NO_PROFILES,
    "container_type": _NO_OPPORTUNISTIC,
    "promote_opportunistic_after_start": _NO_OPPORTUNISTIC,
    "enforce_execution_type": _NO_OPPORTUNISTIC,
    "container_resources": "use -container_memory and -container_vcores",
    "container_resource_profile": _NO_PROFILES,
    "log_properties": "the option configures Java's log4j, and yarnling does not use Java",
    "rolling_log_pattern": "logs are not aggregated",
    "placement_spec": "placement constraints are not supported",
    "docker_client_config": "yarnling runs containers as processes, without Docker",
    "domain": _NO_TIMELINE,
    "create": _NO_TIMELINE,
    "view_acls": _NO_TIMELINE,
    "modify_acls": _NO_TIMELINE,
    "flow_name": _NO_TIMELINE,
    "flow_version": _NO_TIMELINE,
    "flow_run_id": _NO_TIMELINE,
}


class DistributedShell(Struct, frozen=True):
    """A shell command line that runs in N containers.

    `files` is {link name in the work directory: file}; `texts` is {link name: content}, for files that are made from
    text.
    """

    command: str
    width: Width
    options: ApplicationOptions
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)
    retry: ContainerRetryContext = ContainerRetryContext()
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def vcores(self) -> int:
        return max(self.width.capability.vcores, self.options.am_resource.vcores)

    def check_sizes(self, maximum: Resource) -> list[str]:
        """Return a warning if the containers are larger than `maximum`: Hadoop's distributed shell cuts their size.

        Raises InvalidResourceRequestException instead if their size is `exact`.
        """
        if self.width.exact:
            refuse_above(self.width.capability, maximum)
        above = " and ".join(sizes_above(self.width.capability, maximum))
        return (
            [f"a container with {above} in this cluster: cut to that, as Hadoop's distributed shell does"]
            if above
            else []
        )

    def build(self, application_id: ApplicationId, staging_root: Path) -> ApplicationSubmissionContext:
        """The context to submit (am.client.submission.Submission)."""
        job = StagedJob(self.command, self.width, self.environment, self.retry)
        am_container = stage_job(job, self.files, AM_MODULE, application_id, staging_root, texts=self.texts)
        return build_context(application_id, self.options, am_container, APPLICATION_TYPE)


def make_parser() -> OptionParser:
    parser = make_work_parser(PROG, "Run a shell command in a number of containers.", name=DEFAULT_NAME)
    parser.set_defaults(timeout=DEFAULT_TIMEOUT_MS, priority=0)
    parser.option("num_containers", "number of containers", type=int, default=1)
    parser.option(
        "keep_containers_across_application_attempts",
        "keep containers running when the ApplicationMaster fails; the next attempt takes them over",
        action="store_true",
    )
    parser.option(
        "container_retry_policy",
        "when a failed container is restarted: 0 never, 1 after all errors, 2 after some",
        type=int,
        default=0,
    )
    parser.option(
        "container_retry_error_codes", "exit codes after which policy 2 restarts, separated by commas", default=""
    )
    parser.option("container_max_retries", "how often a container is restarted; -1: without limit", type=int, default=0)
    parser.option("container_retry_interval", "ms between two restarts of a container", type=int, default=0)
    parser.option(
        "container_failures_validity_interval", "ms after which a failure no longer counts", type=int, default=-1
    )
    parser.option("debug", "log more details", action="store_true")
    parser.refuse(UNSUPPORTED)
    return parser


def parse(arguments: Sequence[str]) -> DistributedShell:
    """Parse the options into a submission. Raises InvalidArgumentException with all faults."""
    options, faults, application, work = read_options(make_parser(), arguments)
    faults.check_positive(options, "num_containers")
    retry = _read_retry(options, faults)
    faults.raise_if_any()
    return DistributedShell(
        command=work.command,
        width=Width(options.num_containers, work.capability, work.priority, label=work.label),
        options=application,
        environment=work.environment,
        files=work.files,
        retry=retry,
    )


def _read_retry(options: argparse.Namespace, faults: OptionFaults) -> ContainerRetryContext:
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
