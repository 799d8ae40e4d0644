"""Commands whose options are the fields of a record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import pytest
import typer
import typer.main
from typer.core import TyperGroup
from typer.testing import CliRunner

from yarnling.cli.app import PANELS
from yarnling.cli.app import app as yarnling_app
from yarnling.cli.options import with_options
from yarnling.cli.options.cluster import UpOptions
from yarnling.cli.shared.arguments import memory_mb, memory_of_node_mb


class GreetOptions(msgspec.Struct, frozen=True, kw_only=True):
    name: Annotated[str, typer.Argument(metavar="NAME")]
    words: Annotated[list[str], typer.Option("--word")] = []
    count: Annotated[int, typer.Option(min=1)] = 1


app = typer.Typer()


@app.command()
@with_options
def greet(options: GreetOptions) -> None:
    """Greet somebody."""
    typer.echo(repr(options))


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


def test_each_field_is_an_option_or_an_argument_with_its_default() -> None:
    assert run("ann") == (0, f"{GreetOptions(name='ann')!r}\n")
    given = GreetOptions(name="ann", words=["a", "b"], count=2)
    assert run("ann", "--word", "a", "--count", "2", "--word", "b") == (0, f"{given!r}\n")


@pytest.mark.parametrize("arguments", [[], ["ann", "--count", "0"], ["ann", "--nosuch"]])
def test_a_missing_argument_and_a_value_out_of_bounds_are_refused(arguments: list[str]) -> None:
    assert run(*arguments)[0] == 2


def test_the_help_is_that_of_the_command() -> None:
    assert "Greet somebody." in run("--help")[1]


def test_a_supervisor_gets_the_options_of_up_as_they_were_given() -> None:
    """Options reach the supervisor's process as JSON."""
    options = UpOptions(nodes=3, conf=Path("conf"), define=["a=b"], directory=Path("dir"), name="mine")
    text = msgspec.json.encode(options, enc_hook=str)
    assert msgspec.json.decode(text, type=UpOptions, dec_hook=lambda kind, value: kind(value)) == options


def test_every_verb_that_help_lists_stands_under_a_heading_and_in_its_order() -> None:
    group = typer.main.get_command(yarnling_app)
    assert isinstance(group, TyperGroup)
    listed = [name for name, command in group.commands.items() if not command.hidden]
    assert listed == [name for verbs in PANELS.values() for name in verbs]


@pytest.mark.parametrize(("text", "megabytes"), [("2048", 2048), ("2GB", 2048), ("0.5GB", 512), ("1TB", 1024 * 1024)])
def test_memory_has_the_units_of_files(text: str, megabytes: int) -> None:
    assert memory_mb(text) == memory_of_node_mb(text) == megabytes


@pytest.mark.parametrize("text", ["0", "-1", "2G", "much", "", "-2GB"])
def test_other_amounts_of_memory_are_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"is not (a valid amount of memory|in the range x>=1)"):
        memory_mb(text)
    assert memory_of_node_mb("-1") == -1, "the default"
