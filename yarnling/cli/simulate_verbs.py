"""The commands of `yarnling simulate`, and which of them is run if none is named.

    yarnling simulate kill-node --seed 7               is `yarnling simulate plan kill-node --seed 7`
    yarnling simulate --workload FILE --nodes FILE     is `yarnling simulate workload --workload FILE --nodes FILE`
    yarnling simulate ./compare                        a plan file with the name of a command

A command is implemented in a module of `yarnling.cli`, which is imported when the command is used.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from yarn.settings.yarnling import STRICT
from yarnling.cli.shared.arguments import Conf, Define, Json, Strict

PLAN = "plan"
"""The command that is run if none is named."""
WORKLOAD = "workload"
"""The command that is run instead if there is an option that only it has."""
_HELP_OPTIONS = ("-h", "--help")
QueueMap = Annotated[
    list[str], typer.Option("--queue-map", metavar="OLD=NEW", help="Submit to queue NEW what the workload has in OLD.")
]
Expect = Annotated[Path | None, typer.Option(metavar="FILE", help="Expectations that must hold.")]

TraceFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write what happens, for yarnling timeline, plot and traffic.")
]


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
def _plan(
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan file, or the name of a ready-made plan.")] = "",
    is_random: Annotated[bool, typer.Option("--random", help="Draw a plan from the seed.")] = False,
    all_faults: Annotated[
        bool, typer.Option("--all-faults", help="With --random: also faults that only the simulation has.")
    ] = False,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of the run (default: random).", min=0)] = None,
    runs: Annotated[int, typer.Option(metavar="N", help="Number of runs, each with the next seed.", min=1)] = 1,
    hashed: Annotated[
        bool, typer.Option("--hash", help="Print the SHA-256 of every event and effect as the last line.")
    ] = False,
    no_encode: Annotated[bool, typer.Option("--no-encode", help="Faster: do not turn messages into bytes.")] = False,
    shrinks: Annotated[
        bool, typer.Option("--shrink", help="Make the first run that fails smaller; write it as a plan and as a test.")
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where --shrink writes (default: here).")
    ] = Path(),
    trace: TraceFile = None,
    as_json: Json = False,
) -> None:
    """Run a chaos plan (the default command). Exit status: 0 pass, 1 fail, 3 cannot tell."""
    from yarnling.cli import simulate as verb

    options = verb.SimulateOptions(
        plan,
        is_random,
        seed,
        runs,
        hashed,
        not no_encode,
        as_json,
        shrink_into=output if shrinks else None,
        all_faults=all_faults,
        trace=trace,
    )
    raise typer.Exit(verb.run(options))


@simulate_app.command(
    "compare",
    epilog="Example: yarnling simulate compare conf/now conf/next --workload day.jsonl --nodes nodes.yaml -o out",
)
def _compare(
    before: Annotated[
        Path, typer.Argument(metavar="BEFORE", help="Directory with *-site.xml files, or the result.json of a run.")
    ],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The same, after the change.")],
    workload: Annotated[Path | None, typer.Option(metavar="FILE", help="The workload to run on both sides.")] = None,
    nodes: Annotated[Path | None, typer.Option(metavar="FILE", help="The machines of the cluster.")] = None,
    nodes_after: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The machines after the change (default: as before).")
    ] = None,
    until: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Simulate at most this long: 24h, 30m; stops earlier when all applications have ended."
        ),
    ] = "24h",
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the first run.", min=0)] = 1,
    seeds: Annotated[
        int, typer.Option(metavar="N", help="Runs of each side; a difference within their spread is noise.", min=1)
    ] = 1,
    expect: Expect = None,
    threshold: Annotated[
        float, typer.Option(metavar="PERCENT", help="Do not mention smaller differences.", min=0, max=100)
    ] = 10,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write the reports here.")] = None,
    define: Define = [],  # noqa: B006  typer copies it
    queue_map: QueueMap = [],  # noqa: B006
    queue_map_after: Annotated[
        list[str],
        typer.Option("--queue-map-after", metavar="OLD=NEW", help="The same for AFTER alone (default: as before)."),
    ] = [],  # noqa: B006
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Compare a workload under two configurations: what differs, who gains and who pays.

    Exit status: 0 all expectations hold, 1 some do not, 2 the input is not valid, 3 the simulation failed.
    """
    from yarnling.cli import compare as verb

    inputs = verb.Inputs(
        workload,
        nodes,
        nodes_after,
        until,
        range(seed, seed + seeds),
        _with_strict(define, strict=strict),
        queue_map,
        queue_map_after,
    )
    options = verb.CompareOptions(before, after, inputs, expect, threshold / 100, out, as_json)
    raise typer.Exit(verb.run(options))


