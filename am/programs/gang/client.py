"""The client of gang applications: parses options into a submission.

submission = parse(["-shell_command", "mpirun.sh", "-num_containers", "4", "-gang_wait", "60000"])
"""

from __future__ import annotations

from collections.abc import Sequence

from am.client.submission import (
    OptionFaults,
    OptionParser,
    add_application_options,
    read_application_options,
)
from am.programs.gang.core import GangPlan
from am.programs.shell_work import ShellSubmission, add_work_options, read_work

PROG = "gang"
DEFAULT_MASTER_MEMORY_MB = 100
TRIES_MAX = 20
"""The limit on tries; the pause between tries doubles each time."""


class GangSubmission(ShellSubmission[GangPlan], frozen=True):
    """A submission of a gang: a command that runs in each of its members."""

    APPLICATION_TYPE = "GANG"
    AM_MODULE = "am.programs.gang.application_master"


def make_parser() -> OptionParser:
    parser = OptionParser(PROG, "Run a shell command in containers that are useful only together: all of them or none.")
    add_application_options(parser, name=PROG, master_memory_mb=DEFAULT_MASTER_MEMORY_MB)
    add_work_options(parser)
    parser.option("num_containers", "number of members", type=int, default=2)
    parser.option("gang_wait", "ms after which an incomplete gang releases its containers", type=int, default=60_000)
    parser.option(
        "gang_pause", "ms before the second try; the pause doubles with each further try", type=int, default=5_000
    )
    parser.option("gang_tries", "how often the gang may try, or start again after losing a member", type=int, default=5)
    return parser


def parse(arguments: Sequence[str]) -> GangSubmission:
    """Parse the options into a submission. Raises InvalidArgumentException with all faults."""
    options = make_parser().parse_args(arguments)
    faults = OptionFaults(PROG)
    application = read_application_options(options, faults)
    work = read_work(options, faults)
    faults.check_positive(options, "num_containers", "gang_wait", "gang_pause")
    faults.check(0 < options.gang_tries <= TRIES_MAX, f"-gang_tries {options.gang_tries}: must be 1 to {TRIES_MAX}")
    faults.raise_if_any()
    plan = GangPlan(
        members=options.num_containers,
        capability=work.capability,
        priority=work.priority,
        label=work.label,
        wait_ms=options.gang_wait,
        pause_ms=options.gang_pause,
        tries=options.gang_tries,
    )
    return GangSubmission(work, plan, application)
