"""Submissions: applications that can be submitted as soon as they have an id.

    submission = distributed_shell.client.parse(["-shell_command", "date", "-num_containers", "3"])
    new = await client.new_application()
    await client.submit(submission.build(new.application_id, staging_root))

`build` writes the files that the AM needs into the application's staging directory. Options are checked earlier, when
they are parsed, and all their faults are reported at once.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, Protocol

from msgspec import Struct

from yarn.applications import ApplicationSubmissionContext
from yarn.containers import ContainerLaunchContext
from yarn.errors import InvalidArgumentException
from yarn.ids import ApplicationId
from yarn.resource import Resource


class ApplicationOptions(Struct, frozen=True):
    """Options that every application has.

    `timeout_ms` is the time after which the client kills the application; None: never.
    """

    name: str
    queue: str = "default"
    priority: int | None = None
    am_resource: Resource = Resource(256, 1)
    max_app_attempts: int = 0
    keep_containers: bool = False
    attempt_failures_validity_interval_ms: int = -1
    tags: frozenset[str] = frozenset()
    node_label_expression: str | None = None
    timeout_ms: int | None = None


class Submission(Protocol):
    """An application that does not have an id yet."""

    @property
    def options(self) -> ApplicationOptions: ...

    @property
    def vcores(self) -> int:
        """The most vcores that it requests for one container, its AM's included."""
        ...

    def check_sizes(self, maximum: Resource) -> list[str]:
        """Warnings for the user about container sizes; `maximum` is the largest container that the cluster can
        allocate.

        Raises InvalidResourceRequestException if the application requests containers that can never be allocated.
        """
        ...

    def build(self, application_id: ApplicationId, staging_root: Path) -> ApplicationSubmissionContext:
        """Create the staging directory `<staging_root>/<application_id>`, and return the context to submit.

        Raises YarnException if the directory cannot be created, or if a file to ship does not exist.
        """
        ...


def sizes_above(capability: Resource, maximum: Resource) -> list[str]:
    """The parts of `capability` that exceed `maximum`, for example `memory of 9000 MB, at most 8192`."""
    above: list[str] = []
    if capability.memory_mb > maximum.memory_mb:
        above.append(f"memory of {capability.memory_mb} MB, at most {maximum.memory_mb}")
    if capability.vcores > maximum.vcores:
        above.append(f"vcores {capability.vcores}, at most {maximum.vcores}")
    return above


def build_context(
    application_id: ApplicationId,
    options: ApplicationOptions,
    am_container: ContainerLaunchContext,
    application_type: str,
) -> ApplicationSubmissionContext:
    """The submission context of an application with these options."""
    return ApplicationSubmissionContext(
        application_id=application_id,
        am_container=am_container,
        resource=options.am_resource,
        name=options.name,
        queue=options.queue,
        type=application_type,
        priority=options.priority,
        max_app_attempts=options.max_app_attempts,
        keep_containers_across_attempts=options.keep_containers,
        attempt_failures_validity_interval_ms=options.attempt_failures_validity_interval_ms,
        tags=options.tags,
        node_label_expression=options.node_label_expression,
    )


class OptionParser(argparse.ArgumentParser):
    """Parses options spelled like Hadoop's (`-shell_command`, also `--shell_command`).

    Raises InvalidArgumentException where ArgumentParser would exit. `refuse` is {option of Hadoop's: reason} for those
    that are not supported.
    """

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False, add_help=False)

    def option(self, name: str, meaning: str, **settings: object) -> None:
        """Add one option; `settings` are arguments of ArgumentParser.add_argument."""
        self.add_argument(f"-{name}", f"--{name}", dest=name, help=meaning, **settings)  # type: ignore[arg-type]

    def refuse(self, reasons: dict[str, str]) -> None:
        for name, reason in reasons.items():
            self.add_argument(
                f"-{name}", f"--{name}", action=_Refusal, nargs="*", reason=reason, help=argparse.SUPPRESS
            )

    def error(self, message: str) -> NoReturn:
        raise InvalidArgumentException(f"{self.prog}: {message}")


