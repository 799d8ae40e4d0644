"""The text of the launch scripts, and the environment that they set up."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from nm.core.launch_script import (
    DebugFiles,
    Directories,
    Environment,
    NodeEnvironment,
    environment,
    expand_command,
    expand_value,
    launch_script,
    session_script,
    wrapper_script,
)
from nm.core.shell_text import references
from nm.launcher.files import read_pid
from tests.nm.nodes import NODE, container_id

DIRECTORIES = Directories(
    "/l/usercache/alice/appcache/a/c",
    "/g/a/c",
    ("/l/usercache/alice/appcache/a",),
    ("/l/usercache/alice/",),
    ("/g/a/c",),
)


def node(admin_env: str = "", **variables: str) -> NodeEnvironment:
    return NodeEnvironment(NODE, 8042, "/home/", {}, admin_env, variables)


def made(given: dict[str, str], nm: NodeEnvironment | None = None) -> Environment:
    return environment(
        container_id(1), "alice", given, node=nm or node(), directories=DIRECTORIES, localization_counters="0,0,0,0,0"
    )


def exports(given: dict[str, str]) -> list[str]:
    script = launch_script(
        Environment({}, given), ("true",), inherited={}, links={}, log_dir="/g", debug=DebugFiles.NOBODY, java_version=0
    )
    return [line.split("=")[0].removeprefix("export ") for line in script.splitlines() if line.startswith("export V")]


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("{{JAVA_HOME}}/bin/java", "$JAVA_HOME/bin/java"),
        ("a<CPS>{{PWD}}/*", "a:$PWD/*"),
        ("x 1><LOG_DIR>/stdout", "x 1>/g/stdout"),
        ("java <ADD_OPENS> X", "java  X"),
        ('$HOME `id` "q"', '$HOME `id` "q"'),
    ],
)
def test_only_the_nms_placeholders_are_replaced(text: str, expanded: str) -> None:
    assert expand_command(text, "/g", java_version=11) == expanded


@pytest.mark.parametrize(
    ("java_version", "options"),
    [
        (0, ""),
        (8, ""),
        (16, ""),
        (
            17,
            "--add-opens=java.base/java.lang=ALL-UNNAMED --add-exports=java.base/sun.net.dns=ALL-UNNAMED "
            "--add-exports=java.base/sun.net.util=ALL-UNNAMED",
        ),
    ],
)
def test_add_opens_is_filled_for_java_17_and_later(java_version: int, options: str) -> None:
    """Both commands and values are expanded, for the NM's own Java (ContainerLaunch.expandEnvironment)."""
    assert expand_command("java <ADD_OPENS> X", "/g", java_version) == f"java {options} X"
    nm = replace(node(), java_version=java_version)
    assert made({"OPTS": "<ADD_OPENS>"}, nm).other["OPTS"] == options


def test_a_log_directory_is_literal_in_a_value() -> None:
    assert expand_value("<LOG_DIR>/$X", "/a $b {{c}}<CPS>", java_version=0) == r"/a \$b {{c}}<CPS>/$X"


def test_an_am_cannot_change_the_nodes_variables() -> None:
    variables = made({"USER": "root", "PWD": "/", "CONTAINER_ID": "x", "MINE": "1"})
    assert variables.of_node["USER"] == "alice"
    assert variables.other == {"MINE": "1"}


def test_the_administrators_variables_are_appended_to_the_ams() -> None:
    nm = node("MALLOC_ARENA_MAX=$MALLOC_ARENA_MAX,ADDED=$OF_NM/x", OF_NM="/opt")
    assert made({}, nm).other == {"MALLOC_ARENA_MAX": "", "ADDED": "/opt/x"}
    assert made({"MALLOC_ARENA_MAX": "4"}, nm).other["MALLOC_ARENA_MAX"] == "4:4"


def test_an_am_can_override_a_whitelisted_variable() -> None:
    script = launch_script(
        Environment({}, {"PATH": "/mine"}),
        ("true",),
        inherited={"PATH": "/nm", "LANG": "C"},
        links={},
        log_dir="/g",
        debug=DebugFiles.NOBODY,
        java_version=0,
    )
    assert 'export LANG=${LANG:-"C"}' in script
    assert 'export PATH="/mine"' in script
    assert "/nm" not in script


