"""Options in Hadoop's spelling: which words belong to which option, and which are refused (commons-cli)."""

import pytest

from yarnling.cli.hadoop.application import APPLICATION, ATTEMPT
from yarnling.cli.hadoop.container import CONTAINER
from yarnling.cli.hadoop.verb import MissingArgument, UnrecognizedOption, execute, parse, usage
from yarnling.cli.hadoop.verbs import rewritten

OPTIONS = APPLICATION.options


def test_arguments_are_separated_by_commas_and_spaces() -> None:
    given = parse(OPTIONS, ["-list", "-appStates", "RUNNING, KILLED", "FAILED", "-appTypes", "a"])
    assert given.words("appStates") == ["RUNNING", "KILLED", "FAILED"]
    assert given.words("appTypes") == ["a"]
    assert "list" in given
    assert "kill" not in given


def test_a_negative_number_is_an_argument() -> None:
    assert parse(OPTIONS, ["-appId", "x", "-updateLifetime", "-4"]).one("updateLifetime") == "-4"


def test_an_argument_may_follow_an_equals_sign() -> None:
    given = parse(OPTIONS, ["-movetoqueue=application_1_0001", "--queue=a=b"])
    assert (given.one("movetoqueue"), given.one("queue")) == ("application_1_0001", "a=b")


def test_two_dashes_work_as_well() -> None:
    assert parse(OPTIONS, ["--kill", "a", "b"]).values["kill"] == ["a", "b"]


@pytest.mark.parametrize("words", [["-status"], ["-list", "-status"], ["-kill"], ["-list", "-appStates"]])
def test_an_option_without_its_argument_is_refused(words: list[str]) -> None:
    with pytest.raises(MissingArgument):
        parse(OPTIONS, words)


@pytest.mark.parametrize("word", ["-nosuch", "-lis", "--lists", "-l"])
def test_options_cannot_be_abbreviated(word: str) -> None:
    with pytest.raises(UnrecognizedOption, match=f"^Unrecognized option: {word}$"):
        parse(OPTIONS, [word])


def test_an_extra_word_prints_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(APPLICATION, ["-list", "extra"]) == 255
    assert capsys.readouterr().out.startswith("usage: yarnling application\n -list ")


def test_without_options_the_usage_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(ATTEMPT, []) == 0
    captured = capsys.readouterr()
    assert captured.err == "Invalid Command Usage : \n"
    assert captured.out == usage("applicationattempt", ATTEMPT.options) + "\n"
    assert execute(ATTEMPT, ["-help"]) == 0
    assert capsys.readouterr().err == ""


def test_the_meaning_of_a_long_option_is_on_the_next_line() -> None:
    lines = usage("container", CONTAINER.options).splitlines()
    line = lines.index(" -signal <CONTAINER_ID [COMMAND] ...>")
    assert lines[line + 1].startswith(" " * 34 + "send a signal to a container")
    assert max(map(len, lines)) <= 100


def test_logs_is_hadoops_with_hadoops_options() -> None:
    assert rewritten(["logs", "-applicationId", "x"]) == ["yarn-logs", "-applicationId", "x"]
    assert rewritten(["logs", "-help"]) == ["yarn-logs", "-help"]
    assert rewritten(["logs", "application_1_0001"]) == ["logs", "application_1_0001"]
    assert rewritten([]) == []
