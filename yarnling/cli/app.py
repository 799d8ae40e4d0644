"""The verbs of `yarnling` with their options.

Each verb is implemented in the module of its name, which is imported when the verb is used.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from yarn.errors import YarnException
from yarn.faults import ConfigurationException
from yarnling.cli import cluster_parts, lab_verbs, lesson_verbs, submit_verbs, timeline_verbs, workload_verbs
from yarnling.cli.hadoop import verbs as hadoop_verbs
from yarnling.cli.options import with_options
from yarnling.cli.options.cluster import ChaosOptions, LogsOptions, UpOptions
from yarnling.cli.options.record import RecordOptions
from yarnling.cli.shared.arguments import (
    DEFAULT_NAME,
    EXIT_CRASHED,
    Conf,
    Define,
    Json,
    Name,
    OptionalName,
    Release,
    Strict,
    UsageException,
    check_output_directory,
    complete_applications,
    reading_arguments,
    release_settings,
    strict_settings,
)
from yarnling.cli.simulate_verbs import simulate_app

EXIT_FAILED = 1
EXIT_USAGE = 2
"""The exit status for a wrong command line, as in Typer, or a wrong input. Hadoop's verbs exit as in Hadoop, and
`chaos` exits with its verdict. docs/design/command-line.md has the table."""

PANELS = {
    "A cluster": ("up", "status", "down", "env", "config", "version"),
    "Applications": ("run", "submit", "logs"),
    "What happens in a cluster": ("explain", "top", "watch", "timeline", "plot", "traffic"),
    "What would happen": ("simulate", "record", "workload", "chaos"),
    "Learning": ("lesson", "quiz", "lab"),
    cluster_parts.PANEL: tuple(cluster_parts.VERBS),
    hadoop_verbs.PANEL: hadoop_verbs.VERBS,
}
"""{heading in the help: its verbs}, in the order in which people need them."""


class VerbGroup(TyperGroup):
    """The verbs under the headings of PANELS, and in their order."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        rest = self.commands
        self.commands = {}
        for panel, verbs in PANELS.items():
            for name in verbs:
                self.commands[name] = rest.pop(name)
                self.commands[name].rich_help_panel = panel  # type: ignore[attr-defined]
        self.commands |= rest


