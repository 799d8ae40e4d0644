"""The verbs and their options. What a verb does is in the module of its name, imported when it is used."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from yarn.errors import YarnException
from yarnling.cli import completion, hadoop_verbs, part_verbs
from yarnling.cli.arguments import (
    DEFAULT_NAME,
    Application,
    Json,
    Name,
    OptionalName,
    UsageException,
    reading_arguments,
)

EXIT_FAILED = 1
EXIT_USAGE = 2
"""A wrong command line, as typer has it too. Hadoop's verbs end with Hadoop's statuses, `chaos` with its verdict."""
RECOVERY = "yarn.resourcemanager.recovery.enabled=true"

app = typer.Typer(
    name="yarnling",
    help="A YARN cluster on this machine.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
part_verbs.add_to(app)
hadoop_verbs.add_to(app)
submit_app = typer.Typer(no_args_is_help=True)
app.add_typer(submit_app, name="submit")

Define = Annotated[list[str], typer.Option("--define", "-D", metavar="KEY=VALUE", help="Set a configuration key.")]
Conf = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Directory of Hadoop's *-site.xml files, or one of them.")
]
User = Annotated[str, typer.Option(help="Submit as this user (default: you).")]


def main() -> NoReturn:
    """Run the command line. What is the user's to put right is told in one line, not as a traceback."""
    sys.argv[1:] = hadoop_verbs.rewritten(sys.argv[1:])
    _make_output_safe()
    try:
        app(prog_name="yarnling")
    except UsageException as error:
        tell(error)
        sys.exit(EXIT_USAGE)
    except YarnException as error:
        tell(error)
        sys.exit(EXIT_FAILED)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`); nothing is left to say.
        sys.stderr.close()
        sys.exit(EXIT_FAILED)
    except OSError as error:
        # The machine's doing, such as a full disk below our output.
        tell(YarnException(str(error)))
        # What could not be written would fail once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    sys.exit(0)


def _make_output_safe() -> None:
    """Somewhere to write to, even if it was closed; a text that the encoding lacks is written out, as on stderr."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  it stays open as stdout does
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


@app.command()
def up(
    nodes: Annotated[int, typer.Option(help="NodeManagers.", min=0)] = 1,
    memory: Annotated[int | None, typer.Option(metavar="MB", help="Memory of a node (default: 8192).", min=1)] = None,
    vcores: Annotated[int | None, typer.Option(help="Vcores of a node (default: 8).", min=1)] = None,
    conf: Conf = None,
    define: Define = [],  # noqa: B006  typer copies it
    fast: Annotated[bool, typer.Option("--fast", help="Shorten every timer to a twentieth.")] = False,
    racks: Annotated[int, typer.Option(help="Racks, nodes spread over them in turn.", min=1)] = 1,
    pack: Annotated[
        int | None, typer.Option(metavar="K", help="Nodes that share a process, for clusters of thousands.", min=1)
    ] = None,
    directory: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep the cluster's files here.")] = None,
    discard_state: Annotated[
        bool,
        typer.Option("--discard-state", help="Delete the applications that an earlier cluster kept in the directory."),
    ] = False,
    emulate: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE", help="Play containers by this YAML file, `default` or `all`, instead of running them."
        ),
    ] = None,
    recovery: Annotated[
        bool,
        typer.Option(
            "--recovery",
            help="Keep applications over a restart of the ResourceManager, and resume those that an earlier cluster "
            "kept in the directory.",
        ),
    ] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Return when it is ready; `down` ends it.")] = False,
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Start a cluster. In the foreground it shows how the cluster does, until Ctrl-C ends all of it."""
    from yarnling.cli.up import UpOptions, run_detached, run_foreground
    from yarnling.cluster.configuration import definitions

    if discard_state and directory is None:
        raise typer.BadParameter("--discard-state needs --directory: it deletes what an earlier cluster kept there")
    with reading_arguments():
        settings = definitions([*([RECOVERY] if recovery else []), *define])
    options = UpOptions(
        name=name,
        nodes=nodes,
        memory_mb=memory,
        vcores=vcores,
        conf=None if conf is None else str(conf.absolute()),
        fast=fast,
        racks=racks,
        pack=pack,
        directory=None if directory is None else str(directory.absolute()),
        discard_state=discard_state,
        settings=settings,
        emulated=emulate,
    )
    if detach:
        run_detached(options, as_json=as_json)
    else:
        run_foreground(options, as_json=as_json)


@app.command()
def down(
    name: Name = DEFAULT_NAME,
    every: Annotated[bool, typer.Option("--all", help="End every cluster that is up.")] = False,
    as_json: Json = False,
) -> None:
    """End a cluster that is up, with all that runs on it."""
    from yarnling.cli.down import end_all, end_one

    if every:
        end_all(as_json=as_json)
    else:
        end_one(name, as_json=as_json)


@app.command()
def status(name: Name = DEFAULT_NAME, as_json: Json = False) -> None:
    """Show nodes, queues and applications."""
    from yarnling.cli.status import show

    show(name, as_json=as_json)


@app.command()
def explain(
    application: Annotated[
        str | None,
        typer.Argument(
            metavar="APPLICATION_ID",
            help="Without one: all applications that wait.",
            autocompletion=completion.applications,
        ),
    ] = None,
    user: Annotated[str, typer.Option(help="Ask as this user (default: you).")] = "",
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Tell why an application has not got its next container: on each node, the check that said no, with numbers."""
    from yarnling.cli.explain import show

    show(name, application, user, as_json=as_json)


@app.command()
def watch(
    application: Annotated[str, typer.Option("--app", metavar="ID", help="Only what names this application.")] = "",
    node: Annotated[str, typer.Option(help="Only calls of, to or about this node: number, name or id.")] = "",
    rpc: Annotated[list[str], typer.Option(metavar="NAME", help="Only such calls; may have * (nodeHeart*).")] = [],  # noqa: B006
    errors: Annotated[bool, typer.Option("--errors", help="Only calls that were refused.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Also heartbeats that carry nothing new.")] = False,
    count: Annotated[int | None, typer.Option("--count", "-n", help="End after so many.", min=1)] = None,
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Show calls between the cluster's processes and changes of state, a line for each, until Ctrl-C.

    Heartbeats that carry nothing new are left out, unless they are asked for by --all or --rpc.
    """
    from yarn.ids import ApplicationId
    from yarnling.cli.watch import Filter
    from yarnling.cli.watch import watch as watch_calls

    with reading_arguments():
        app_id = ApplicationId.parse(application) if application else None
    watch_calls(name, Filter(app_id, node, tuple(rpc), errors, every), count, as_json=as_json)


@app.command()
def top(
    interval: Annotated[float, typer.Option(metavar="S", help="Between two looks.", min=0.1)] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Print one frame, as into a pipe.")] = False,
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Watch queues fill, nodes and applications, and what waits for what; one frame where it is no terminal."""
    from yarnling.cli.top import show

    show(name, interval, once=once, as_json=as_json)


@app.command()
def chaos(
    plan: Annotated[str, typer.Argument(metavar="[PLAN]", help="A file, or the name of a ready-made plan.")] = "",
    list_plans: Annotated[bool, typer.Option("--list", help="List the ready-made plans.")] = False,
    is_random: Annotated[bool, typer.Option("--random", help="A plan drawn from the seed.")] = False,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="What is drawn (default: another one each time).")
    ] = None,
    runs: Annotated[int, typer.Option(metavar="N", help="So many, under one seed after another.", min=1)] = 1,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep all files there (else: of what does not pass).")
    ] = None,
    only_schedule: Annotated[
        bool, typer.Option("--schedule", help="Tell what would be done when, and do nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Do harm to a cluster, and hold it to what it must keep to. Exit status: 0 it holds, 1 not, 3 cannot tell."""
    from yarnling.cli import chaos as verb

    if list_plans:
        verb.list_plans(as_json=as_json)
        return
    options = verb.ChaosOptions(plan, is_random, seed, runs, keep, as_json, only_schedule)
    raise typer.Exit(verb.run(options))


@app.command()
def config(
    conf: Conf = None,
    define: Define = [],  # noqa: B006  typer copies it
    name: OptionalName = None,
    every: Annotated[bool, typer.Option("--all", help="Also what is not set and goes by its default.")] = False,
    as_json: Json = False,
) -> None:
    """Tell what becomes of each key: read, defaulted, ignored or unknown, and from which line it comes."""
    from yarnling.cli.configuration import report

    report(conf, define, name, every=every, as_json=as_json)


@app.command()
def logs(
    application: Application,
    container: Annotated[str | None, typer.Option(metavar="ID", help="Only this container.")] = None,
    file: Annotated[list[str], typer.Option(help="Only files of this name, for example stdout.")] = [],  # noqa: B006
    every: Annotated[
        bool, typer.Option("--all", help="Also the NodeManager's files: launch_container.sh, directory.info...")
    ] = False,
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Print what the containers of an application have written (`logs -applicationId ID`: as Hadoop prints it)."""
    from yarnling.cli.logs import LogsOptions, show

    show(application, LogsOptions(name, container, tuple(file), every, as_json))


@submit_app.callback()
def submit(
    context: typer.Context,
    user: User = "",
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait for its end; the exit status tells how it ended.")
    ] = True,
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Submit an application. Its own options come after its name, spelt as Hadoop's: `-help` lists them."""
    context.obj = {"name": name, "user": user, "wait": wait, "as_json": as_json}


@submit_app.command("distributed-shell", context_settings=hadoop_verbs.PASS_ON)
def distributed_shell(context: typer.Context, options: hadoop_verbs.Rest = []) -> None:  # noqa: B006  typer copies it
    """Run a shell command in a number of containers."""
    _submit("distributed-shell", options, context)


@submit_app.command("mapreduce", context_settings=hadoop_verbs.PASS_ON)
def mapreduce(context: typer.Context, options: hadoop_verbs.Rest = []) -> None:  # noqa: B006  typer copies it
    """Run a map command over files, and a reduce command over what it writes."""
    _submit("mapreduce", options, context)


@submit_app.command("elastic", context_settings=hadoop_verbs.PASS_ON)
def elastic(context: typer.Context, options: hadoop_verbs.Rest = []) -> None:  # noqa: B006  typer copies it
    """Run tasks on workers that are as many as the work needs, as with Spark's dynamic allocation."""
    _submit("elastic", options, context)


@submit_app.command("gang", context_settings=hadoop_verbs.PASS_ON)
def gang(context: typer.Context, options: hadoop_verbs.Rest = []) -> None:  # noqa: B006  typer copies it
    """Run a shell command in containers that are of use only together: all of them or none."""
    _submit("gang", options, context)


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def run(
    command: Annotated[list[str], typer.Argument(help="One word is a line for the shell; else a command's words.")],
    containers: Annotated[int, typer.Option("--containers", "-n", help="How many containers run it.", min=1)] = 1,
    memory: Annotated[int, typer.Option(metavar="MB", help="Memory of a container.", min=1)] = 128,
    vcores: Annotated[int, typer.Option(help="Vcores of a container.", min=1)] = 1,
    queue: Annotated[str, typer.Option(help="Queue, by name or full path.")] = "default",
    user: User = "",
    timeout: Annotated[float | None, typer.Option(metavar="S", help="Kill it after so many seconds.")] = None,
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Run a command in containers and print what they write. The exit status is the largest of theirs."""
    from yarnling.cli.run import RunOptions
    from yarnling.cli.run import run as run_command

    options = RunOptions(tuple(command), containers, memory, vcores, queue, user, timeout, name, as_json)
    raise typer.Exit(run_command(options))


def _submit(program: str, arguments: list[str], context: typer.Context) -> None:
    from yarnling.cli.submit import SubmitOptions
    from yarnling.cli.submit import submit as submit_program

    raise typer.Exit(submit_program(program, arguments, SubmitOptions(**context.obj)))


def tell(error: YarnException) -> None:
    """What went wrong, on stderr; its words may be somebody else's."""
    from yarnling.cli.terminal import shown

    sys.stderr.write(f"yarnling: {shown(error.message)}\n")
