"""A shell command that runs in containers: the options, spelled like Hadoop's, of all applications that run one.

A script (`-shell_script`) is shipped to the containers as ExecScript.sh and run by bash, as with Hadoop's client.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Generic, NamedTuple

from msgspec import Struct, field

from am.client.submission import (
    ApplicationOptions,
    OptionFaults,
    OptionParser,
    add_application_options,
    build_context,
    parse_pairs,
    read_application_options,
    sizes_above,
)
from am.programs.staged_job import Plan, StagedJob, stage_job
from yarn.applications import ApplicationSubmissionContext
from yarn.errors import InvalidArgumentException, InvalidResourceRequestException
from yarn.ids import ApplicationId
from yarn.resource import Resource

SCRIPT_LINK = "ExecScript.sh"
DEFAULT_MASTER_MEMORY_MB = 100
DEFAULT_CONTAINER_MEMORY_MB = 10


class ShellWork(Struct, frozen=True):
    """A command line, and the size and priority of its containers.

    `files` is {link name in the work directory: file}.
    """

    command: str
    capability: Resource
    priority: int = 0
    label: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)


class ShellSubmission(Struct, Generic[Plan], frozen=True):
    """The submission of a shell command with a plan, which says how many containers the AM requests, and when."""

    APPLICATION_TYPE: ClassVar[str]
    AM_MODULE: ClassVar[str]

    work: ShellWork
    plan: Plan
    options: ApplicationOptions

    @property
    def vcores(self) -> int:
        return max(self.work.capability.vcores, self.options.am_resource.vcores)

    def check_sizes(self, maximum: Resource) -> list[str]:
        """Return no warnings.

        Raises InvalidResourceRequestException if the containers are too large for the cluster.
        """
        refuse_above(self.work.capability, maximum)
        return []

    def build(self, application_id: ApplicationId, staging_root: Path) -> ApplicationSubmissionContext:
        """Create the staging directory and return the context to submit (am.client.submission.Submission)."""
        job = StagedJob(self.work.command, self.plan, self.work.environment)
        am_container = stage_job(job, self.work.files, self.AM_MODULE, application_id, staging_root)
        return build_context(application_id, self.options, am_container, self.APPLICATION_TYPE)


class WorkOptions(NamedTuple):
    """The options of a program as given, and the parts that all programs have; further faults go to `faults`."""

    given: argparse.Namespace
    faults: OptionFaults
    application: ApplicationOptions
    work: ShellWork


def make_work_parser(prog: str, description: str, *, name: str) -> OptionParser:
    """A parser with the options of every application, whose default name is `name`, and of a shell command."""
    parser = OptionParser(prog, description)
    add_application_options(parser, name=name, master_memory_mb=DEFAULT_MASTER_MEMORY_MB)
    parser.option("shell_command", "the command to run", default="")
    parser.option("shell_script", "a script to ship and run, instead of a command", type=Path)
    parser.option("shell_args", "arguments of the command or script", nargs="+", default=[])
    parser.option("shell_env", "variables of the containers: NAME=value ...", nargs="+", default=[])
    parser.option("shell_cmd_priority", "priority of the containers; lower is served first", type=int, default=0)
    parser.option("container_memory", "MB of memory for each container", type=int, default=DEFAULT_CONTAINER_MEMORY_MB)
    parser.option("container_vcores", "vcores for each container", type=int, default=1)
    parser.option("localize_files", "files for the work directories, separated by commas", default="")
    return parser


def read_options(parser: OptionParser, arguments: Sequence[str]) -> WorkOptions:
    """Parse the options of a parser that `make_work_parser` made."""
    given, faults = parser.parse_args(arguments), OptionFaults(parser.prog)
    return WorkOptions(given, faults, read_application_options(given, faults), _read_work(given, faults))


def _read_work(options: argparse.Namespace, faults: OptionFaults) -> ShellWork:
    """The work that the options describe; problems are added to `faults`."""
    has_command, has_script = bool(options.shell_command), options.shell_script is not None
    faults.check(has_command or has_script, "no command: give -shell_command or -shell_script")
    faults.check(not (has_command and has_script), "-shell_command and -shell_script cannot be given together")
    faults.check_positive(options, "container_memory", "container_vcores")
    faults.check_not_negative(options, "shell_cmd_priority")
    words = ["bash", SCRIPT_LINK] if has_script else [options.shell_command]
    return ShellWork(
        command=" ".join((*words, *options.shell_args)),
        capability=Resource(options.container_memory, options.container_vcores),
        priority=options.shell_cmd_priority,
        label=options.node_label_expression,
        environment=_read_environment(options, faults),
        files=_files_of(options, faults),
    )


def refuse_above(capability: Resource, maximum: Resource) -> None:
    """Raise InvalidResourceRequestException if a container of this size can never be allocated in the cluster."""
    above = " and ".join(sizes_above(capability, maximum))
    if above:
        raise InvalidResourceRequestException(
            f"a container with {above} in this cluster (request less: "
            "the largest node and yarn.scheduler.maximum-allocation-* are the bounds)"
        )


def _files_of(options: argparse.Namespace, faults: OptionFaults) -> dict[str, Path]:
    paths = [Path(name.strip()) for name in options.localize_files.split(",") if name.strip()]
    files = {path.name: path for path in paths}
    if options.shell_script is not None:
        files[SCRIPT_LINK] = options.shell_script
    for path in files.values():
        faults.check(path.is_file(), f"{path}: not a file that can be shipped")
    return files


def _read_environment(options: argparse.Namespace, faults: OptionFaults) -> dict[str, str]:
    try:
        return parse_pairs(options.shell_env)
    except InvalidArgumentException as error:
        faults.check(False, f"-shell_env {error.message}")
        return {}
