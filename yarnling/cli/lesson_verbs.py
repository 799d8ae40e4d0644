"""The options of `yarnling lesson` and `quiz`, which are implemented in `yarnling.cli.lesson` and
`yarnling.cli.quiz`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from yarnling.cli.shared.arguments import Json

_WORDS = "yarnling lesson: words"


class LessonCommand(TyperCommand):
    """`yarnling lesson`, whose help has the options of the lesson that is named on the command line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # --help is handled before the arguments are read.
        ctx.meta[_WORDS] = tuple(args)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        super().format_help(ctx, formatter)
        named = next((word for word in ctx.meta.get(_WORDS, ()) if not word.startswith("-")), "")
        if named:
            from yarnling.cli import lesson as verb

            verb.show_options(named)


def add_to(app: typer.Typer) -> None:
    """Register the verbs."""
    app.command(
        "lesson",
        cls=LessonCommand,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
        epilog="Example: yarnling lesson 6 --user-limit-factor 2 --answer",
    )(_lesson)
    app.command("quiz", epilog="Example: yarnling quiz placement --seed 7 (topics: yarnling quiz --list)")(_quiz)


def _lesson(
    context: typer.Context,
    which: Annotated[str, typer.Argument(metavar="N", help="Number or name of a lesson (default: list them).")] = "",
    answer: Annotated[bool, typer.Option("--answer", help="Print the answer to the question.")] = False,
    page: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the lesson with its diagram as a page (HTML)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a lesson on YARN in virtual time. Each has options of its own to change; `yarnling lesson` lists them."""
    from yarnling.cli import lesson as verb

    if which and page is not None:
        verb.write_page(which, context.args, page)
    elif which:
        verb.show(which, context.args, answered=answer, as_json=as_json)
    else:
        verb.show_list(as_json=as_json)


def _quiz(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="A topic (default: list them).")] = "",
    list_topics: Annotated[bool, typer.Option("--list", help="List the topics.")] = False,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed of the question (default: random).", min=0)
    ] = None,
    answer: Annotated[
        str | None, typer.Option(metavar="VALUE", help="Your answer (default: read from standard input).")
    ] = None,
    paper: Annotated[
        int | None,
        typer.Option(metavar="N", help="A sheet of N questions instead, to print (-o) or to check.", min=1, max=100),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Where to write the sheet and its answers (HTML)."),
    ] = None,
    check: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Mark the answers of a class: CSV lines NAME,ANSWER,ANSWER...")
    ] = None,
    as_json: Json = False,
) -> None:
    """Answer a question about a cluster whose state is drawn from the seed.

    Exit status: 0 right, 1 wrong or not answered.
    """
    from yarnling.cli import quiz as verb

    if not topic and not list_topics and (paper is not None or page is not None or check is not None):
        raise typer.BadParameter("name the topic of the sheet: yarnling quiz TOPIC --paper N (topics: --list)")
    if list_topics or not topic:
        verb.show_topics(as_json=as_json)
    elif paper is not None and page is not None and check is None:
        verb.write_paper(topic, paper, seed, page)
    elif paper is not None and check is not None and seed is not None and page is None:
        verb.check_paper(topic, paper, seed, check, as_json=as_json)
    elif paper is not None or page is not None or check is not None:
        raise typer.BadParameter("write `--paper N -o sheet.html`, or `--paper N --seed S --check class.csv`")
    else:
        raise typer.Exit(verb.ask(topic, seed, answer, as_json=as_json))
