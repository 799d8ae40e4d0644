"""`yarnling --version` and `yarnling version`."""

from __future__ import annotations

import json

from typer.testing import CliRunner

import yarnling
from yarn.java.versions import HADOOP_VERSION
from yarnling.cli.app import app


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_option_and_the_verb_print_the_same_line() -> None:
    assert printed("--version") == printed("version")
    assert printed("--version").startswith(f"yarnling {yarnling.__version__}, compatible with Hadoop {HADOOP_VERSION};")


def test_the_option_does_not_run_the_verb_after_it() -> None:
    assert printed("--version", "down") == printed("version")


def test_the_verb_prints_json() -> None:
    shown = json.loads(printed("version", "--json"))
    assert shown == {"yarnling": yarnling.__version__, "hadoop": HADOOP_VERSION, "core": shown["core"]}