class _Refusal(argparse.Action):
    def __init__(self, option_strings: list[str], dest: str, *, reason: str, nargs: str, help: str) -> None:  # noqa: A002  argparse's name
        super().__init__(option_strings, dest, nargs=nargs, help=help, default=argparse.SUPPRESS)
        self._reason = reason

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.error(f"{self.option_strings[0]} is not supported: {self._reason}")


@dataclass
class OptionFaults:
    """Collects the faults of options, so that all of them can be reported at once."""

    prog: str
    found: list[str] = field(default_factory=list)

    def check(self, is_right: bool, fault: str) -> None:
        if not is_right:
            self.found.append(fault)

    def check_positive(self, options: argparse.Namespace, *names: str) -> None:
        """Note a fault for each of these options that is not above 0."""
        for name in names:
            self.check(getattr(options, name) > 0, f"-{name} {getattr(options, name)}: must be above 0")

    def check_not_negative(self, options: argparse.Namespace, *names: str) -> None:
        for name in names:
            self.check(getattr(options, name) >= 0, f"-{name} {getattr(options, name)}: must not be negative")

    def raise_if_any(self) -> None:
        """Raise InvalidArgumentException with one line for each fault, if there is any."""
        if self.found:
            raise InvalidArgumentException(f"{self.prog}: " + "\n".join(self.found))


def parse_pairs(texts: list[str]) -> dict[str, str]:
    """Parse texts of the form NAME=value into {name: value}. Raises InvalidArgumentException for any other text."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name.isidentifier():
            raise InvalidArgumentException(f"{text!r}: must be NAME=value")
        pairs[name] = value
    return pairs


APPLICATION_PRIORITY_HELP = "priority of the application; higher is more important"


def add_application_options(parser: OptionParser, *, name: str, master_memory_mb: int) -> None:
    """Add the options that every application has. `master_memory_mb` is the default memory of the AM."""
    parser.option("appname", "name of the application", default=name)
    parser.option("queue", "queue to submit to", default="default")
    parser.option("priority", APPLICATION_PRIORITY_HELP, type=int)
    parser.option("timeout", "ms after which the application is killed", type=int)
    parser.option("master_memory", "MB of memory for the ApplicationMaster", type=int, default=master_memory_mb)
    parser.option("master_vcores", "vcores for the ApplicationMaster", type=int, default=1)
    parser.option("max_app_attempts", "attempts of the application; 0: the cluster's setting", type=int, default=0)
    parser.option(
        "attempt_failures_validity_interval", "ms after which a failed attempt no longer counts", type=int, default=-1
    )
    parser.option("application_tags", "tags, separated by commas", default="")
    parser.option("node_label_expression", "label of the nodes to run on")
    # Only the distributed shell has this option: the other programs start again without containers.
    parser.set_defaults(keep_containers_across_application_attempts=False)


def read_application_options(options: argparse.Namespace, faults: OptionFaults) -> ApplicationOptions:
    """The application's options as parsed; problems are added to `faults`."""
    faults.check_positive(options, "master_memory", "master_vcores")
    faults.check_not_negative(options, "max_app_attempts")
    faults.check(options.timeout is None or options.timeout > 0, f"-timeout {options.timeout}: must be above 0")
    return ApplicationOptions(
        name=options.appname,
        queue=options.queue,
        priority=options.priority,
        am_resource=Resource(options.master_memory, options.master_vcores),
        max_app_attempts=options.max_app_attempts,
        keep_containers=options.keep_containers_across_application_attempts,
        attempt_failures_validity_interval_ms=options.attempt_failures_validity_interval,
        tags=frozenset(tag.strip() for tag in options.application_tags.split(",") if tag.strip()),
        node_label_expression=options.node_label_expression,
        timeout_ms=options.timeout,
    )
