"""The client of gang applications: parses options into a submission.

submission = parse(["-shell_command", "mpirun.sh", "-num_containers", "4", "-gang_wait", "60000"])
"""

from __future__ import annotations

from collections.abc import Sequence

from am.client.submission import OptionParser
from am.programs.gang.core import GangPlan
from am.programs.shell_work import ShellSubmission, make_work_parser, read_options

PROG = "gang"
TRIES_MAX = 20
"""The limit on tries; the pause between tries doubles each time."""


class GangSubmission(ShellSubmission[GangPlan], frozen=True):
    """A submission of a gang: a command that runs in each of its members."""

    APPLICATION_TYPE = "GANG"
    AM_MODULE = "am.programs.gang.application_master"


def make_parser() -> OptionParser:
    parser = make_work_parser(
        PROG, "Run a shell command in containers that are useful only together: all of them or none.", name=PROG
    )
    parser.option("num_containers", "number of members", type=int, default=2)
    parser.option("gang_wait", "ms after which an incomplete gang releases its containers", type=int, default=60_000)
    parser.option(
        "gang_pause", "ms before the second try; the pause doubles with each further try", type=int, default=5_000
    )
    parser.option("gang_tries", "how often the gang may try, or start again after losing a member", type=int, default=5)
    return parser


def parse(arguments: Sequence[str]) -> GangSubmission:
    """Parse the options into a submission. Raises InvalidArgumentException with all faults."""
    options, faults, application, work = read_options(make_parser(), arguments)
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