def test_a_variable_follows_those_that_it_refers_to() -> None:
    assert exports({"V_A": "$V_B/a", "V_B": "b", "V_C": "$V_A:$V_B"}) == ["V_B", "V_A", "V_C"]


def test_variables_with_circular_references_are_all_exported() -> None:
    assert sorted(exports({"V_A": "$V_B", "V_B": "${V_A}"})) == ["V_A", "V_B"]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("$A:${B}/$C_1", ["A", "B", "C_1"]),
        ("\\$A $B", ["B"]),
        ("${#A}", ["A"]),
        ("'$A'", ["A"]),
        ("\"'$A'\"$B", ["B"]),
        ("$ $$ $1 ${", []),
        ("a\\", []),
    ],
)
def test_references_are_those_that_bash_would_expand(value: str, found: list[str]) -> None:
    assert references(value) == found


def test_the_script_does_what_it_says(tmp_path: Path) -> None:
    """bash runs the script: it makes links and their parent directories, then debug files, and runs
    the command last.
    """
    logs, work = tmp_path / "logs", tmp_path / "work"
    logs.mkdir()
    work.mkdir()
    (tmp_path / "copy").write_text("content")
    script = launch_script(
        Environment({"V_OF_NODE": "n"}, {"V_OTHER": "$V_OF_NODE/o"}),
        ("echo $V_OTHER", "$(cat d/e/link)"),
        inherited={},
        links={"d/e/link": str(tmp_path / "copy")},
        log_dir=str(logs),
        debug=DebugFiles.SCRIPT,
        java_version=0,
    )
    (work / "launch_container.sh").write_text(script)
    subprocess.run(["bash", "launch_container.sh"], cwd=work, check=True, env={})
    assert (logs / "prelaunch.out").read_text() == (
        "Setting up env variables\nSetting up job resources\nCopying debugging information\nLaunching container\n"
        "n/o content\n"
    )
    assert (logs / "launch_container.sh").read_text() == script
    info = (logs / "directory.info").read_text()
    assert info.startswith("ls -l:\n")
    assert "\nfind -L . -maxdepth 5 -ls:\n" in info
    assert info.endswith("broken symlinks(find -L . -maxdepth 5 -type l -ls):\n")


def test_a_pid_counts_once_its_line_is_complete(tmp_path: Path) -> None:
    """The session script does not replace the pid file in one step, so half of a number could be read."""
    pid_file, script = tmp_path / "c.pid", tmp_path / "launch_container.sh"
    assert read_pid(str(pid_file)) is None
    pid_file.write_text("12")
    assert read_pid(str(pid_file)) is None
    script.write_text("echo $$")
    session = subprocess.run(
        ["bash", "-c", session_script(str(script), str(pid_file))], check=True, stdout=subprocess.PIPE, text=True
    )
    assert read_pid(str(pid_file)) == int(session.stdout)


