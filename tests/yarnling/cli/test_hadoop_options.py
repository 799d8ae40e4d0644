"""Options in Hadoop's spelling: which words belong to which, and what is wrong with the others (commons-cli)."""

import pytest

from yarnling.cli.hadoop.application import APPLICATION
from yarnling.cli.hadoop.attempt import ATTEMPT
from yarnling.cli.hadoop.container import CONTAINER
from yarnling.cli.hadoop.options import MissingArgument, UnrecognizedOption, parse, usage
from yarnling.cli.hadoop.verb import execute
from yarnling.cli.hadoop.verbs import rewritten

OPTIONS = APPLICATION.options


def test_words_with_commas_and_blanks_belong_to_their_option() -> None:
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


def test_two_dashes_do_as_well() -> None:
    assert parse(OPTIONS, ["--kill", "a", "b"]).values["kill"] == ["a", "b"]


@pytest.mark.parametrize("words", [["-status"], ["-list", "-status"], ["-kill"], ["-list", "-appStates"]])
def test_an_option_without_its_argument_is_told(words: list[str]) -> None:
    with pytest.raises(MissingArgument):
        parse(OPTIONS, words)


@pytest.mark.parametrize("word", ["-nosuch", "-lis", "--lists", "-l"])
def test_an_option_that_is_not_there_is_no_shorter_form_of_another(word: str) -> None:
    with pytest.raises(UnrecognizedOption, match=f"^Unrecognized option: {word}$"):
        parse(OPTIONS, [word])


def test_what_belongs_to_no_option_shows_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(APPLICATION, ["-list", "extra"]) == 255
    assert capsys.readouterr().out.startswith("usage: yarnling application\n -list ")


def test_nothing_to_do_is_told_beside_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(ATTEMPT, []) == 0
    captured = capsys.readouterr()
    assert captured.err == "Invalid Command Usage : \n"
    assert captured.out == usage("applicationattempt", ATTEMPT.options) + "\n"
    assert execute(ATTEMPT, ["-help"]) == 0
    assert capsys.readouterr().err == ""


def test_a_long_option_has_its_meaning_on_the_next_line() -> None:
    lines = usage("container", CONTAINER.options).splitlines()
    line = lines.index(" -signal <CONTAINER_ID [COMMAND] ...>")
    assert lines[line + 1].startswith(" " * 34 + "signal its processes")
    assert max(map(len, lines)) <= 100


def test_logs_of_both_spellings() -> None:
    assert rewritten(["logs", "-applicationId", "x"]) == ["yarn-logs", "-applicationId", "x"]
    assert rewritten(["logs", "-help"]) == ["yarn-logs", "-help"]
    assert rewritten(["logs", "application_1_0001"]) == ["logs", "application_1_0001"]
    assert rewritten([]) == []
