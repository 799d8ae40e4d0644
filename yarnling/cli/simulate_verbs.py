"""The commands of `yarnling simulate`, and which of them is run if none is named.

    yarnling simulate kill-node --seed 7               is `yarnling simulate plan kill-node --seed 7`
    yarnling simulate --workload FILE --nodes FILE     is `yarnling simulate workload --workload FILE --nodes FILE`
    yarnling simulate ./compare                        a plan file with the name of a command

A command is implemented in a module of `yarnling.cli`, which is imported when the command is used.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from yarnling.cli.options import with_options
from yarnling.cli.options.simulate import (
    CompareOptions,
    PlanOptions,
    SearchOptions,
    StepOptions,
    SweepOptions,
    WorkloadOptions,
)

PLAN = "plan"
"""The command that is run if none is named."""
WORKLOAD = "workload"
"""The command that is run instead if there is an option that only it has."""
_HELP_OPTIONS = ("-h", "--help")


class SimulateGroup(TyperGroup):
    """Commands with a default: arguments that do not begin with the name of a command are those of `plan`, or with
    an option that only `workload` has, those of `workload`, which then says what is missing.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in (*self.commands, *_HELP_OPTIONS):
            only_of_workloads = self._options(WORKLOAD) - self._options(PLAN)
            is_workload = any(argument.partition("=")[0] in only_of_workloads for argument in args)
            args = [WORKLOAD if is_workload else PLAN, *args]
        return super().parse_args(ctx, args)

    def _options(self, command: str) -> set[str]:
        return {name for parameter in self.commands[command].params for name in parameter.opts}


simulate_app = typer.Typer(cls=SimulateGroup, help="Simulate a cluster in virtual time: the same seed is the same run.")


@simulate_app.callback(
    epilog="Without a command, `plan` is meant: yarnling simulate kill-node --seed 7 (plans: yarnling chaos --list)"
)
def _simulate() -> None:
    """Simulate a cluster in virtual time: the same seed is the same run."""


@simulate_app.command(PLAN, epilog="Example: yarnling simulate kill-node --seed 7 --hash")
@with_options
def _plan(options: PlanOptions) -> None:
    """Run a chaos plan (the default command). Exit status: 0 pass, 1 fail, 3 cannot tell."""
    from yarnling.cli import simulate as verb

    raise typer.Exit(verb.run(options))


@simulate_app.command(
    "compare",
    epilog="Example: yarnling simulate compare conf/now conf/next --workload day.jsonl --nodes nodes.yaml -o out",
)
@with_options
def _compare(options: CompareOptions) -> None:
    """Compare a workload under two configurations: what differs, who gains and who pays.

    Exit status: 0 all expectations hold, 1 some do not, 2 the input is not valid, 3 the simulation failed.
    """
    from yarnling.cli import compare as verb

    raise typer.Exit(verb.run(options))


@simulate_app.command(
    WORKLOAD, epilog="Example: yarnling simulate --conf /etc/hadoop/conf --workload day.jsonl --nodes nodes.yaml -o out"
)
@with_options
def _workload(options: WorkloadOptions) -> None:
    """Run a workload, and report waits, use of queues, preemption and deadlines (the default with --workload).

    Exit status: 0, or 1 if an expectation does not hold.
    """
    from yarnling.cli import simulate_workload as verb

    raise typer.Exit(verb.run(options))


@simulate_app.command(epilog="Example: yarnling simulate sweep night.yaml -o results.sqlite")
@with_options
def sweep(options: SweepOptions) -> None:
    """Run many plans, workloads and seeds on all cores or a Dask cluster. Exit status: the worst verdict."""
    from yarnling.cli import sweep as verb

    raise typer.Exit(verb.run(options))


@simulate_app.command(
    epilog="Example: yarnling simulate search --conf now --workload day.jsonl --nodes n.yaml --goals goals.yaml -o out"
)
@with_options
def search(options: SearchOptions) -> None:
    """Find the smallest change of a configuration that meets goals: queues, keys and bounds are in the file of goals.

    Exit status: 0 all goals are met, 1 some are not, 2 the input is not valid, 3 a simulation failed.
    """
    from yarnling.cli import search as verb

    raise typer.Exit(verb.run(options))


@simulate_app.command(
    epilog="Example: yarnling simulate step preemption (or: yarnling simulate step kill-node --seed 7)"
)
@with_options
def step(options: StepOptions) -> None:
    """Step through a small run: one event at a time, back again, and on with a change."""
    from yarnling.cli import step as verb

    raise typer.Exit(verb.run(options))