def ran(directory: Path, *, commands: tuple[str, ...] = ("env",), **given: str) -> dict[str, str]:
    """The output of `env` in a container with these variables, run by bash in a new directory."""
    logs, work = directory / "logs", directory / "work"
    logs.mkdir()
    work.mkdir()
    other = {name: expand_value(value, str(logs), java_version=0) for name, value in given.items()}
    variables = Environment({"OF_NODE": "of the node"}, other)
    script = launch_script(
        variables, commands, inherited={}, links={}, log_dir=str(logs), debug=DebugFiles.NOBODY, java_version=0
    )
    (work / "launch_container.sh").write_text(script)
    subprocess.run(["bash", "launch_container.sh"], cwd=work, check=True, env={"OF_NM": "of the NM"})
    assert os.listdir(work) == ["launch_container.sh"], "a value ran as a command"
    printed = (logs / "prelaunch.out").read_text().partition("Launching container\n")[2]
    return dict(re.findall(r"^(\w+)=(.*)$", printed, flags=re.MULTILINE))


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        # References: the value is expanded (ContainerLaunch.UnixShellScriptBuilder.env).
        ("$OF_NODE/x", "of the node/x"),
        ("a${OF_NODE}b", "aof the nodeb"),
        ("{{OF_NODE}}<CPS>{{OF_NM}}", "of the node:of the NM"),
        ("${#OF_NODE}", "11"),
        ("${NONE:-a default}${OF_NM:+ given}", "a default given"),
        ("[$NONE]", "[]"),
        ("$1$#", "0"),
        # Quotes and backslashes: the value is between double quotes (ContainerLaunch.UnixShellScriptBuilder.env).
        ('it\'s "quoted" $OF_NM', "it's quoted of the NM"),
        ("\"'$OF_NM'\"", "$OF_NM"),
        (r"\$OF_NM \\ \" \x", r'$OF_NM \ " \x'),
        # Commands and other expansions of bash: literal text.
        ("`touch f`", "`touch f`"),
        ("$(touch f)", "$(touch f)"),
        ("$((1+1)) $[1+1]", "$((1+1)) $[1+1]"),
        ("${NONE:-$(touch f)}", "${NONE:-$(touch f)}"),
        ("${NONE:-`touch f`}", "${NONE:-`touch f`}"),
        ("${OF_NM@P} ${!OF_NM} ${OF_NM/a/b}", "${OF_NM@P} ${!OF_NM} ${OF_NM/a/b}"),
        ("${OF_NODE[$(touch f)]}", "${OF_NODE[$(touch f)]}"),
        ('";touch f;"', ";touch f;"),
        ('";touch f;', ";touch f;"),
        ('" ; touch f #', " ; touch f #"),
        ('"$(touch f)"', "$(touch f)"),
        ("\"'`touch f`", "`touch f`"),
        ('a "b c" d & e | f > g', "a b c d & e | f > g"),
        ("a\\", "a\\"),
        ("$", "$"),
        ("${", "${"),
        ('"*"', "*"),
    ],
)
def test_a_value_refers_to_variables_and_runs_nothing(tmp_path: Path, value: str, seen: str) -> None:
    assert ran(tmp_path, VALUE=value)["VALUE"] == seen


def test_a_command_hidden_in_a_variable_is_not_run_by_one_that_refers_to_it(tmp_path: Path) -> None:
    seen = ran(tmp_path, A="$(touch f)", B="$A", C="`$B`", PS4="$(touch f)")
    assert (seen["A"], seen["B"], seen["C"]) == ("$(touch f)", "$(touch f)", "`$(touch f)`")


@pytest.mark.parametrize("name", ["with blank", "quo'te", 'quo"te', "$HOME", "`touch f`", "a;touch f", "back\\slash"])
def test_links_and_directories_may_have_any_name(tmp_path: Path, name: str) -> None:
    logs, work, copy = tmp_path / name / "logs", tmp_path / name / "work", tmp_path / name / "copy"
    logs.mkdir(parents=True)
    work.mkdir()
    copy.write_text("content")
    script = launch_script(
        Environment({}, {"LOGS": "<LOG_DIR>"}),
        ("printf '%s' \\\"$LOGS\\\" 1><LOG_DIR>/stdout",),
        inherited={"INHERITED": name},
        links={name: str(copy), f"sub {name}/{name}": str(copy)},
        log_dir=str(logs),
        debug=DebugFiles.SCRIPT,
        java_version=0,
    )
    (work / "launch_container.sh").write_text(script)
    subprocess.run(["bash", "launch_container.sh"], cwd=work, check=True, env={})
    assert sorted(os.listdir(work)) == sorted([name, "launch_container.sh", f"sub {name}"])
    assert (work / name).read_text() == (work / f"sub {name}" / name).read_text() == "content"
    assert sorted(os.listdir(logs)) == [
        "directory.info",
        "launch_container.sh",
        "prelaunch.err",
        "prelaunch.out",
        "stdout",
    ]
    assert (logs / "prelaunch.err").read_text() == ""


def test_the_wrappers_paths_may_have_any_name(tmp_path: Path) -> None:
    directory = tmp_path / 'a "b" `touch f` $x'
    directory.mkdir()
    script, session, pid_file = directory / "script", directory / "session", directory / "pid"
    script.write_text("exit 3")
    session.write_text(session_script(str(script), str(pid_file)))
    wrapper = wrapper_script(str(session), f"{pid_file}.exitcode")
    assert subprocess.run(["bash", "-c", wrapper], cwd=tmp_path, check=False).returncode == 3
    assert (directory / "pid.exitcode").read_text() == "3\n"
    assert sorted(os.listdir(directory)) == ["pid", "pid.exitcode", "script", "session"]
    assert os.listdir(tmp_path) == [directory.name]
