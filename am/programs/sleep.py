"""Containers that only sleep: the smallest work there is, for tests of everything around it.

Sleep(containers=3, seconds=60)     a distributed shell under another name
"""

from __future__ import annotations

from am.client.submission import ApplicationOptions
from am.programs.core.fixed_width import Width
from am.programs.distributed_shell.client import DistributedShell
from yarn.resource import Resource

DEFAULT_OPTIONS = ApplicationOptions(name="Sleep")


def sleep_submission(
    containers: int,
    seconds: float,
    *,
    resource: Resource = Resource(64, 1),  # noqa: B008  immutable
    options: ApplicationOptions = DEFAULT_OPTIONS,
) -> DistributedShell:
    """An application whose containers sleep so long and succeed."""
    return DistributedShell(f"exec sleep {seconds:g}", Width(containers, resource), options)
