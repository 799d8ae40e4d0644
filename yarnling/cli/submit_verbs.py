"""The options of `yarnling submit` and `run`, which are implemented in `yarnling.cli.submit` and `yarnling.cli.run`."""

from __future__ import annotations

from typing import Annotated

import typer

from yarnling.cli.hadoop.verbs import PASS_ON, Rest
from yarnling.cli.options import with_options
from yarnling.cli.options.cluster import CommandOptions, User
from yarnling.cli.shared.arguments import DEFAULT_NAME, Json, Name

PROGRAMS = {
    "distributed-shell": "Run a shell command in a number of containers.",
    "mapreduce": "Run a map command over files, and a reduce command over its output.",
    "elastic": "Run tasks on as many workers as the work needs, like Spark's dynamic allocation.",
    "gang": "Run a shell command in containers that start all together or not at all.",
}
"""The applications that can be submitted: {name: description}."""


def add_to(app: typer.Typer) -> None:
    """Register the verbs."""
    app.command(
        "run",
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
        epilog="Example: yarnling run -n 3 'echo hello from $NM_HOST'",
    )(_run)
    submit_app = typer.Typer(
        no_args_is_help=True,
        epilog="Example: yarnling submit distributed-shell -shell_command date -num_containers 2",
    )
    submit_app.callback()(_submit)
    for program, description in PROGRAMS.items():
        _add_program(submit_app, program, description)
    app.add_typer(submit_app, name="submit")


def _submit(
    context: typer.Context,
    user: User = "",
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until it ends; the exit status is 0 if it succeeded.")
    ] = True,
    name: Name = DEFAULT_NAME,
    as_json: Json = False,
) -> None:
    """Submit an application.

    The options of the application follow its name, spelled as in Hadoop; `-help` lists them.
    """
    from yarnling.cli.submit import SubmitOptions

    context.obj = SubmitOptions(name, user, wait, as_json)


def _add_program(submit_app: typer.Typer, program: str, description: str) -> None:
    @submit_app.command(program, help=description, context_settings=PASS_ON)
    def submit_program(context: typer.Context, options: Rest = []) -> None:  # noqa: B006  typer copies it
        from yarnling.cli.submit import submit

        raise typer.Exit(submit(program, options, context.obj))


@with_options
def _run(options: CommandOptions) -> None:
    """Run a command in containers and print their output.

    The exit status is the largest exit status of the containers.
    """
    from yarnling.cli.run import run

    raise typer.Exit(run(options))