app = typer.Typer(
    name="yarnling",
    cls=VerbGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(requested: bool) -> None:
    if requested:
        from yarnling.cli.version import show

        show()
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """A YARN cluster on this machine."""


def main() -> NoReturn:
    """Run the command line. Errors that the user can fix are printed in one line, without a traceback."""
    sys.argv[1:] = hadoop_verbs.rewritten(sys.argv[1:])
    _make_output_safe()
    try:
        app(prog_name="yarnling")
    except (UsageException, ConfigurationException) as error:
        _fail(error, EXIT_USAGE)
    except YarnException as error:
        _fail(error, EXIT_FAILED)
    except BrokenPipeError:
        # The reader of our output has exited (`| head`), so exit silently.
        sys.stderr.close()
        sys.exit(EXIT_FAILED)
    except OSError as error:
        # This is an error of the machine, for example a full disk for our output. Python flushes stdout at exit, and
        # writing what is left would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _fail(YarnException(_described(error)), EXIT_FAILED)
    except Exception:
        traceback.print_exc()
        sys.exit(EXIT_CRASHED)
    sys.exit(0)


def _described(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)


def _fail(error: YarnException, status: int) -> NoReturn:
    from yarn.faults import ConfigurationException
    from yarnling.cli.shared.output import print_error

    print_error(error, are_faults=status == EXIT_USAGE or isinstance(error, ConfigurationException))
    sys.exit(status)


def _make_output_safe() -> None:
    """Replace a closed stdout, and escape characters that stdout's encoding lacks, as stderr does."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  it stays open as stdout does
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


@app.command(epilog="Example: yarnling up --nodes 4 --fast --detach")
@with_options
def up(options: UpOptions) -> None:
    """Start a cluster and show its state until Ctrl-C stops it, or leave it running with --detach."""
    from yarnling.cli import up as verb

    if options.discard_state and options.directory is None:
        raise typer.BadParameter("--discard-state needs --directory: it deletes what an earlier cluster stored there")
    if options.hadoop_classpath is not None and not options.hadoop:
        raise typer.BadParameter("--hadoop-classpath needs --hadoop: only Hadoop's own programs use these jars")
    check_output_directory(options.directory)
    verb.run(options)


@app.command(epilog="Example: yarnling record http://rm:8088 -o recording --for 24h")
@with_options
def record(options: RecordOptions) -> None:
    """Record what a ResourceManager of Hadoop reports over time: applications, containers, nodes, queues."""
    from yarnling.cli import record as verb

    verb.run(options)


@app.command()
def down(
    name: Name = DEFAULT_NAME,
    every: Annotated[bool, typer.Option("--all", help="Stop every cluster that is up.")] = False,
    as_json: Json = False,
) -> None:
    """Stop a cluster with everything that runs on it."""
    from yarnling.cli.down import stop_all, stop_one

    if every:
        stop_all(as_json=as_json)
    else:
        stop_one(name, as_json=as_json)


@app.command(epilog='Example: eval "$(yarnling env)"')
def env(name: Name = DEFAULT_NAME, as_json: Json = False) -> None:
    """Print shell exports by which Hadoop's own clients find a cluster that was started with --hadoop."""
    from yarnling.cli.env import show

    show(name, as_json=as_json)


@app.command()
def status(
    name: Name = DEFAULT_NAME,
    all_nodes: Annotated[
        bool, typer.Option("--nodes", help="List all nodes; more than 100 are otherwise summarised (not in --json).")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show nodes, queues and applications."""
    from yarnling.cli.status import show

    show(name, all_nodes=all_nodes, as_json=as_json)


@app.command()
def explain(
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="APPLICATION_ID|CONTAINER_ID",
            help="Default: all applications that are waiting.",
            autocompletion=complete_applications,
        ),
    ] = None,
    at: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Why the application waited then: 03:00, 03:00:30, 2026-11-27T03:00, or 10m for ten minutes ago.",
        ),
    ] = "",
    user: Annotated[str, typer.Option(metavar="USER", help="Act as this user (default: you).")] = "",
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Explain why an application is waiting for its next container, and with an id what would get it one.

    The changes of the cluster that would help are tried on a copy of the scheduler. With the id of a container: why it
    is on its node, what its reservation waits for, or why it was preempted. With --at: why an application waited at a
    time in the past, from the samples of the ResourceManager.
    """
    if at:
        from yarnling.cli.explain_past import show_past

        show_past(name, subject, at, user, as_json=as_json)
        return
    if subject is not None and subject.startswith("container_"):
        from yarnling.cli.explain_container import show_container

        show_container(name, subject, user, as_json=as_json)
        return
    from yarnling.cli.explain import show

    show(name, subject, user, as_json=as_json)


@app.command(epilog="Example: yarnling watch --rpc 'allocate' --app application_1700000000000_0001")
def watch(
    application: Annotated[
        str, typer.Option("--app", metavar="ID", help="Only calls and changes that concern this application.")
    ] = "",
    node: Annotated[
        str, typer.Option(metavar="NODE", help="Only calls from, to or about this node: number, name or id.")
    ] = "",
    rpc: Annotated[
        list[str], typer.Option(metavar="NAME", help="Only calls of this RPC; may contain * (nodeHeart*).")
    ] = [],  # noqa: B006
    errors: Annotated[bool, typer.Option("--errors", help="Only calls that failed.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Also show heartbeats without news.")] = False,
    count: Annotated[
        int | None, typer.Option("--count", "-n", metavar="N", help="Stop after this many lines.", min=1)
    ] = None,
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Print the RPCs between the cluster's processes and their state changes, a line each, until Ctrl-C.

    Heartbeats without news are left out, unless requested with --all or --rpc.
    """
    from yarn.ids import ApplicationId
    from yarnling.cli.watch import Filter
    from yarnling.cli.watch import watch as watch_calls

    with reading_arguments():
        app_id = ApplicationId.parse(application) if application else None
    watch_calls(name, Filter(app_id, node, tuple(rpc), errors, every), count, as_json=as_json)


@app.command()
def top(
    interval: Annotated[float, typer.Option(metavar="S", help="Seconds between updates.", min=0.1)] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and exit, as in a pipe.")] = False,
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Show queues, nodes and applications continuously, and what each application waits for."""
    from yarnling.cli.top import show

    show(name, interval, once=once, as_json=as_json)


@app.command(epilog="Example: yarnling chaos kill-node --seed 7 (yarnling chaos --list shows the plans)")
@with_options
def chaos(options: ChaosOptions) -> None:
    """Inject faults into a cluster and check its guarantees. Exit status: 0 pass, 1 fail, 3 cannot tell."""
    from yarnling.cli import chaos as verb

    if options.list_plans:
        verb.list_plans(as_json=options.as_json)
    else:
        raise typer.Exit(verb.run(options))


@app.command(epilog="Example: yarnling config --conf /etc/hadoop/conf --all")
def config(
    conf: Conf = None,
    define: Define = [],  # noqa: B006  typer copies it
    name: OptionalName = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also show keys that are not set and have their default.")
    ] = False,
    release: Release = None,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Show for each configuration key whether it is read, defaulted, ignored or unknown, and where it was set."""
    from yarnling.cli.config import report

    defined = [*define, *release_settings(release), *strict_settings(strict)]
    report(conf, defined, name, every=every, as_json=as_json)


@app.command(epilog="Example: yarnling logs application_1700000000000_0001 --file stdout")
@with_options
def logs(options: LogsOptions) -> None:
    """Print the output of an application's containers (`logs -applicationId ID` prints it as Hadoop does)."""
    from yarnling.cli.logs import show

    show(options)


@app.command()
def version(as_json: Json = False) -> None:
    """Print the version, and the release of Hadoop that yarnling follows."""
    from yarnling.cli.version import show

    show(as_json=as_json)


lesson_verbs.add_to(app)
lab_verbs.add_to(app)
submit_verbs.add_to(app)
workload_verbs.add_to(app)
app.add_typer(simulate_app, name="simulate")
timeline_verbs.add_to(app)
cluster_parts.add_to(app)
hadoop_verbs.add_to(app)