@simulate_app.command(
    WORKLOAD, epilog="Example: yarnling simulate --conf /etc/hadoop/conf --workload day.jsonl --nodes nodes.yaml -o out"
)
def _workload(
    workload: Annotated[Path, typer.Option(metavar="FILE", help="The applications: see yarnling workload formats.")],
    nodes: Annotated[Path, typer.Option(metavar="FILE", help="The machines of the cluster.")],
    conf: Conf = None,
    until: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Simulate at most this long: 24h, 30m; stops earlier when all applications have ended."
        ),
    ] = "24h",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write report.html, result.json and CSV files.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the run.", min=0)] = 1,
    expect: Expect = None,
    hashed: Annotated[
        bool, typer.Option("--hash", help="Print the SHA-256 of every event and effect as the last line.")
    ] = False,
    define: Define = [],  # noqa: B006  typer copies it
    queue_map: QueueMap = [],  # noqa: B006
    trace: TraceFile = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Run a workload, and report waits, use of queues, preemption and deadlines (the default with --workload).

    Exit status: 0, or 1 if an expectation does not hold.
    """
    from yarnling.cli import simulate_workload as verb

    define = _with_strict(define, strict=strict)
    options = verb.WorkloadOptions(
        workload, nodes, conf, until, out, seed, hashed, define, queue_map, as_json, expect, trace
    )
    raise typer.Exit(verb.run(options))


def _with_strict(define: list[str], *, strict: bool) -> list[str]:
    return [*define, f"{STRICT.key}=true"] if strict else define


@simulate_app.command(epilog="Example: yarnling simulate sweep night.yaml -o results.sqlite")
def sweep(
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="The description of the sweep (YAML).")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="SQLite file of results; continued.")],
    scheduler: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Dask scheduler to use, for example tcp://10.0.0.5:8786.")
    ] = "",
    workers: Annotated[
        int, typer.Option(metavar="N", help="Processes on this machine (default: one for each core).", min=0)
    ] = 0,
    as_json: Json = False,
) -> None:
    """Run many plans, workloads and seeds on all cores or a Dask cluster. Exit status: the worst verdict."""
    from yarnling.cli import sweep as verb

    raise typer.Exit(verb.run(verb.SweepOptions(spec, out, scheduler, workers, as_json)))


@simulate_app.command(
    epilog="Example: yarnling simulate step preemption (or: yarnling simulate step kill-node --seed 7)"
)
def step(
    which: Annotated[
        str,
        typer.Argument(metavar="[SCENE|PLAN]", help="A lesson or a chaos plan (default: allocate)."),
    ] = "",
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of a plan or workload (default: 1).")] = None,
    workload: Annotated[Path | None, typer.Option(metavar="FILE", help="Step through this workload instead.")] = None,
    nodes: Annotated[Path | None, typer.Option(metavar="FILE", help="The machines for --workload.")] = None,
    conf: Conf = None,
    define: Define = [],  # noqa: B006  typer copies it
    change: Annotated[
        list[str], typer.Option(metavar="STEP:CHANGE", help="Make a change after this step, as '135: kill n2'.")
    ] = [],  # noqa: B006
    at: Annotated[str, typer.Option(metavar="STEP|TIME", help="Begin at this step, or at a time such as 12.5s.")] = "",
    web: Annotated[bool, typer.Option("--web", help="Serve a page for a browser instead.")] = False,
    port: Annotated[int, typer.Option(metavar="PORT", help="Port of --web.", min=0, max=65535)] = 0,
    prints: Annotated[
        bool, typer.Option("--print", help="Print the steps up to --at instead of showing them one by one.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Step through a small run: one event at a time, back again, and on with a change."""
    from yarnling.cli import step as verb

    raise typer.Exit(
        verb.run(verb.StepOptions(which, seed, workload, nodes, conf, define, change, at, web, port, prints, as_json))
    )
